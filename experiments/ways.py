"""The ways a run asks about its items: its conditions, and each variant of one.

A variant is planned, followed up and read by the task as the condition it belongs to, with
its own clips and settings; only then does it bear its own name. So nothing a task does can
depend on whether it is asked about a condition or a variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.protocol import Request, Response
from experiments.clips import NO_CLIP, Clips

if TYPE_CHECKING:
    import pandas as pd

    from core.tasks import PlannedRequest
    from core.variants import Variant
    from experiments.evaluation import Plan


@dataclass(frozen=True)
class Way:
    """One way of asking.

    Attributes:
        clips: what the items sound like in it.
        settings: options of the task.
        variant: None for the run's conditions, which are one way together.
        notes: what a reader has to know of its clips, a sentence each.
        no_clip: stands for the clip an item does not have.
    """

    clips: Clips
    settings: Mapping[str, str]
    variant: Variant | None = None
    notes: Sequence[str] = ()
    no_clip: str = NO_CLIP

    def is_asked_in(self, condition: str) -> bool:
        """Whether a planned request's condition is one of this way."""
        return condition == self.variant.name if self.variant else "." not in condition

    def own(self, planned: Iterable[PlannedRequest]) -> list[PlannedRequest]:
        """Requests of this way, as the task knows them: under their condition's own name."""
        mine = [entry for entry in planned if self.is_asked_in(entry.condition)]
        if not self.variant:
            return mine
        return [replace(entry, condition=self.variant.base) for entry in mine]

    def named(self, planned: Iterable[PlannedRequest]) -> list[PlannedRequest]:
        """Requests of the task, under this way's name."""
        if not self.variant:
            return list(planned)
        return [replace(entry, condition=self.variant.name) for entry in planned]


def ways_of(plan: Plan, items: pd.DataFrame, clips: Clips) -> tuple[Way, ...]:
    """The conditions, then every variant with the clips it needs; these are made here.

    Args:
        clips: the items' own.

    Raises:
        TaskError: clips that cannot be made at all; see `experiments.variant_clips`.
    """
    of_task = plan.settings.of_task
    ways = [Way(clips, of_task)]
    for variant in plan.variants:
        if variant.flag == "prompts":
            ways.append(Way(clips, variant.settings(of_task), variant))
            continue
        from experiments.variant_clips import made_clips

        own = {str(k): clips.names[k] for k in items["item_id"] if k not in clips.reasons}
        made = made_clips(plan, variant, items, own)
        # A name of its own: what is missing in two variants is missing for two reasons.
        missing = f"{NO_CLIP.removesuffix('.wav')}.{variant.name}.wav"
        reasons = {**clips.reasons, **made.reasons}
        names = {**clips.names, **made.clips, **dict.fromkeys(reasons, missing)}
        ways.append(
            Way(Clips(names, reasons), of_task, variant, notes=tuple(made.notes), no_clip=missing)
        )
    return tuple(ways)


def first_round(plan: Plan, items: pd.DataFrame, ways: Sequence[Way]) -> list[PlannedRequest]:
    """The requests of all ways, checked to be about the same items in the same context.

    An item without a clip is planned like any other, so that it has its row and its reason in
    the predictions; its requests are only never sent.
    """
    from core.modality import assert_paired
    from core.variants import assert_variant

    planned: list[PlannedRequest] = []
    conditions: dict[str, dict[str, Request]] = {}
    plain = ways[0]
    for condition in plan.settings.conditions:
        entries = _planned(plan, items, plain, condition)
        conditions[condition] = _by_item(entries)
        planned += entries
    assert_paired(conditions)
    for way in ways[1:]:
        assert way.variant
        entries = _planned(plan, items, way, way.variant.base)
        assert_variant(
            way.variant,
            _by_item(entries),
            conditions[way.variant.base],
            plain.clips.names,
            way.clips.reasons,
        )
        planned += way.named(entries)
    return planned


def follow_ups(
    plan: Plan,
    items: pd.DataFrame,
    ways: Sequence[Way],
    planned: Sequence[PlannedRequest],
    responses: Mapping[str, Response],
) -> list[PlannedRequest]:
    """What the answers so far call for, way by way."""
    more: list[PlannedRequest] = []
    for way in ways:
        found = plan.task.follow_up(
            way.own(planned),
            responses,
            items,
            seed=plan.settings.seed,
            settings=way.settings,
            audio=way.clips.names,
            model_digest=plan.model_digest,
            exemplars=plan.selection.exemplars,
            clips_per_prompt=plan.card.capabilities.clips_per_prompt,
        )
        more += way.named(found)
    return more


def undecodable(planned: Iterable[PlannedRequest], ways: Sequence[Way]) -> dict[str, Response]:
    """The answer to each request whose clip there is not, by request id."""
    with_gaps = [way for way in ways if way.clips.reasons]
    return {
        entry.request.id: Response(
            entry.request.id, "audio_error", reason=way.clips.reasons[entry.item_id]
        )
        for entry in (planned if with_gaps else ())
        for way in with_gaps
        if way.is_asked_in(entry.condition)
        and any(part.get("audio") == way.no_clip for part in entry.request.parts)
    }


def read(
    plan: Plan,
    items: pd.DataFrame,
    ways: Sequence[Way],
    planned: Sequence[PlannedRequest],
    responses: Mapping[str, Response],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predictions of the conditions, and of the variants under their names."""
    import pandas as pd

    plain, *others = (
        (way, plan.task.predict(way.own(planned), responses, items, way.settings)) for way in ways
    )
    named = [table.assign(condition=way.variant.name) for way, table in others if way.variant]
    return plain[1], pd.concat(named, ignore_index=True) if named else plain[1].head(0)


def _planned(plan: Plan, items: pd.DataFrame, way: Way, condition: str) -> list[PlannedRequest]:
    return plan.task.plan(
        items,
        condition,
        seed=plan.settings.seed,
        settings=way.settings,
        audio=way.clips.names,
        model_digest=plan.model_digest,
        exemplars=plan.selection.exemplars,
        clips_per_prompt=plan.card.capabilities.clips_per_prompt,
    )


def _by_item(entries: Iterable[PlannedRequest]) -> dict[str, Request]:
    """The first request about each item."""
    found: dict[str, Request] = {}
    for entry in entries:
        found.setdefault(entry.item_id, entry.request)
    return found
