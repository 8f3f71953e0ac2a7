"""The items' audio as clips that lie ready for a model, or the reason an item has none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from core.audio import Source
    from experiments.evaluation import Plan

# Stands for the clip an item does not have; never sent to a model.
NO_CLIP = "no-clip.wav"
# Items at a time, so that the facts of all are not held. As many as many sessions have
# turns: a file is hashed once for all of its turns here.
TOGETHER = 4096


@dataclass(frozen=True)
class Clips:
    """What the items sound like.

    Attributes:
        names: item id -> clip name; `NO_CLIP` where there is none.
        reasons: item id -> why there is none.
        silent: items whose clip is silent throughout; they are asked about all the same.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    silent: Sequence[str] = ()


def clips_of(plan: Plan, items: pd.DataFrame) -> Clips:
    """The items' clips, and those of exemplars that are played.

    Raises:
        TaskError: an exemplar that would be played has none.
    """
    from core.tasks import TaskError

    if set(plan.settings.conditions) == {"TO"}:
        return Clips()
    found = decoded(plan, items)
    names = {**found.names, **dict.fromkeys(found.reasons, NO_CLIP)}
    shown = plan.selection.exemplars
    if len(shown) and plan.card.capabilities.clips_per_prompt > len(shown):
        of_exemplars = decoded(plan, shown)
        for item_id, reason in of_exemplars.reasons.items():
            raise TaskError(
                f"exemplars: the clip of {item_id} cannot be played ({reason}); choose others."
            )
        names |= of_exemplars.names
    return Clips(names, found.reasons, found.silent)


def decoded(plan: Plan, items: pd.DataFrame) -> Clips:
    """As `Clips`, but an item without a clip has no name.

    Raises:
        OSError: the dataset's folder is gone.
    """
    from containers.runtime.clips import check_there
    from core.audio import AudioError, prepare_clips

    names: dict[str, str] = {}
    without = items.loc[items["audio"].isna(), "item_id"]
    reasons = dict.fromkeys(without, "the manifest names no audio for it.")
    silent: list[str] = []
    named = items[items["audio"].notna()]
    for start in range(0, len(named), TOGETHER):
        rows = named.iloc[start : start + TOGETHER].to_dict("records")
        sources = [_source(plan.dataset.folder, row) for row in rows]
        for row, one in zip(rows, prepare_clips(sources, plan.folder.audio), strict=True):
            item_id = str(row["item_id"])
            if isinstance(one, AudioError):
                check_there(plan.dataset.folder)
                reasons[item_id] = str(one)
                continue
            names[item_id] = one.name
            if one.facts.silent_share == 1:
                silent.append(item_id)
    return Clips(names, reasons, silent)


def _source(folder: Path, row: dict[Hashable, Any]) -> Source:
    """The file of a row, or the span of it that the row names."""
    from core.audio import Source
    from core.manifest import is_nothing

    start_s, end_s = row.get("start_s"), row.get("end_s")
    return Source(
        folder / row["audio"],
        None if is_nothing(start_s) else start_s,
        None if is_nothing(end_s) else end_s,
    )
