"""Entry point `log_results`: gives MLflow what runs found while its server was away.

An evaluation keeps its whole record in `unlogged/` beside its results until MLflow has it.
This takes each record below `--output` to the run it was opened for, which ends as FINISHED;
where the store has no such run, to a new one. No model is loaded and no dataset read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_folder, read_options

if TYPE_CHECKING:
    from experiments.unlogged import Unlogged

OPTIONS = {
    "output": ("outputs", "folder of the runs, or of the results of one"),
    "run": ("", "MLflow id of the one run that is to be completed; all by default"),
}
LATER_TAG = "undertone.logged_later"


def main(arguments: Sequence[str] | None = None) -> int:
    """Complete runs; 2 for a value that is wrong, 1 where the store or a process was in the way."""
    try:
        said = read_options(OPTIONS, arguments, "log_results", __doc__)
        output = existing_folder("output", said["output"])
    except OptionError as error:
        return _sorry(2, error)
    from experiments.output_lock import FolderInUseError, disk_sentence
    from experiments.store import TrackingError
    from experiments.unlogged import UnloggedError

    try:
        waiting = _waiting(output, said["run"])
        if not waiting:
            print(f"{output}: MLflow lacks nothing of what was found here.")
        for each in waiting:
            print(_completed(each))
    except OptionError as error:
        return _sorry(2, error)
    except (TrackingError, UnloggedError, FolderInUseError) as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, output))
    return 0


def _waiting(output: Path, run_id: str) -> list[Unlogged]:
    """The records below a folder; with an id given, of that run alone.

    Raises:
        OptionError: none is of that run.
        UnloggedError: a record that is none.
    """
    from experiments import unlogged

    waiting = [unlogged.read(results) for results in unlogged.below(output)]
    if not run_id:
        return waiting
    of_run = [each for each in waiting if each.run_id == run_id]
    if not of_run:
        known = ", ".join(each.run_id for each in waiting) or "none"
        raise OptionError(f"run: no record of {run_id!r} below {output}; there are: {known}.")
    return of_run


def _completed(found: Unlogged) -> str:
    """Give MLflow one record; returns what to print."""
    from datetime import UTC, datetime

    from experiments import recorded, unlogged
    from experiments.output_lock import only_one
    from experiments.store_place import WITH_SOUND, stays_here
    from experiments.tracking import completed_run, how_to_look, write

    # A run that goes on at this moment would write the same record.
    with only_one(_locked(found.results), "log_results"):
        with completed_run(found.experiment, found.run_id) as run:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            found.record.tags[LATER_TAG] = now
            # This store need not be the one the record was made for.
            if not stays_here(run.uri, run.artifacts):
                (found.results / unlogged.FOLDER / unlogged.FILES / WITH_SOUND).unlink(True)
            write(run, found.record)
        known = recorded.Recorded(found.outcome, run.uri, run.experiment_id, run.run_id)
        recorded.note(found.results, known)
        unlogged.discard(found.results)
    which = "completed" if run.run_id == found.run_id else f"new, for {found.run_id}, not there"
    look = how_to_look(run.uri, run.experiment_id, leaderboard=run.leaderboard)
    return f"{found.results}: run {run.run_id} ({which}): {found.record.name}\nlook:  {look}"


def _locked(results: Path) -> Path:
    """The folder whose lock the results are under: a try of a few items lies inside it."""
    return results.parent if results.name.startswith("limit-") else results


def _sorry(code: int, why: object) -> int:
    print(f"log_results: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
