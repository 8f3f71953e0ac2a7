"""Dialogues to clips, in two phases that can each be interrupted and run again.

Phase 1 has every turn spoken into a folder of kept turns; phase 2 composes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from core.datasets.dialogue import Dialogue
from core.speech.compose import Clip, SpokenTurn, compose
from core.speech.engine import AccountError, Engine, SpeechError, speakable, turn_key
from core.speech.turns import keep_turn, spoken_turn, turn_path
from core.speech.voices import Voice, assign_voices

Casting = Mapping[str, Mapping[str, Voice]]


@dataclass(frozen=True)
class Job:
    """A turn to be spoken; `voice` is the provider's id."""

    text: str
    voice: str


@dataclass
class Phase1:
    """What came of phase 1.

    Attributes:
        spoken, kept: turns asked of the engine now, and found from before.
        characters: of the turns spoken now.
        failures: turn key -> reason.
        stopped: why the engine was asked no more, or None.
    """

    spoken: int = 0
    kept: int = 0
    characters: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None


def cast(dialogues: Iterable[Dialogue], pool: Sequence[Voice], seed: int) -> Casting:
    """dialogue id -> speaker -> voice.

    Raises:
        SpeechError: a dialogue with more speakers than voices.
    """
    return {d.dialogue_id: assign_voices(d.dialogue_id, d.speakers, pool, seed) for d in dialogues}


def jobs(dialogues: Iterable[Dialogue], casting: Casting) -> list[Job]:
    """Every turn that has words, in order; equal words in the same voice once."""
    found: dict[Job, None] = {}
    for dialogue in dialogues:
        for speaker, text in dialogue.turns:
            if speakable(text):
                found[Job(speakable(text), casting[dialogue.dialogue_id][speaker].id)] = None
    return list(found)


def missing(engine: Engine, asked: Iterable[Job], kept: Path) -> list[Job]:
    """The turns that have no file yet."""
    return [job for job in asked if not turn_path(engine, job.text, job.voice, kept).exists()]


def speak(
    engine: Engine,
    asked: Sequence[Job],
    kept: Path,
    workers: int = 1,
    progress: Callable[[Phase1, int], None] | None = None,
) -> Phase1:
    """Phase 1: have every turn's file; a failure is noted and the others go on.

    A used-up quota stops it: turns being spoken end, no further one is begun.
    """
    result = Phase1()
    todo = missing(engine, asked, kept)
    result.kept = len(asked) - len(todo)
    with ThreadPoolExecutor(workers) as pool:
        queue = iter(todo)
        running: dict[Future[bool], Job] = {}
        while True:
            # Only as many in flight as workers: a stop leaves nothing queued behind it.
            free = 0 if result.stopped else workers - len(running)
            for job in islice(queue, free):
                running[pool.submit(keep_turn, engine, job.text, job.voice, kept)] = job
            if not running:
                return result
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                _note(result, engine, running.pop(future), future)
                if progress:
                    progress(result, len(todo))


def clips(
    engine: Engine, dialogues: Iterable[Dialogue], casting: Casting, kept: Path
) -> Iterator[tuple[Dialogue, Clip]]:
    """Phase 2: each dialogue whose turns are all there, composed; one in memory at a time."""
    for dialogue in dialogues:
        voices = casting[dialogue.dialogue_id]
        if missing(engine, jobs([dialogue], casting), kept):
            continue
        turns = [
            SpokenTurn(
                speaker,
                voices[speaker].name if speaker else "",
                text,
                spoken_turn(engine, text, voices[speaker].id if speaker else "", kept),
            )
            for speaker, text in dialogue.turns
        ]
        yield dialogue, compose(turns)


def unspoken(
    engine: Engine, dialogue: Dialogue, casting: Casting, kept: Path, result: Phase1
) -> str | None:
    """Why a dialogue could not be composed, or None."""
    for job in missing(engine, jobs([dialogue], casting), kept):
        key = turn_key(engine, job.text, job.voice)
        return result.failures.get(key, result.stopped or "a turn was not spoken")
    return None


def _note(result: Phase1, engine: Engine, job: Job, future: Future[bool]) -> None:
    try:
        future.result()
    except AccountError as error:
        result.stopped = str(error)
    except SpeechError as error:
        result.failures[turn_key(engine, job.text, job.voice)] = str(error)
    else:
        result.spoken += 1
        result.characters += len(job.text)
