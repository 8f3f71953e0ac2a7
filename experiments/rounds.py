"""From items to answers: plan, ask, and plan what the answers call for, until nothing is left.

A task may ask more where an answer makes it necessary (a tactic, once manipulation was
found). Each round goes through the same runner and the same response file, so that a run
ended in any round goes on there; requests.jsonl holds all rounds when the last one is over.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers.runtime.answers import AnswerFile, BusyError
from core.protocol import ProtocolError, Request, Response, read_responses, write_requests
from experiments.runners import RunnerError

if TYPE_CHECKING:
    import pandas as pd

    from core.audio import Source
    from core.tasks import PlannedRequest
    from experiments.evaluation import Plan

# A failure may be the machine's fault, so it is asked again; everything else is an answer.
FAILED = ("audio_error", "model_error", "timeout")
# Stands for the clip an item does not have; never sent to a model.
NO_CLIP = "no-clip.wav"


@dataclass
class Asked:
    """All requests of a run and what came back.

    Attributes:
        responses: by id; those of clips that cannot be decoded are among them.
        reused: requests that had an answer before.
        rounds: how often the model was given requests or would have been.
        silent: items whose clip is silent throughout; they are asked about all the same.
    """

    planned: list[PlannedRequest] = field(default_factory=list)
    responses: dict[str, Response] = field(default_factory=dict)
    reused: int = 0
    rounds: int = 0
    silent: list[str] = field(default_factory=list)


def ask(plan: Plan, items: pd.DataFrame, run: Callable[[], None]) -> Asked:
    """Plan and ask, round after round.

    Args:
        items: those evaluated.
        run: has the model answer what the request file holds and the response file does not.

    Raises:
        TaskError: an exemplar whose clip cannot be played.
        RunnerError: from `run`.
    """
    clips, reasons, silent = _clips(plan, items)
    audio = {**clips, **dict.fromkeys(reasons, NO_CLIP)}
    asked = Asked(silent=silent)
    more = first_round(plan, items, audio)
    while more:
        asked.rounds += 1
        asked.planned += more
        undecodable = _undecodable(more, reasons)
        # This round's alone: a failure of an earlier one is not tried again on its way.
        askable = [entry.request for entry in more if entry.request.id not in undecodable]
        write_requests(plan.folder.requests, askable)
        _carry_over(plan, askable)
        known = _answered(plan, askable)
        asked.reused += known
        if known < len(askable):
            run()
        answers = read_responses(plan.folder.responses)
        _assert_answered(plan, askable, answers)
        asked.responses |= {**answers, **undecodable}
        more = plan.task.follow_up(
            asked.planned,
            asked.responses,
            items,
            seed=plan.settings.seed,
            settings=plan.settings.of_task,
            audio=audio,
            model_digest=plan.model_digest,
            exemplars=plan.selection.exemplars,
            clips_per_prompt=plan.card.capabilities.clips_per_prompt,
        )
    sent = [e.request for e in asked.planned if e.request.id not in _undecodable([e], reasons)]
    write_requests(plan.folder.requests, sent)
    return asked


def _carry_over(plan: Plan, askable: Sequence[Request]) -> None:
    """Take the answers to these very requests from this model's folders of the same dataset.

    A corrected label or a row more makes another dataset, in a folder of its own. Where item,
    words, audio, model and seed are the same the request is the same, and so is its answer.

    Raises:
        RunnerError: another process is writing this folder's answers.
    """
    missing = {request.id for request in askable} - _final(plan.folder.responses).keys()
    if not missing:
        return
    found: dict[str, Response] = {}
    for path in plan.folder.answers_of_other_versions():
        # An unreadable file of another folder is no reason not to ask.
        with suppress(ProtocolError):
            found |= {key: answer for key, answer in _final(path).items() if key in missing}
    if not found:
        return
    try:
        answers = AnswerFile(plan.folder.responses)
    except BusyError as error:
        raise RunnerError(str(error)) from error
    with closing(answers):
        answers.append(list(found.values()))


def _assert_answered(
    plan: Plan, askable: Sequence[Request], answers: Mapping[str, Response]
) -> None:
    """Raise RunnerError where a model ended as if all were well and left requests out.

    A request that failed has its status and its reason; one without either was never tried,
    and figures from what is left would be a part that passes for the whole.
    """
    left = sum(request.id not in answers for request in askable)
    if left:
        raise RunnerError(
            f"{plan.card.name} ended without an answer or a reason for {left} of {len(askable)} "
            "requests: something in its adapter ended the process. What it had answered is kept: "
            "the same command goes on where it stopped."
        )


def first_round(plan: Plan, items: pd.DataFrame, audio: Mapping[str, str]) -> list[PlannedRequest]:
    """The requests of all conditions, checked to be about the same items in the same context.

    An item without a clip is planned like any other, so that it has its row and its reason in
    the predictions; its requests are only never sent.
    """
    from core.modality import assert_paired

    planned: list[PlannedRequest] = []
    by_condition: dict[str, dict[str, Request]] = {}
    for condition in plan.settings.conditions:
        entries = plan.task.plan(
            items,
            condition,
            seed=plan.settings.seed,
            settings=plan.settings.of_task,
            audio=audio,
            model_digest=plan.model_digest,
            exemplars=plan.selection.exemplars,
            clips_per_prompt=plan.card.capabilities.clips_per_prompt,
        )
        of_items: dict[str, Request] = {}
        for entry in entries:
            of_items.setdefault(entry.item_id, entry.request)
        by_condition[condition] = of_items
        planned += entries
    assert_paired(by_condition)
    return planned


def _undecodable(
    planned: Sequence[PlannedRequest], reasons: Mapping[str, str]
) -> dict[str, Response]:
    return {
        entry.request.id: Response(entry.request.id, "audio_error", reason=reasons[entry.item_id])
        for entry in planned
        if any(part.get("audio") == NO_CLIP for part in entry.request.parts)
    }


def _clips(plan: Plan, items: pd.DataFrame) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Item id -> clip name, item id -> reason for those that have none, and the silent items.

    Raises:
        TaskError: an exemplar is among the latter, and would be played.
    """
    from core.tasks import TaskError

    if set(plan.settings.conditions) == {"TO"}:
        return {}, {}, []
    clips, reasons, silent = _decoded(plan, items)
    shown = plan.selection.exemplars
    if len(shown) and plan.card.capabilities.clips_per_prompt > len(shown):
        of_exemplars, unplayable, _ = _decoded(plan, shown)
        for item_id, reason in unplayable.items():
            raise TaskError(
                f"exemplars: the clip of {item_id} cannot be played ({reason}); choose others."
            )
        clips |= of_exemplars
    return clips, reasons, silent


def _decoded(plan: Plan, items: pd.DataFrame) -> tuple[dict[str, str], dict[str, str], list[str]]:
    from core.audio import AudioError, prepare_clips

    named = items[items["audio"].notna()]
    sources = [_source(plan.dataset.folder, row) for row in named.to_dict("records")]
    prepared = dict(zip(named["item_id"], prepare_clips(sources, plan.folder.audio), strict=True))
    clips = {k: v.name for k, v in prepared.items() if not isinstance(v, AudioError)}
    reasons = {k: str(v) for k, v in prepared.items() if isinstance(v, AudioError)}
    silent = [
        k
        for k, v in prepared.items()
        if not isinstance(v, AudioError) and v.facts.silent_share == 1
    ]
    without = items.loc[items["audio"].isna(), "item_id"]
    reasons |= dict.fromkeys(without, "the manifest names no audio for it.")
    return clips, reasons, silent


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


def _answered(plan: Plan, askable: Sequence[Request]) -> int:
    return len({request.id for request in askable} & _final(plan.folder.responses).keys())


def _final(responses: Path) -> dict[str, Response]:
    """The answers of a file that asking again would not change, by id."""
    known = read_responses(responses)
    return {key: answer for key, answer in known.items() if answer.status not in FAILED}
