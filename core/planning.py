"""From items to requests, for a task that asks each item once a condition.

Conditions differ in the prompt's text and in whether a clip comes before it, and in
nothing else: same items, same order, same context, same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from core.modality import assert_modality
from core.prompts import Template, fill
from core.protocol import Part, Request, request_id
from core.seeds import seed_of
from core.tasks import PlannedRequest, TaskError


def plan_answers(
    items: pd.DataFrame,
    condition: str,
    *,
    system: str | None,
    prompt: Template,
    slots: Callable[[Mapping[Hashable, Any]], Mapping[str, str]],
    choices: Mapping[str, tuple[str, ...]],
    max_new_tokens: int,
    seed: int,
    audio: Mapping[str, str],
    model_digest: str,
) -> list[PlannedRequest]:
    """One greedy request an item, checked for what its condition withholds.

    Args:
        items: with item_id, transcript and what `slots` reads.
        prompt: of this condition.
        slots: the text for every slot any condition's prompt may have, from an item's row.
        choices: label -> surface forms.
        audio: item id -> clip name.

    Raises:
        TaskError: an item without a clip in a condition that plays one.
        ModalityError: a request that shows what its condition withholds.
    """
    requests: dict[str, Request] = {}
    for row in items.to_dict("records"):
        item_id = str(row["item_id"])
        texts = slots(row)
        clip: tuple[Part, ...] = ({"audio": _clip(item_id, audio)},) if condition != "TO" else ()
        request = Request(
            id="",
            system=system,
            parts=(*clip, *fill(prompt, **{slot: texts[slot] for slot in prompt.slots})),
            choices=dict(choices),
            max_new_tokens=max_new_tokens,
            seed=seed_of(seed, item_id, "answer"),
        )
        requests[item_id] = replace(request, id=request_id(item_id, request, model_digest))
    transcripts = dict(zip(items["item_id"], items["transcript"], strict=True))
    assert_modality(requests, condition, transcripts)
    return [PlannedRequest(request, item_id, condition) for item_id, request in requests.items()]


def _clip(item_id: str, audio: Mapping[str, str]) -> str:
    if item_id not in audio:
        raise TaskError(
            f"item {item_id}: expected a clip, found none. Give its recording, drop the item, "
            "or ask in TO alone."
        )
    return audio[item_id]
