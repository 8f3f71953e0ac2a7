"""A release of CBT-Audio to a dataset folder, its card and its data report.

Release rows are checked, recordings obtained, turns cut; every turn of the release ends
in the manifest or in the report as lost, so that both come to what was released.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from core.dataset import Dataset, write_dataset
from core.datasets import cbt
from core.datasets.cutting import Cut, Finding, cut, odd_times, without_leaks
from core.datasets.fetching import MEANING, Obtained, Wanted, obtain, yt_dlp_fetcher
from core.datasets.misheard import misheard
from core.datasets.turns_card import TurnsCard, said, turns_card
from core.faults import Fault
from core.replacing import replace_text
from core.speech.listening import recogniser
from experiments.build_cbt import Build
from experiments.options import OptionError
from experiments.spoken_files import REPORT, write_report, write_table
from validation.releases import release_recordings, release_turns, sound_rows

CARD = "card.md"
TIMES = "times.csv"
MEANINGS: dict[str, str] = {
    **{str(kind): meaning for kind, meaning in MEANING.items()},
    "invalid_row": "a row of the release that is wrong, left out with skip_invalid=true",
    "unreadable": "the file of the recording cannot be decoded",
    "zero_length": "the turn has no length",
    "past_the_end": "more than a tenth of the turn is past the end of its recording",
    "context_holds_transcript": "the context holds the turn's own words",
}


class NothingObtainedError(RuntimeError):
    """Not one turn could be had; the message gives the first reason."""


@dataclass(frozen=True)
class Made:
    """A dataset that was built."""

    dataset: Dataset
    card: TurnsCard
    report: pd.DataFrame
    report_path: Path


def from_release(build: Build, fetch: Callable[[Wanted], Path] | None = None) -> Made:
    """Build the dataset; see `experiments.build_cbt`.

    Raises:
        DatasetError, TableError: the release is not one, or has wrong rows.
        FetchError: yt-dlp is needed and not installed.
        NothingObtainedError: no turn is left; the report is written all the same.
    """
    release = cbt.read_release(_release_folder(build))
    recordings, turns, findings = _checked(release, build.skip_invalid)
    items, leaks = without_leaks(cbt.items_of(turns))
    findings += [*leaks, *odd_times(items)]
    obtained, losses = _obtained(build, items, recordings, fetch)
    made = cut(items, obtained.files, build.output, padding_s=build.padding_s, progress=_note)
    findings += [*losses, *made.findings]
    if build.listen and made.rows:
        findings += misheard(build.output, pd.DataFrame(made.rows), recogniser())
    return _written(build, release, made, findings)


def _checked(
    release: cbt.Release, skip_invalid: bool
) -> tuple[pd.DataFrame, pd.DataFrame, list[Finding]]:
    """Sound rows of both tables, and a finding for each turn left out."""
    recordings, _ = sound_rows(
        release.recordings.frame,
        release.recordings.faults,
        release_recordings(),
        str(release.recordings.path),
        skip_invalid=skip_invalid,
    )
    source = str(release.turns.path)
    turns, faults = sound_rows(
        release.turns.frame,
        release.turns.faults,
        release_turns(),
        source,
        skip_invalid=skip_invalid,
    )
    firsts: dict[int | None, Fault] = {}
    for fault in faults:
        firsts.setdefault(fault.row, fault)
    findings = [
        Finding(None, None, "invalid_row", fault.said(release.turns.path.name), 1, kept=False)
        for fault in firsts.values()
    ]
    return recordings, turns, findings


def _obtained(
    build: Build,
    items: pd.DataFrame,
    recordings: pd.DataFrame,
    fetch: Callable[[Wanted], Path] | None,
) -> tuple[Obtained, list[Finding]]:
    sizes = {str(name): int(n) for name, n in items["session_id"].value_counts().items()}
    wanted = [
        Wanted(str(row["video_id"]), str(row["youtube_url"]))
        for row in recordings.to_dict("records")
        if row["video_id"] in sizes
    ]
    if build.fetch and fetch is None:
        fetch = LazyFetcher(build.downloads, build.cookies, build.pause_s)
    folders = [folder for folder in (build.recordings, build.downloads) if folder is not None]
    obtained = obtain(
        wanted,
        folders,
        fetch if build.fetch else None,
        pause_s=build.pause_s,
        progress=_note,
    )
    lost: list[tuple[str, str, str]] = [
        (one.session_id, one.kind, one.reason) for one in obtained.lost
    ]
    unlisted = sorted(set(sizes) - {one.session_id for one in wanted})
    lost += [(name, "invalid_row", "its row of the recordings was left out") for name in unlisted]
    return obtained, [
        Finding(None, name, kind, reason, sizes[name], kept=False) for name, kind, reason in lost
    ]


def _written(build: Build, release: cbt.Release, made: Cut, findings: list[Finding]) -> Made:
    build.output.mkdir(parents=True, exist_ok=True)
    report = write_report(build.output, findings)
    report_path = build.output / REPORT
    if not made.rows:
        reason = next((one.found for one in findings if not one.kept), "the release has no turn")
        raise NothingObtainedError(f"no turn could be had ({reason}); see {report_path}.")
    items = pd.DataFrame(made.rows)
    released = (len(release.turns.frame), len(release.recordings.frame))
    card = turns_card(
        build.name, items, *released, findings, meanings=MEANINGS, notes=_notes(build, released)
    )
    write_table(build.output / TIMES, pd.DataFrame(made.times))
    replace_text(build.output / CARD, said(card) + "\n")
    dataset = write_dataset(
        build.output,
        items,
        name=build.name,
        task="distress",
        manifest="turns",
        licence=cbt.LICENCE,
        source=f"release of CBT-Audio ({build.release}), recordings of their owners",
        synthetic=build.synthetic,
        about={
            "released": card.released,
            "recordings": card.recordings,
            "released_recordings": card.released_recordings,
            "release_sha256": release.sha256,
            "padding_s": build.padding_s,
            "seconds": round(float(items["seconds"].sum()), 2),
            "mean_s": round(card.mean_s, 3),
            "median_s": round(card.median_s, 3),
            "lost": {loss.kind: loss.turns for loss in card.losses},
            "kept_findings": card.kept_findings,
        },
    )
    return Made(dataset, card, report, report_path)


def _notes(build: Build, released: tuple[int, int]) -> list[str]:
    notes = []
    if released == (cbt.PUBLISHED_TURNS, cbt.PUBLISHED_RECORDINGS):
        notes.append(
            f"published: {cbt.PUBLISHED_HOURS} h, mean {cbt.PUBLISHED_MEAN_S} s, median "
            f"{cbt.PUBLISHED_MEDIAN_S} s over all {cbt.PUBLISHED_TURNS:,} turns"
        )
    if build.padding_s:
        notes.append(f"padding: {build.padding_s:g} s on each side; the study has none")
    if build.synthetic:
        notes.append("synthetic: nobody's voices")
    return notes


class LazyFetcher:
    """yt-dlp, looked for only when a recording has to be fetched."""

    def __init__(self, downloads: Path, cookies: Path | None, pause_s: float) -> None:
        self._words = (downloads, cookies, pause_s)
        self._fetch: Callable[[Wanted], Path] | None = None

    def __call__(self, wanted: Wanted) -> Path:
        if self._fetch is None:
            self._fetch = yt_dlp_fetcher(*self._words)
        return self._fetch(wanted)


def _release_folder(build: Build) -> Path:
    folder = Path(build.release).expanduser()
    if folder.is_dir():
        return folder
    parts = build.release.split("/")
    if len(parts) != 2 or not all(parts) or build.release.startswith((".", "~")):
        raise OptionError(f"release: there is no folder {build.release!r}.")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise OptionError(
            f"release: there is no folder {build.release!r}, and to get it from the hub "
            "huggingface-hub is needed: pip install -e '.[docker]'."
        ) from error
    try:
        return Path(
            snapshot_download(
                build.release,
                repo_type="dataset",
                revision=build.revision,
                allow_patterns=["data/*.csv"],
            )
        )
    except Exception as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise OptionError(
            f"release: no folder {build.release!r}, and the hub did not give it ({first_line})."
        ) from error


def _note(line: str) -> None:
    print(line, file=sys.stderr)
