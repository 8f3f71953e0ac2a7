"""Entry point `build_cbt`: CBT-Audio's release and its recordings, as a dataset folder.

The release holds labels, transcripts and times, no sound: recordings are taken from
`--recordings FOLDER`, and fetched with yt-dlp where they are not there. What cannot be
had, and what is odd about a turn, is in data_report.csv; the build goes on with the
rest. Interrupted, or run again later, the same command asks for what is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import (
    OptionError,
    amount,
    existing_file,
    existing_folder,
    read_options,
    truth,
)

if TYPE_CHECKING:
    from core.datasets.fetching import Wanted

OPTIONS = {
    "release": ("", "folder with the release's CSVs, or its id on the hub (CodyWho/cbt-audio)"),
    "revision": ("main", "of the release on the hub"),
    "recordings": ("", "folder with recordings on disk, any format, named by video id"),
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
    "synthetic": ("false", "true where the recordings are nobody's voices"),
    "track": ("true", "false leaves MLflow out"),
}
MOST_PADDING_S = 2.0


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
    track: bool


def main(
    arguments: Sequence[str] | None = None, fetch: Callable[[Wanted], Path] | None = None
) -> int:
    """Build; 2 for a value or a release that is wrong, 1 where not one turn could be had.

    Args:
        fetch: instead of yt-dlp, for whoever has another way to a recording.
    """
    try:
        build = asked(read_options(OPTIONS, arguments, "build_cbt", __doc__))
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
    if not said["release"]:
        raise OptionError("release: give the folder of the release, or CodyWho/cbt-audio.")
    padding_s = amount("padding", said["padding"])
    if padding_s > MOST_PADDING_S:
        raise OptionError(
            f"padding: expected at most {MOST_PADDING_S:g} seconds, found {said['padding']!r}."
        )
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
        synthetic=truth("synthetic", said["synthetic"]),
        track=truth("track", said["track"]),
    )


def _built(build: Build, fetch: Callable[[Wanted], Path] | None) -> int:
    from core.datasets.turns_card import said
    from experiments.cbt_from_release import from_release
    from experiments.track_build import track_build

    made = from_release(build, fetch)
    print(said(made.card))
    print(f"{made.dataset.folder}: hash {made.dataset.hash}")
    print(f"{len(made.report)} findings: {made.report_path}")
    if build.track:
        print(track_build(made))
    # Videos go private: a build of the others is a build, and its card says what it lacks.
    return 0


def _sorry(code: int, why: object) -> int:
    print(f"build_cbt: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
