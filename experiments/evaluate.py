"""`mlflow run . -e evaluate`: one model, one task, one dataset, and what it scores.

Reads the dataset, asks the model what it was not asked yet, scores the answers
and records the run. The same command after an interruption goes on where it stopped.

Exit codes: 0 done; 1 the model, the store or another process was in the way; 2 a
value or the dataset is wrong; 130 and 143 after ctrl-C and SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from experiments.settings import Settings, SettingsError, experiment_name, read_arguments
from experiments.settings import settings_from as checked

PURPOSE = "Evaluate one model on one task and dataset; track the run in MLflow."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        settings = checked(read_arguments(words, "python -m experiments.evaluate", PURPOSE))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    return _guarded(settings)


def _guarded(settings: Settings) -> int:
    from core.audio import AudioError
    from core.dataset import DatasetError
    from core.protocol import ProtocolError
    from core.tasks import TaskError
    from containers.runtime.card import CardError
    from experiments.offline import OfflineError, forbid_connections
    from experiments.parent import Stopped, end_on_signal, end_with_parent
    from experiments.run_folder import FolderInUseError
    from experiments.runners import RunnerError
    from experiments.tracking import TrackingError
    from validation.schemas import TableError

    end_on_signal()
    end_with_parent()
    if settings.offline:
        forbid_connections()
    try:
        run(settings)
    except (SettingsError, CardError, DatasetError, TableError, TaskError) as error:
        return _sorry(2, error)
    except (RunnerError, FolderInUseError, TrackingError, ProtocolError, OfflineError) as error:
        return _sorry(1, error)
    except KeyboardInterrupt:
        return _sorry(130, "Interrupted; the same command goes on where it stopped.")
    except Stopped:
        return _sorry(143, "Ended by SIGTERM; the same command goes on where it stopped.")
    return 0


def run(settings: Settings) -> None:
    """Evaluate and record; everything is checked before the MLflow run is opened."""
    from tempfile import TemporaryDirectory
    from pathlib import Path

    from experiments.evaluation import carry_out, prepare
    from experiments.record import record_of
    from experiments.run_folder import held
    from experiments.tracking import tracked_run, write

    plan = prepare(settings)
    with held(plan.folder), tracked_run(experiment_name(settings)) as tracked:
        evaluation = carry_out(plan)
        with TemporaryDirectory(prefix="undertone-") as staging:
            write(tracked, record_of(evaluation, Path(staging)))


def _sorry(code: int, why: object) -> int:
    print(why, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
