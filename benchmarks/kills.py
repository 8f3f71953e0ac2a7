"""What SIGKILL costs: each kind of work is killed at random moments, gone on with and compared.

    python -m benchmarks.kills [--moments 50] [--seed 1] [--only evaluate ...]

Each trial has a folder of its own. The work is killed at a random moment, started again by the
same command, and once more when all is done. Every other moment is drawn from the length of an
undisturbed run; since most of that is preparation and tables, the others are drawn from its
progress: so many answers or turns on the disk, and up to 50 ms more.

A row of the table counts the moments (before the first answer or turn was on the disk, between,
after the last), and over all trials what was lost, what was done twice, in how many the final
figures were others than the undisturbed run's, and in how many a model was started although
all was done. Exit code 0 only if the last four are 0 everywhere. Kills that came when the
victim was not there (its work over, or not begun) are counted as missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.killable import ALL, PRELOAD, Work, carried_out, loads, start_store, twice

SLICE_S = 0.002
LONGEST_S = 300.0


@dataclass
class Tally:
    """What all trials of one kind of work came to."""

    work: str
    before: int = 0
    between: int = 0
    after: int = 0
    missed: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    loaded: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.different or self.loaded or self.faults)


@dataclass(frozen=True)
class Ground:
    """Where trials take place.

    Attributes:
        folder: of all of them.
        store: MLflow's, shared by all.
        forking: makes processes by forking one that has imported everything.
    """

    folder: Path
    store: str
    forking: Any


@dataclass(frozen=True)
class Moment:
    """So many seconds after so much was done."""

    done: int = 0
    after_s: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where anything was lost, doubled, different or loaded in vain."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--moments", type=int, default=50, help="kills of each kind of work")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--only", nargs="*", help="names of kinds of work; all by default")
    asked = parser.parse_args(arguments)
    chosen = [work for work in ALL if not asked.only or work.name in asked.only]
    header = "work", "before", "between", "after", "missed", "lost", "doubled", "different", "loads"
    print(("{:<16}" + "{:>10}" * 8).format(*header))
    tallies = []
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        ground = ground_in(Path(name))
        for work in chosen:
            tally = kill_often(work, ground, asked.moments, asked.seed)
            row = tally.before, tally.between, tally.after, tally.missed
            row = *row, tally.lost, tally.doubled, tally.different, tally.loaded
            print(("{:<16}" + "{:>10}" * 8).format(work.name, *row), flush=True)
            for fault in tally.faults:
                print(f"  {fault}")
            tallies.append(tally)
    return 0 if all(tally.is_clean for tally in tallies) else 1


def ground_in(folder: Path) -> Ground:
    """A folder made ready: its store has its tables."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(PRELOAD)
    ground = Ground(folder, f"sqlite:///{folder}/mlflow.db", forking)
    _finish(start_store, folder / "store", ground)
    return ground


def kill_often(work: Work, ground: Ground, moments: int, seed: int) -> Tally:
    """Kill at so many random moments, go on after each, and count what it cost."""
    undisturbed = ground.folder / work.name / "undisturbed"
    seconds = _finish(work.start, undisturbed, ground)
    expected, whole = work.found(undisturbed), sorted(work.done(undisturbed))
    drawn = random.Random(f"{seed}/{work.name}")
    tally = Tally(work.name)
    for number in range(moments):
        place = ground.folder / work.name / str(number)
        if number % 2:
            moment = Moment(after_s=drawn.uniform(0.0, 1.05) * seconds)
        else:
            moment = Moment(drawn.randint(0, len(whole)), drawn.uniform(0.0, 0.05))
        had = _killed(work, place, moment, ground)
        if had is None:
            tally.missed += 1
        elif not had:
            tally.before += 1
        elif len(had) < len(whole):
            tally.between += 1
        else:
            tally.after += 1
        _look(work, place, expected, whole, tally, ground)
    return tally


def _look(
    work: Work, place: Path, expected: Any, whole: list[str], tally: Tally, ground: Ground
) -> None:
    """Go on, go on again when all is done, and count."""
    try:
        _finish(work.start, place, ground)
        started = loads(place)
        done = work.done(place)
        tally.lost += len(set(whole) - set(done))
        tally.doubled += len(twice(done))
        tally.different += work.found(place) != expected
        _finish(work.start, place, ground)
        tally.loaded += loads(place) != started
        tally.different += work.found(place) != expected
    except Exception as error:
        said = (place / "said.txt").read_text(errors="replace").splitlines()[-5:]
        tally.faults.append(f"{place.name}: {error!r}: {' | '.join(said)}")


def _finish(start: Callable[[Path], int], place: Path, ground: Ground) -> float:
    """Run to the end; gives its seconds.

    Raises:
        RuntimeError: it did not end well.
    """
    started = time.perf_counter()
    process = ground.forking.Process(target=carried_out, args=(start, place, ground.store))
    process.start()
    process.join(LONGEST_S)
    if process.exitcode != 0:
        raise RuntimeError(f"{place} ended with {process.exitcode}")
    return time.perf_counter() - started


def _killed(work: Work, place: Path, moment: Moment, ground: Ground) -> list[str] | None:
    """Start, kill at the moment; gives what was done by then, None where nobody was there.

    A victim that is not there at the moment, having not begun, is waited for.

    Raises:
        RuntimeError: a process whose model was killed did not say so.
    """
    started = time.perf_counter()
    process = ground.forking.Process(target=carried_out, args=(work.start, place, ground.store))
    process.start()
    while process.exitcode is None and len(work.done(place)) < moment.done:
        process.join(SLICE_S)
    process.join(moment.after_s)
    victims: list[Any] = []
    while process.exitcode is None and not victims:
        victims = work.victims(process.pid, place)
        process.join(SLICE_S if not victims else 0)
        if time.perf_counter() - started > LONGEST_S:
            process.kill()
    had = work.done(place)
    for kill in victims:
        # It may have ended at this very moment.
        with suppress(Exception):
            kill()
    process.join(LONGEST_S)
    if not victims or process.exitcode == 0:
        return None
    if work.survives and process.exitcode != 1:
        raise RuntimeError(f"{work.name}: its process ended with {process.exitcode}")
    return had


if __name__ == "__main__":
    sys.exit(main())
