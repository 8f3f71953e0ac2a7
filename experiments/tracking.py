"""The MLflow side of a run: the store, the run's life, and one quick write of all it found.

Metrics go in one batch and artifacts in one folder, because each call to a
store costs more than all our figures together. `experiments.record` decides
what is written; here is only how.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from experiments import view
from experiments.code_version import git_commit
from experiments.credentials import shown
from experiments.processes import as_words, from_words, is_gone, this_process
from experiments.store import (
    TrackingError,
    even_if_made_meanwhile,
    experiment_of,
    is_server,
    open_store,
    store_uri,
    told,
)

__all__ = [
    "MOST_METRICS",
    "Earlier",
    "Record",
    "TrackedRun",
    "TrackingError",
    "completed_run",
    "how_to_look",
    "name_after_command",
    "open_store",
    "store_uri",
    "tracked_run",
    "write",
]

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Which process a run is of, while it is open.
OWNER_TAG = "undertone.process"
# On a run that was interrupted and went on: how often.
RESUMED_TAG = "undertone.resumed"
# On a run that goes on from another's answers, and on that other.
CONTINUES_TAG, CONTINUED_TAG = "undertone.continues", "undertone.continued_by"
# On a run whose process was found dead by a later one.
ABANDONED_TAG = "undertone.abandoned"
_LISTED_TABLES = "mlflow.loggedArtifacts"
# MLflow's limits; beyond them it cuts in silence or refuses.
LONGEST_PARAMETER = 6_000
LONGEST_TAG = 8_000
MOST_METRICS = 99

# The names MLflow makes up for a run nobody named: "skittish-snail-12".
_MADE_UP_NAME = re.compile(r"^[a-z]+-[a-z]+-\d+$")
_ENTRY_POINT = "mlflow.project.entryPoint"


@dataclass
class Record:
    """All that one run writes to MLflow.

    Attributes:
        name: of the run, as the list shows it.
        parameters: what was asked for; under names of our own, since `mlflow run` has
            already written its quoted words under the plain ones.
        tags: what a reader filters by.
        metrics: name -> value; NaN allowed.
        note: markdown shown first on the run's page.
        files: folder whose content becomes the artifacts.
        tables: artifact name, ending in .json -> DataFrame, opened by the UI as tables.
        tables_in_files: names of those that lie in `files` already.
        dataset: name, digest, source and profile, or None.
        headline: metrics without their condition, most important first.
    """

    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    note: str = ""
    files: Path | None = None
    tables: dict[str, Any] = field(default_factory=dict)
    tables_in_files: tuple[str, ...] = ()
    dataset: dict[str, str] | None = None
    headline: tuple[str, ...] = ()


@dataclass
class TrackedRun:
    """An open MLflow run; `leaderboard` where it gave its experiment one."""

    client: MlflowClient
    uri: str
    experiment_id: str
    run_id: str
    opening_s: float = 0.0
    writing_s: float = 0.0
    leaderboard: bool = False

    @property
    def artifacts(self) -> str:
        """Address its files are kept under."""
        return str(self.client.get_run(self.run_id).info.artifact_uri)


@dataclass(frozen=True)
class Earlier:
    """A run that was opened for the same results and is not known to have been completed.

    Attributes:
        same: it was asked the very same thing.
    """

    uri: str
    run_id: str
    same: bool


def how_to_look(uri: str, experiment_id: str, *, leaderboard: bool = True) -> str:
    """The command that opens the UI, and the page of it that compares an experiment's runs."""
    columns = view.ADDRESS if leaderboard else view.LIST_OF_RUNS
    page = f"#/experiments/{experiment_id}/runs?{columns}"
    uri = shown(uri)
    if uri.startswith(("http://", "https://")):
        return f"{uri.rstrip('/')}/{page}"
    command = f"mlflow ui --backend-store-uri {shlex.quote(uri)}"
    return f"{command}   then http://127.0.0.1:5000/{page}"


@contextmanager
def tracked_run(experiment: str, earlier: Earlier | None = None) -> Iterator[TrackedRun]:
    """An MLflow run that is closed whatever happens inside.

    The run `mlflow run` opened for us is adopted, with its experiment; else an earlier one
    that was asked the same is gone on with; else a new one is opened in the experiment of
    that name, and says whom it continues. An error ends it as FAILED, a signal as KILLED.

    Raises:
        TrackingError: the store cannot be reached or opened.
    """
    started = time.perf_counter()
    client, uri = open_store()
    if earlier and earlier.uri != shown(uri):
        earlier = None
    with told(uri, "no run can be opened"):
        run = _adopted(client, uri) or _gone_on_with(client, uri, earlier)
        run = run or _opened(client, uri, experiment)
        if earlier and earlier.run_id != run.run_id:
            _say_who_continues(client, earlier.run_id, run.run_id)
        _mark_abandoned(client, run.run_id)
    run.opening_s = time.perf_counter() - started
    with _closed(run):
        yield run


@contextmanager
def completed_run(experiment: str, run_id: str) -> Iterator[TrackedRun]:
    """A run that is not this command's own, open again to be given what it lacks.

    Where the store has no such run, a new one takes its place in the experiment of that name.

    Raises:
        TrackingError: the store cannot be reached or opened.
    """
    client, uri = open_store()
    with told(uri, "no run can be opened"):
        run = _gone_on_with(client, uri, Earlier(shown(uri), run_id, same=True))
        run = run or _opened(client, uri, experiment)
    with _closed(run):
        yield run


@contextmanager
def _closed(run: TrackedRun) -> Iterator[None]:
    """End the run as FINISHED, FAILED or KILLED, by how the block ends."""
    try:
        yield
    except BaseException as error:
        stopped = not isinstance(error, Exception)
        # A server that has just not answered would keep us waiting once more.
        if not (isinstance(error, TrackingError) and is_server(run.uri)):
            # The reason it failed counts, not that a full disk or a lost server cannot note it.
            with suppress(Exception):
                run.client.set_terminated(run.run_id, "KILLED" if stopped else "FAILED")
        raise
    with told(run.uri, "the run cannot be closed"):
        # Of use only while a run may be abandoned; a reader has no business with it.
        run.client.delete_tag(run.run_id, OWNER_TAG)
        run.client.set_terminated(run.run_id, "FINISHED")


def write(run: TrackedRun, record: Record) -> None:
    """Write everything a run found.

    Raises:
        ValueError: more metrics than the UI can bear.
        TrackingError: the store does not take them.
    """
    if len(record.metrics) > MOST_METRICS:
        raise ValueError(f"{len(record.metrics)} metrics; the UI takes {MOST_METRICS} columns.")
    started = time.perf_counter()
    with told(run.uri, "the run cannot be written"):
        _write(run, record)
    run.writing_s += time.perf_counter() - started


def _write(run: TrackedRun, record: Record) -> None:
    from mlflow.entities import Metric, Param, RunTag

    now = int(time.time() * 1000)
    tags = {**record.tags, "mlflow.note.content": record.note}
    opened = run.client.get_run(run.run_id)
    if _is_nobodys(opened.info.run_name, opened.data.tags):
        tags["mlflow.runName"] = record.name
    run.client.log_batch(
        run.run_id,
        metrics=[Metric(name, value, now, 0) for name, value in record.metrics.items()],
        params=[Param(k, v[:LONGEST_PARAMETER]) for k, v in record.parameters.items()],
        tags=[RunTag(k, v[:LONGEST_TAG]) for k, v in tags.items() if v],
    )
    if record.dataset:
        _write_dataset(run, record.dataset)
    _write_tables(run, record)
    if record.headline:
        _save_view(run, record)
    if record.files:
        run.client.log_artifacts(run.run_id, str(record.files))


def tables_written(tables: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Tables as the files by which the UI knows them; gives their names."""
    for name, table in tables.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_json(path, orient="split", index=False, date_format="iso")
    return tuple(tables)


def _write_tables(run: TrackedRun, record: Record) -> None:
    # Not log_table: it puts the rows behind those of a first try that was cut off.
    listed = [*record.tables_in_files, *record.tables]
    if not listed:
        return
    known = json.loads(run.client.get_run(run.run_id).data.tags.get(_LISTED_TABLES, "[]"))
    known += [e for name in listed if (e := {"path": name, "type": "table"}) not in known]
    run.client.set_tag(run.run_id, _LISTED_TABLES, json.dumps(known))
    with TemporaryDirectory(prefix="undertone-") as staging:
        if tables_written(record.tables, Path(staging)):
            run.client.log_artifacts(run.run_id, staging)


def name_after_command(client: MlflowClient, run_id: str) -> None:
    """Name a run of `mlflow run` after its entry point, until its program says more of it."""
    run = client.get_run(run_id)
    command = run.data.tags.get(_ENTRY_POINT)
    if command and _is_nobodys(run.info.run_name, run.data.tags):
        client.set_tag(run_id, "mlflow.runName", command)


def _is_nobodys(name: str | None, tags: Mapping[str, str]) -> bool:
    """Whether a run's name was neither its user's choice nor its program's."""
    return bool(_MADE_UP_NAME.match(name or "")) or name == tags.get(_ENTRY_POINT)


def _adopted(client: MlflowClient, uri: str) -> TrackedRun | None:
    run_id = os.environ.get("MLFLOW_RUN_ID")
    if not run_id:
        return None
    run = client.get_run(run_id)
    client.set_tag(run_id, OWNER_TAG, as_words(this_process()))
    return TrackedRun(client, uri, run.info.experiment_id, run_id)


def _gone_on_with(client: MlflowClient, uri: str, earlier: Earlier | None) -> TrackedRun | None:
    """The earlier run, open again; None where it was asked something else or is not there."""
    from mlflow.exceptions import MlflowException

    if earlier is None or not earlier.same:
        return None
    try:
        run = client.get_run(earlier.run_id)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise
    if run.info.lifecycle_stage != "active":
        return None
    times = int(run.data.tags.get(RESUMED_TAG, "0")) + 1
    client.set_tag(earlier.run_id, OWNER_TAG, as_words(this_process()))
    client.set_tag(earlier.run_id, RESUMED_TAG, str(times))
    client.update_run(earlier.run_id, status="RUNNING")
    return TrackedRun(client, uri, run.info.experiment_id, earlier.run_id)


def _opened(client: MlflowClient, uri: str, name: str) -> TrackedRun:
    # MLflow's own word for where runs go: `mlflow run` gives it to every process it starts.
    experiment_id = os.environ.get("MLFLOW_EXPERIMENT_ID") or experiment_of(client, uri, name)
    tags = {
        OWNER_TAG: as_words(this_process()),
        "mlflow.source.name": "experiments.evaluate",
        "mlflow.source.type": "LOCAL",
        "mlflow.user": os.environ.get("USER", ""),
        "mlflow.source.git.commit": git_commit(),
    }
    tags = {key: value for key, value in tags.items() if value}
    run = client.create_run(experiment_id, tags=tags)
    return TrackedRun(client, uri, experiment_id, run.info.run_id)


def _say_who_continues(client: MlflowClient, earlier: str, later: str) -> None:
    client.set_tag(later, CONTINUES_TAG, earlier)
    # The earlier one may have been deleted since.
    with suppress(Exception):
        client.set_tag(earlier, CONTINUED_TAG, later)


def _mark_abandoned(client: MlflowClient, own: str) -> None:
    """End the runs whose process is dead for certain: they would say RUNNING for ever."""
    experiments = [each.experiment_id for each in client.search_experiments()]
    mine = f"attributes.status = 'RUNNING' AND tags.`{OWNER_TAG}` LIKE '{{%'"
    for run in client.search_runs(experiments, mine):
        said, run_id = run.data.tags.get(OWNER_TAG, ""), run.info.run_id
        process = from_words(said)
        if run_id == own or process is None or not is_gone(process):
            continue
        with suppress(Exception):
            # It may have closed the run since we asked, and ended then.
            now = client.get_run(run_id)
            if now.info.status == "RUNNING" and now.data.tags.get(OWNER_TAG) == said:
                why = f"its process ({process.said()}) ended without closing it"
                client.set_tag(run_id, ABANDONED_TAG, why)
                client.set_terminated(run_id, "KILLED")


def _save_view(run: TrackedRun, record: Record) -> None:
    value = view.leaderboard(list(record.metrics), record.headline)
    # A comfort that MLflow does not promise: no run fails for it.
    with suppress(Exception):
        if len(value) <= view.LONGEST_TAG:
            even_if_made_meanwhile(
                lambda: run.client.set_experiment_tag(run.experiment_id, view.TAG, value)
            )
            run.leaderboard = True


def _write_dataset(run: TrackedRun, said: dict[str, str]) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    # Not mlflow.data: its digest covers the first 10,000 rows and no audio.
    dataset = Dataset(
        name=said["name"],
        digest=said["digest"],
        source_type="local",
        source=said["source"],
        profile=said["profile"],
    )
    context = InputTag("mlflow.data.context", "evaluation")
    inputs = [DatasetInput(dataset, [context])]
    even_if_made_meanwhile(lambda: run.client.log_inputs(run.run_id, inputs))
