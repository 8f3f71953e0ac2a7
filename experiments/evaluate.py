"""`mlflow run . -e evaluate`: one model, one task, one dataset, and what it scores.

Reads the dataset, asks the model what it was not asked yet, scores the answers
and records the run. The same command after an interruption goes on where it stopped.
Several models, with commas between, are as many evaluations (`experiments.several`).

Exit codes: 0 done; 1 the model, the store or another process was in the way; 2 a
value or the dataset is wrong; 130 and 143 after ctrl-C and SIGTERM.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from experiments.settings import Settings, SettingsError, experiment_name, read_arguments
from experiments.settings import settings_from as checked
from experiments.several import each_model, run_each

if TYPE_CHECKING:
    from experiments.evaluation import Evaluation, Plan
    from experiments.recorded import Recorded
    from experiments.tracking import TrackedRun

PURPOSE = "Evaluate one model on one task and dataset; track the run in MLflow."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        each = each_model(read_arguments(words, "python -m experiments.evaluate", PURPOSE))
        settings = [checked(one) for one in each]
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    if len(settings) > 1:
        return run_each(each, settings)
    return _guarded(settings[0])


def _guarded(settings: Settings) -> int:
    from containers.runtime.card import CardError
    from core.dataset import DatasetError
    from core.protocol import ProtocolError
    from core.tasks import TaskError
    from experiments.offline import OfflineError, forbid_connections
    from experiments.output_lock import FolderInUseError, disk_sentence
    from experiments.parent import Stopped, end_on_signal, end_with_parent
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
    except OSError as error:
        return _sorry(1, disk_sentence(error, settings.output))
    except KeyboardInterrupt:
        return _sorry(130, "Interrupted; the same command goes on where it stopped.")
    except Stopped:
        return _sorry(143, "Ended by SIGTERM; the same command goes on where it stopped.")
    return 0


def run(settings: Settings) -> None:
    """Evaluate and record; everything is checked before the MLflow run is opened."""
    from experiments import finished
    from experiments.basis import basis_of
    from experiments.shown import show, shown_of

    basis = basis_of(settings)
    if stands := finished.find(settings, basis):
        show(stands.shown, finished.asked_again(stands), _look(stands.known))
        return
    from experiments.evaluation import prepare
    from experiments.run_folder import held

    plan = prepare(settings)
    with held(plan.folder):
        repaired = _repaired(plan)
        found, store, known = _carried_out(plan, repaired)
        shown = shown_of(found)
        # What was repaired is said once.
        if not repaired:
            finished.remember(found, shown, basis)
    show(shown, _effort(found, store), _look(known))


def _carried_out(plan: Plan, repaired: Sequence[str]) -> tuple[Evaluation, str, Recorded]:
    """The evaluation, how it came to stand in MLflow, and where it stands."""
    from experiments import recorded
    from experiments.evaluation import carry_out

    if known := recorded.find(plan.folder, plan.settings):
        found = carry_out(plan)
        if known.outcome == recorded.outcome(plan.folder, plan.settings):
            return found, f"in MLflow since an earlier run ({known.run_id})", known
    return _tracked(plan, repaired)


def _tracked(plan: Plan, repaired: Sequence[str]) -> tuple[Evaluation, str, Recorded]:
    """As `_carried_out`, in an MLflow run that is opened for it."""
    from experiments import recorded
    from experiments.evaluation import carry_out
    from experiments.runners import RunnerError
    from experiments.shown import show, shown_of
    from experiments.store_place import stays_here
    from experiments.tracking import TrackingError, tracked_run

    settings = plan.settings
    experiment = experiment_name(settings)
    found: Evaluation | None = None
    try:
        with tracked_run(experiment, recorded.earlier(plan.folder, settings)) as tracked:
            recorded.note_opening(plan.folder, settings, tracked)
            # Asked now: at the end the store may not answer.
            sound = stays_here(tracked.uri, tracked.artifacts)
            try:
                found = carry_out(plan)
            except RunnerError:
                # The reason a model failed is in what its container printed; a store that
                # cannot take it must not take the reason's place.
                with suppress(Exception):
                    if plan.folder.log.exists():
                        tracked.client.log_artifact(tracked.run_id, str(plan.folder.log))
                raise
            found.notes = [*found.notes, *repaired]
            outcome = _write(found, tracked, experiment, sound=sound)
    except TrackingError as error:
        if found is None:
            raise
        complete = _how_to_complete(plan)
        show(shown_of(found), _effort(found, "not in MLflow yet"), complete)
        raise TrackingError(
            f"{error} The whole record is kept too; it alone is completed with: {complete}"
        ) from error
    store = f"MLflow: opened in {tracked.opening_s:.1f} s, written in {tracked.writing_s:.1f} s"
    return found, store, _is_written(plan, tracked, outcome)


def _look(known: Recorded) -> str:
    from experiments.tracking import how_to_look

    return how_to_look(known.uri, known.experiment_id)


def _repaired(plan: Plan) -> list[str]:
    """What was repaired of the answers, shown at once; no lines where all was whole."""
    from experiments.answer_file import repaired

    if told := repaired(plan.folder.responses):
        print(told, file=sys.stderr)
    return [told] if told else []


def _write(evaluation: Evaluation, tracked: TrackedRun, experiment: str, *, sound: bool) -> str:
    """Give MLflow all that was found, from a record that stays until MLflow has it.

    Returns the digest of what was found, see `recorded.outcome`.

    Args:
        sound: whether clips may go along; voices under a licence of their own are not sent to
            another machine.
    """
    from experiments import recorded, unlogged
    from experiments.record import record_of
    from experiments.tracking import write

    folder, settings = evaluation.plan.folder, evaluation.plan.settings
    record = record_of(evaluation, unlogged.staging(folder.results), sound=sound)
    outcome = recorded.outcome(folder, settings)
    about = (folder.results, tracked.uri, experiment, tracked.run_id, outcome)
    write(tracked, unlogged.keep(unlogged.Unlogged(*about, record)))
    return outcome


def _is_written(plan: Plan, tracked: TrackedRun, outcome: str) -> Recorded:
    from experiments import recorded, unlogged

    known = recorded.Recorded(outcome, tracked.uri, tracked.experiment_id, tracked.run_id)
    recorded.remember(plan.folder, known)
    unlogged.discard(plan.folder.results)
    return known


def _how_to_complete(plan: Plan) -> str:
    return f"mlflow run . -e log_results -P output={shlex.quote(str(plan.folder.results))}"


def _effort(evaluation: Evaluation, store: str) -> str:
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in evaluation.seconds.items())
    return f"{evaluation.reused} answers reused; {spent}; {store}"


def _sorry(code: int, why: object) -> int:
    print(why, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
