"""The clips of variants, made from the items' own before anything is asked.

What is done to a sound, and which item stands in for which, is `core.variants`; here files
are found, decoded and kept, and what could not be had becomes a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.clips import decoded
from experiments.speaking import Progress

if TYPE_CHECKING:
    import pandas as pd

    from core.variants import Variant
    from core.variants.clips import Made
    from experiments.evaluation import Plan

LIKE = {
    "recording": "of the same recording",
    "gender": "of the same gender",
    "voices": "in the same voices",
    "anything": "of anyone",
}


def made_clips(plan: Plan, variant: Variant, items: pd.DataFrame, own: Mapping[str, str]) -> Made:
    """The clips of a variant whose sound is not the items' own.

    Args:
        items: those asked about.
        own: item id -> clip name, for the items that have one.

    Raises:
        TaskError: neutral speech, where nothing is installed that could speak.
    """
    from core.variants import MISMATCHED, SILENCE
    from core.variants.clips import silent, worse

    folder = plan.folder.audio
    if variant.degradation:
        index = folder.with_name(folder.name + "-index")
        seed = plan.settings.seed
        return worse(own, variant.degradation, folder, seed=seed, index=index)
    if variant.change == SILENCE:
        return silent(own, folder)
    if variant.change == MISMATCHED:
        return _mismatched(plan, own)
    return _neutral(plan, items, own)


def _mismatched(plan: Plan, own: Mapping[str, str]) -> Made:
    from core.variants.clips import Made
    from core.variants.partners import partners

    # Exemplars are heard in the prompt already, so only what is evaluated may be a partner.
    rows = plan.selection.evaluated.set_index("item_id", drop=False)
    known: dict[str, str] = {}
    tried: set[str] = set()

    def playable(ids: Sequence[str]) -> Mapping[str, str]:
        if fresh := [item_id for item_id in ids if item_id not in tried]:
            tried.update(fresh)
            found = decoded(plan, rows.loc[fresh].reset_index(drop=True))
            silent = set(found.silent)
            known.update({k: name for k, name in found.names.items() if k not in silent})
        return {item_id: known[item_id] for item_id in ids if item_id in known}

    found = partners(plan.selection.evaluated, own, playable, seed=plan.settings.seed)
    made = Made(clips={item_id: known[p.item_id] for item_id, p in found.items()})
    made.reasons = dict.fromkeys(
        own.keys() - found.keys(), "no other item of the dataset has a clip that sounds otherwise"
    )
    labels = rows["label"]
    same = sum(labels[item_id] == labels[p.item_id] for item_id, p in found.items())
    counted = Counter(partner.likeness for partner in found.values())
    alike = ", ".join(f"{LIKE[name]} for {count}" for name, count in counted.items())
    if found:
        made.notes.append(
            f"AT.mismatched: another item's clip, {alike}; {same} of {len(found)} have the label "
            "of the item they stand in for."
        )
    return made


def _neutral(plan: Plan, items: pd.DataFrame, own: Mapping[str, str]) -> Made:
    from core.speech.engine import SpeechError
    from core.speech.kokoro import Kokoro
    from core.speech.respoken import NEUTRAL, respoken
    from core.tasks import TaskError
    from core.variants.clips import spoken
    from core.variants.partners import gender_of

    rows = items[items["item_id"].isin(list(own))].to_dict("records")
    folder = plan.folder.audio
    sounds = respoken(Kokoro(), rows, gender_of, folder.with_name("turns"), Progress())
    try:
        made = spoken(own, sounds, folder)
    except SpeechError as error:
        raise TaskError(f"hearing: neutral needs text-to-speech. {error}") from error
    if unknown := sum(gender_of(row) not in NEUTRAL for row in rows):
        made.notes.append(
            f"AT.neutral: {unknown} of {len(rows)} items do not say the speaker's gender (manifest "
            "column gender) and are spoken by a woman's voice."
        )
    return made
