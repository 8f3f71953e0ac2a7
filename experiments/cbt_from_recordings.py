"""Recordings of one's own to a labelled dataset: the four stages, one after the other.

Each stage is a command (cbt_words, cbt_turns, cbt_describe, cbt_labels) with a folder of
its own under `stages`, and is not done twice; what fails is said by the stage it fails in.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from core.datasets.fetching import Wanted, obtain, youtube_id
from experiments import cbt_describe, cbt_labels, cbt_turns, cbt_words
from experiments.cbt_from_release import LazyFetcher
from experiments.options import OptionError

if TYPE_CHECKING:
    from core.audio import Samples
    from core.speech.transcription import Transcription
    from experiments.runners import Job

# Options of build_cbt that the stages take, under the stages' own names.
_WORDS = ("asr", "transcripts", "speakers")
_TURNS = ("roles", "roles_model", "padding", "max_requests")
_DESCRIBED = (
    *("model", "runner", "endpoint", "served_model"),
    *("runs", "max_requests", "price", "dry_run"),
)
_LABELS = ("embedder", "name", "synthetic")
# What an earlier stage has yet to make; each stage looks at it last.
_LATER = ("words:", "turns:", "descriptions:")


@dataclass(frozen=True)
class Scratch:
    """What was asked for: `said` the options' words, the rest checked."""

    said: Mapping[str, str]
    recordings: Path
    downloads: Path
    cookies: Path | None
    pause_s: float
    stages: Path
    output: Path
    labels: str
    track: str

    def folder(self, stage: str) -> Path:
        return self.stages / stage


def from_recordings(
    asked: Scratch,
    *,
    fetch: Callable[[Wanted], Path] | None = None,
    transcriber: Callable[[Samples], Transcription] | None = None,
    run: Callable[[Job], None] | None = None,
) -> int:
    """Run the stages; the first exit code that stops the way, else 0.

    Args:
        fetch, transcriber, run: instead of yt-dlp, the recogniser and the model's runner.

    Raises:
        OptionError: a list of recordings that is none.
        RunnerError: the model that describes cannot be run here.
        TrackingError: the store cannot be used.
    """
    from experiments.asking import way_to

    check(asked.said)
    if asked.labels != "none":
        # Hours of transcribing for a model that nothing here can run would be hours lost.
        way_to(cbt_describe.options_of(_with_defaults(cbt_describe, _DESCRIBED, asked.said)), run)
    recordings, lost = _recordings(asked, fetch)
    words = asked.folder("words")
    code = cbt_words.main(_words(asked, _WORDS, recordings=recordings, output=words), transcriber)
    if code not in (0, 1) or not list(words.glob("*.parquet")):
        return code or 1
    turns = asked.folder("turns")
    into: dict[str, Path | str] = {"words": words, "recordings": recordings, "output": turns}
    into["endpoint"] = asked.said["roles_endpoint"]
    if code := cbt_turns.main(_words(asked, _TURNS, **into)):
        return code
    if asked.labels == "none":
        print(f"{turns}: turns without labels (labels=none); cbt_describe goes on from them.")
        _track(asked, lost, described=False)
        return 0
    described = asked.folder("described")
    if code := cbt_describe.main(_words(asked, _DESCRIBED, turns=turns, output=described), run):
        return code
    if asked.said["dry_run"].lower() == "true":
        return 0
    table = described / "descriptions.csv"
    into = {"descriptions": table, "turns": turns, "output": asked.output}
    if code := cbt_labels.main(_words(asked, _LABELS, **into)):
        return code
    _track(asked, lost, described=True)
    return 0


def check(said: Mapping[str, str]) -> None:
    """Refuse what a later stage would refuse, before hours of an earlier one.

    Raises:
        OptionError: for the first value that is wrong.
    """
    for stage, names in (
        (cbt_turns, _TURNS),
        (cbt_describe, _DESCRIBED),
        (cbt_labels, _LABELS),
    ):
        words = _with_defaults(stage, names, said)
        if stage is cbt_turns:
            words["endpoint"] = said["roles_endpoint"]
        try:
            stage.asked_from(words)
        except OptionError as error:
            if not str(error).startswith(_LATER):
                raise


def _with_defaults(
    stage: ModuleType, names: Sequence[str], said: Mapping[str, str]
) -> dict[str, str]:
    defaults = {name: default for name, (default, _) in stage.OPTIONS.items()}
    return defaults | {name: said[name] for name in names}


def _words(asked: Scratch, names: Sequence[str], **places: Path | str) -> list[str]:
    """A stage's command line; what it does of its own in MLflow is left to the whole."""
    words = {**{name: asked.said[name] for name in names}, **places, "track": "false"}
    return [word for name, value in words.items() for word in (f"--{name}", str(value))]


def _track(asked: Scratch, lost: Mapping[str, str], *, described: bool) -> None:
    if asked.track == "false":
        return
    from experiments import stages
    from experiments.track_build import track_stages

    done = [stages.words_stage(asked.folder("words")), stages.turns_stage(asked.folder("turns"))]
    if described:
        done.append(stages.described_stage(asked.folder("described"), "descriptions"))
        done.append(stages.labels_stage(asked.output))
    note = "\n".join(f"- not had: {name}: {why}" for name, why in lost.items())
    print(track_stages(done, "build_cbt", asked.track, note))


def _recordings(
    asked: Scratch, fetch: Callable[[Wanted], Path] | None
) -> tuple[Path, dict[str, str]]:
    """A folder with every recording, and why others could not be had.

    A list has a file or an address a line, each after `name,` if it is to have a name.
    """
    if asked.recordings.is_dir():
        return asked.recordings, {}
    entries = listed(asked.recordings)
    wanted = [Wanted(name, place) for name, place in entries.items() if "://" in place]
    obtained = obtain(
        wanted,
        [asked.downloads],
        fetch or LazyFetcher(asked.downloads, asked.cookies, asked.pause_s),
        pause_s=asked.pause_s,
        progress=print,
    )
    files = dict(obtained.files)
    lost = {one.session_id: f"{one.kind}: {one.reason}" for one in obtained.lost}
    for name, place in entries.items():
        path = asked.recordings.parent / Path(place).expanduser()
        if "://" not in place and path.is_file():
            files[name] = path
        elif "://" not in place:
            lost[name] = f"there is no file {place}"
            print(f"{name}: {lost[name]}")
    if not files:
        raise OptionError(f"recordings: {asked.recordings} gives no recording ({lost}).")
    folder = asked.folder("recordings")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, path in files.items():
        (folder / f"{name}{path.suffix}").symlink_to(path.resolve())
    return folder, lost


def listed(path: Path) -> dict[str, str]:
    """Name -> file or address, of a list.

    Raises:
        OptionError: no text, no line, or a name twice; says which line.
    """
    found: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise OptionError(f"recordings: {path} is no folder and no list ({error}).") from error
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, comma, place = (word.strip() for word in line.partition(","))
        if not comma:
            name, place = _name_of(line), line
        if not re.fullmatch(r"[\w. -]+", name) or name.startswith("."):
            raise OptionError(
                f"recordings: {path}, line {number}: expected a file, an address, or a name of "
                f"letters and digits, a comma and one of them; found {line!r}."
            )
        if name in found:
            raise OptionError(f"recordings: {path}, line {number}: a second {name!r}; name it.")
        found[name] = place
    if not found:
        raise OptionError(f"recordings: {path} has no line.")
    return found


def _name_of(place: str) -> str:
    if "://" in place:
        return youtube_id(place) or Path(urlsplit(place).path).stem
    return Path(place).stem
