"""Entry point `build_cbt`: a dataset folder from CBT-Audio's release, or from recordings.

With `--release`: the release holds labels, transcripts and times, no sound. Recordings are
taken from `--recordings FOLDER`, and fetched with yt-dlp where they are not there. What
cannot be had, and what is odd about a turn, is in data_report.csv; the build goes on with
the rest.

Without it, from scratch: `--recordings` is a folder, or a list of files and addresses, and
the stages cbt_words, cbt_turns, cbt_describe and cbt_labels run one after the other. Nothing
leaves this machine unless `roles` or `model` names a service, and then `max_requests` has to
allow it.

Interrupted, or run again later, the same command asks for what is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cbt_turns import padding
from experiments.options import (
    TRACK,
    TRACK_CHOICES,
    OptionError,
    amount,
    existing_file,
    existing_folder,
    one_of,
    read_options,
    truth,
)

if TYPE_CHECKING:
    from core.audio import Samples
    from core.datasets.fetching import Wanted
    from core.speech.transcription import Transcription
    from experiments.runners import Job

OPTIONS = {
    "release": ("", "folder with the release's CSVs, or its id on the hub (CodyWho/cbt-audio)"),
    "revision": ("main", "of the release on the hub"),
    "recordings": (
        "",
        "folder with recordings, any format, named by video id or session; without a release also "
        "a list: a file or an address a line",
    ),
    "fetch": ("true", "false fetches nothing that is not on disk"),
    "downloads": ("outputs/recordings", "folder that keeps what was fetched"),
    "cookies": ("", "cookies.txt of a browser, for videos that ask for an account"),
    "pause": ("5", "seconds between two fetches"),
    "padding": ("0", "seconds kept before and after each turn, 2 at most; the study has none"),
    "listen": ("false", "true lets Whisper hear the clips and lists those that say something else"),
    "skip_invalid": (
        "false",
        "true leaves out and counts rows of the release that are wrong",
    ),
    "output": ("outputs/cbt-audio", "dataset folder to write"),
    "name": ("cbt-audio", "the dataset's name"),
    "synthetic": (
        "auto",
        "true where the recordings are nobody's voices; auto: where a recording has the true "
        "turns beside it that render_sessions writes",
    ),
    "asr": ("offline", "from scratch: offline (here, on the CPU) or whisperx (in its image)"),
    "transcripts": ("", "from scratch: folder of WhisperX's <session>.json, in place of asr"),
    "speakers": ("", "from scratch, of whisperx: how many there are, 2 or 2-3"),
    "roles": (
        "offline",
        "from scratch: offline (here), claude (transcripts are sent to Anthropic), endpoint (a "
        "language model of yours), or a CSV",
    ),
    "roles_model": ("", "from scratch: the model asked about roles"),
    "roles_endpoint": ("", "from scratch, for roles=endpoint: http://host:8000/v1"),
    "labels": ("ssr", "from scratch: ssr, or none to stop at turns without labels"),
    "model": (
        "voxtral",
        "from scratch, who describes: a folder of containers/ (here), or gpt-audio-1.5 (clips and "
        "contexts are sent to OpenAI)",
    ),
    "runner": ("auto", "from scratch: where the model runs: process, docker, server"),
    "endpoint": ("", "from scratch, for runner=server: http://host:8000/v1"),
    "served_model": ("", "from scratch, for runner=server: the model's name there"),
    "runs": ("3", "from scratch: descriptions a turn"),
    "embedder": ("offline", "from scratch: offline (MiniLM, here) or bge-m3 (the study's)"),
    "max_requests": ("0", "from scratch: requests that roles, and model, may send away, each"),
    "price": ("0", "from scratch: US dollars for a minute of audio, for the estimate"),
    "dry_run": ("false", "from scratch: true says what describing would take, and asks nothing"),
    "stages": ("outputs/cbt-stages", "from scratch: folder of what each stage leaves"),
    **TRACK,
}
# What only one of the two ways takes.
OF_A_RELEASE = ("revision", "fetch", "listen", "skip_invalid")
FROM_SCRATCH = (
    *("asr", "transcripts", "speakers", "roles", "roles_model", "roles_endpoint", "labels"),
    *("model", "runner", "endpoint", "served_model", "runs", "embedder"),
    *("max_requests", "price", "dry_run", "stages"),
)


@dataclass(frozen=True)
class Build:
    """What was asked for, checked."""

    release: str
    revision: str
    recordings: Path | None
    fetch: bool
    downloads: Path
    cookies: Path | None
    pause_s: float
    padding_s: float
    listen: bool
    skip_invalid: bool
    output: Path
    name: str
    synthetic: bool
    track: str


def main(
    arguments: Sequence[str] | None = None,
    fetch: Callable[[Wanted], Path] | None = None,
    transcriber: Callable[[Samples], Transcription] | None = None,
    run: Callable[[Job], None] | None = None,
) -> int:
    """Build; 2 for a value or a release that is wrong, 1 where not one turn could be had.

    Args:
        fetch: instead of yt-dlp, for whoever has another way to a recording.
        transcriber, run: instead of the recogniser and the model's runner, from scratch.
    """
    try:
        said = read_options(OPTIONS, arguments, "build_cbt", __doc__)
        if not said["release"]:
            return _from_scratch(said, fetch, transcriber, run)
        build = asked(said)
    except OptionError as error:
        return _sorry(2, error)
    from core.dataset import DatasetError
    from core.datasets.fetching import FetchError
    from core.speech.engine import SpeechError
    from experiments.cbt_from_release import NothingObtainedError
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one
    from experiments.tracking import TrackingError
    from validation.schemas import TableError

    try:
        with only_one(build.output, "build_cbt"):
            return _built(build, fetch)
    except (OptionError, DatasetError, TableError) as error:
        return _sorry(2, error)
    except (FetchError, SpeechError, TrackingError, NothingObtainedError) as error:
        return _sorry(1, error)
    except FolderInUseError as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, build.output))
    except KeyboardInterrupt:
        return _sorry(130, "interrupted; the same command goes on from here.")


def asked(said: dict[str, str]) -> Build:
    """The options, checked; raises OptionError for the first that is wrong."""
    _only(said, FROM_SCRATCH, "leave release= out to make turns and labels from recordings")
    padding_s = padding(said["padding"])
    output = Path(said["output"]).expanduser()
    if output.exists() and not output.is_dir():
        raise OptionError(f"output: {said['output']!r} is a file; give a folder.")
    if not said["name"]:
        raise OptionError("name: expected a name, found nothing.")
    return Build(
        release=said["release"],
        revision=said["revision"],
        recordings=(
            existing_folder("recordings", said["recordings"]) if said["recordings"] else None
        ),
        fetch=truth("fetch", said["fetch"]),
        downloads=Path(said["downloads"]).expanduser(),
        cookies=existing_file("cookies", said["cookies"]) if said["cookies"] else None,
        pause_s=amount("pause", said["pause"]),
        padding_s=padding_s,
        listen=truth("listen", said["listen"]),
        skip_invalid=truth("skip_invalid", said["skip_invalid"]),
        output=output,
        name=said["name"],
        synthetic=_is_synthetic(said["synthetic"], said["recordings"]),
        track=one_of("track", said["track"], TRACK_CHOICES),
    )


def _is_synthetic(said: str, recordings: str) -> bool:
    from core.speech.true_turns import SIDECAR

    if said != "auto":
        return truth("synthetic", said)
    return bool(recordings) and any(Path(recordings).expanduser().glob(f"*{SIDECAR}"))


def _only(said: Mapping[str, str], others: Sequence[str], advice: str) -> None:
    """Refuse an option of the other way: it would be taken for done."""
    for name in others:
        if said[name] != OPTIONS[name][0]:
            way = "a build from scratch" if name in FROM_SCRATCH else "a build from a release"
            raise OptionError(f"{name}: only {way} takes it; {advice}.")


def _from_scratch(
    said: dict[str, str],
    fetch: Callable[[Wanted], Path] | None,
    transcriber: Callable[[Samples], Transcription] | None,
    run: Callable[[Job], None] | None,
) -> int:
    """Without a release; raises OptionError for the first value that is wrong."""
    from experiments.cbt_from_recordings import Scratch, from_recordings
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one
    from experiments.runners import RunnerError
    from experiments.tracking import TrackingError

    if not said["recordings"]:
        raise OptionError(
            "release or recordings: give release= (the folder of the release, or "
            "CodyWho/cbt-audio), or recordings= alone to start from scratch."
        )
    _only(said, OF_A_RELEASE, "give release=, or leave it out")
    place = Path(said["recordings"]).expanduser()
    if not place.exists():
        raise OptionError(f"recordings: there is no folder or list {said['recordings']!r}.")
    # Not over a build of the release.
    for name, own in (("output", "outputs/cbt-own"), ("name", "cbt-own")):
        said = {**said, name: own} if said[name] == OPTIONS[name][0] else said
    synthetic = _is_synthetic(said["synthetic"], said["recordings"])
    said = {**said, "synthetic": str(synthetic).lower()}
    scratch = Scratch(
        said=said,
        recordings=place,
        downloads=Path(said["downloads"]).expanduser(),
        cookies=existing_file("cookies", said["cookies"]) if said["cookies"] else None,
        pause_s=amount("pause", said["pause"]),
        stages=Path(said["stages"]).expanduser(),
        output=Path(said["output"]).expanduser(),
        labels=one_of("labels", said["labels"], ("ssr", "none")),
        track=one_of("track", said["track"], TRACK_CHOICES),
    )
    try:
        with only_one(scratch.stages, "build_cbt"):
            return from_recordings(scratch, fetch=fetch, transcriber=transcriber, run=run)
    except (RunnerError, FolderInUseError, TrackingError) as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, scratch.stages))


def _built(build: Build, fetch: Callable[[Wanted], Path] | None) -> int:
    from core.datasets.turns_card import said
    from experiments.cbt_from_release import from_release
    from experiments.track_build import track_build

    made = from_release(build, fetch)
    print(said(made.card))
    print(f"{made.dataset.folder}: hash {made.dataset.hash}")
    print(f"{len(made.report)} findings: {made.report_path}")
    if build.track != "false":
        print(track_build(made))
    # Videos go private: a build of the others is a build, and its card says what it lacks.
    return 0


def _sorry(code: int, why: object) -> int:
    print(f"build_cbt: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
