"""The tasks: what is asked of a model, and what its answers are worth.

Each module of this package is one task and satisfies `Task`: it turns items into
requests, responses into a predictions table, and that table into estimates.
`task(name)` finds one; a new task is a new module here and its prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

import pandas as pd

from core.exemplars import Selection
from core.metrics.estimate import Estimate
from core.prompts import Template
from core.protocol import Request, Response
from core.task_settings import Setting

if TYPE_CHECKING:
    from core.variants import Variant


class TaskError(ValueError):
    """A task that does not exist, a setting it does not have, or an item it cannot ask about."""


@dataclass(frozen=True)
class PlannedRequest:
    """A request and whom it is about; the model sees the request alone.

    Attributes:
        condition: AO, AT or TO, or the name of a variant (see `core.variants`).
        purpose: what the answer is for: "answer", and for tasks that ask an item
            more than once "vote", "tactic", "quote".
        vote: number of the vote, from 0.
    """

    request: Request
    item_id: str
    condition: str
    purpose: str = "answer"
    vote: int = 0


@dataclass(frozen=True)
class Table:
    """A table of a study's report: `name` for its files, `title` for a reader.

    Columns "X low" and "X high" are the ends of the interval of column "X". A table that is
    not `shown` is too long for a terminal and is in the run's files only.
    """

    name: str
    title: str
    frame: pd.DataFrame
    shown: bool = True


@dataclass
class Beyond:
    """What a task's flags add to a run: figures of their own, sections of the report, sentences."""

    estimates: list[Estimate] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Task(Protocol):
    """What every module of this package offers.

    Attributes:
        NAME: the module's name, as in `-P task=`.
        CONDITIONS: the conditions it can be asked in, in table order.
        MANIFEST: "turns" or "dialogues": which manifest its items come from.
        LABELS: answer labels in order; predictions has a column `p_<label>` for each.
        SETTINGS: the settings it takes, by name.
        BESIDE: those of them that add variants or sections and change nothing of the conditions:
            runs that differ in these alone are the same runs.
        WRITTEN: values of settings with which a model answers in words of its own.
        COLUMNS: what its predictions have beyond the columns of every task.
    """

    NAME: str
    CONDITIONS: tuple[str, ...]
    MANIFEST: str
    LABELS: tuple[str, ...]
    SETTINGS: Mapping[str, Setting]
    BESIDE: tuple[str, ...]
    WRITTEN: Mapping[str, tuple[str, ...]]
    COLUMNS: tuple[str, ...]

    def check(self, settings: Mapping[str, str]) -> None:
        """Raises TaskError for settings that do not fit the task or one another."""
        ...

    def select(self, items: pd.DataFrame, *, seed: int, settings: Mapping[str, str]) -> Selection:
        """What is asked about, and what is shown instead of being asked about.

        Args:
            items: all of the dataset, so that a limit changes nothing of what is shown.

        Raises:
            TaskError: exemplars that cannot be had.
        """
        ...

    def prompts(self, settings: Mapping[str, str]) -> tuple[Template, ...]:
        """Every template the requests are made from, to be logged with the run."""
        ...

    def plan(
        self,
        items: pd.DataFrame,
        condition: str,
        *,
        seed: int,
        settings: Mapping[str, str],
        audio: Mapping[str, str],
        model_digest: str,
        exemplars: pd.DataFrame | None = None,
        clips_per_prompt: int = 1,
    ) -> list[PlannedRequest]:
        """The requests of one condition, in the order of the items.

        Args:
            items: validated manifest rows, a part of the dataset: what is asked about an
                item depends on its own row alone.
            seed: the run's.
            settings: replaces defaults of SETTINGS; values as typed by a user.
            audio: item id -> name of its clip in the mounted audio folder, exemplars too.
            model_digest: of the model as it will run; part of each request's id.
            exemplars: of `select`; None for none.
            clips_per_prompt: as many clips as the model takes in one prompt.

        Raises:
            TaskError: for an unknown condition or setting, or an item without a clip.
            ModalityError: for a request that shows what its condition withholds.
        """
        ...

    def follow_up(
        self,
        planned: Sequence[PlannedRequest],
        responses: Mapping[str, Response],
        items: pd.DataFrame,
        *,
        seed: int,
        settings: Mapping[str, str],
        audio: Mapping[str, str],
        model_digest: str,
        exemplars: pd.DataFrame | None = None,
        clips_per_prompt: int = 1,
    ) -> list[PlannedRequest]:
        """The requests that the answers so far call for; called until there are none.

        Args:
            planned: of all conditions and rounds so far; none of them is planned again.
            responses: to those, by request id; one may be missing.
            items, ...: as in `plan`; where this gives nothing, it is not called again.
        """
        ...

    def predict(
        self,
        planned: Sequence[PlannedRequest],
        responses: Mapping[str, Response],
        items: pd.DataFrame,
        settings: Mapping[str, str] | None = None,
    ) -> pd.DataFrame:
        """One row an item and condition (see `core.predictions`), also where nothing came back.

        Args:
            planned: of any number of conditions.
            responses: by request id; others may be among them.
            items: the rows that were planned.
            settings: those they were planned with.
        """
        ...

    def score(self, predictions: pd.DataFrame, *, resamples: int, seed: int) -> list[Estimate]:
        """Estimates of every condition in the table, failures counted beside the metrics."""
        ...

    def report(self, predictions: pd.DataFrame, *, resamples: int, seed: int) -> list[Table]:
        """The study's own tables, shown after the figures; none for a task without."""
        ...

    def variants(
        self, settings: Mapping[str, str], conditions: Sequence[str]
    ) -> tuple[Variant, ...]:
        """The conditions asked once more with one thing changed; none without a flag.

        Each is planned, followed up and predicted as its condition, with its own clips and
        settings, and then bears its own name.

        Raises:
            TaskError: a flag that has nothing to work on among the run's conditions.
        """
        ...

    def beyond(
        self,
        predictions: pd.DataFrame,
        variants: pd.DataFrame,
        items: pd.DataFrame,
        *,
        settings: Mapping[str, str],
        resamples: int,
        seed: int,
    ) -> Beyond:
        """The sections that the flags ask for; nothing without a flag.

        Args:
            predictions: of the conditions.
            variants: of the variants, under their names.
            items: the rows both are about.
        """
        ...

    def notes(
        self,
        settings: Mapping[str, str],
        selection: Selection,
        conditions: Sequence[str],
        clips_per_prompt: int,
    ) -> list[str]:
        """What a reader of the figures has to know about these settings, a sentence each."""
        ...


def task_names() -> tuple[str, ...]:
    """All tasks, in alphabetical order."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def task(name: str) -> Task:
    """The task of this name.

    Raises:
        TaskError: naming the tasks there are.
    """
    if name not in task_names():
        raise TaskError(f"task: expected one of {', '.join(task_names())}, found {name!r}.")
    return cast("Task", import_module(f"core.tasks.{name}"))


def checked_settings(
    task_name: str, known: Mapping[str, Setting], settings: Mapping[str, str]
) -> dict[str, str]:
    """The defaults with a user's settings over them.

    Raises:
        TaskError: for a setting the task does not have, or a value that does not fit.
    """
    if unknown := sorted(set(settings) - set(known)):
        raise TaskError(
            f"task {task_name}: unknown setting {', '.join(unknown)}; it takes "
            f"{', '.join(sorted(known)) or 'none'}."
        )
    chosen = {name: settings.get(name, setting.default) for name, setting in known.items()}
    for name, setting in known.items():
        if fault := setting.fault(name, chosen[name]):
            raise TaskError(fault)
    return chosen
