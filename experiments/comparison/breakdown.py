"""Where the errors are: by gold label, by length of the clip, by session."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.stats.clustering import clustering
from core.stats.item_means import Strata, strata_means
from experiments.comparison import plots
from experiments.comparison.asked import Asked
from experiments.comparison.cells import Cells
from experiments.comparison.document import Exhibit, Section, table
from experiments.comparison.drawing import dots

QUARTERS = 4


def section(cells: Cells, labels: Sequence[str], asked: Asked) -> Section:
    """The breakdowns; those without material are named."""
    drawn_over = "sessions" if cells.units is not None else "items"
    found = Section(
        "breakdown",
        "Where the errors are",
        (f"Over answered items; 95 % bootstrap intervals over {drawn_over}.",),
    )
    gold = np.array([str(label) for label in cells.aligned.gold])
    place = np.array([labels.index(label) for label in gold], dtype=np.int64)
    titles = [f"gold {label}" for label in labels]
    about = "A model that always gives one label errs on the others."
    found.exhibits.append(
        _exhibit(
            cells,
            _means(cells, place, len(labels), asked),
            titles,
            "error_by_gold",
            "Error by gold label",
            about,
        )
    )
    if np.isnan(cells.seconds).all():
        found.notes.append("No clip was heard, so there is no error by seconds of audio.")
    else:
        found.exhibits.append(_by_length(cells, asked))
    if cells.sessions is None:
        found.notes.append("Every item is a session of its own: no error by session.")
    else:
        found.exhibits += [_by_session(cells, cells.sessions), _clustered(cells, cells.sessions)]
    return found


def _means(cells: Cells, place: NDArray[np.int64], number: int, asked: Asked) -> Strata:
    return strata_means(cells.errors, place, number, sessions=cells.units, **asked.drawn)


def _exhibit(
    cells: Cells, found: Strata, titles: Sequence[str], name: str, title: str, caption: str
) -> Exhibit:
    frame = pd.DataFrame(
        [
            {
                "row": model,
                "panel": stratum,
                "series": condition,
                "value": found.value[at, k],
                "low": found.low[at, k],
                "high": found.high[at, k],
                "n": found.n[at, k],
            }
            for at, (model, condition) in enumerate(cells.keys)
            for k, stratum in enumerate(titles)
        ]
    )
    return Exhibit(name, title, caption, frame, svg=dots(frame, f"mean {cells.loss}", same_x=True))


def _by_length(cells: Cells, asked: Asked) -> Exhibit:
    known = ~np.isnan(cells.seconds)
    edges = np.unique(
        np.round(np.quantile(cells.seconds[known], np.linspace(0, 1, QUARTERS + 1)), 1)
    )
    # Inner edges alone: the shortest and the longest belong to the first and the last part.
    inner = edges[1:-1]
    place = np.where(known, np.searchsorted(inner, cells.seconds, "left"), -1)
    ends = [float(edges[0]), *inner.tolist(), float(edges[-1])]
    titles = [f"{low:g}–{high:g} s" for low, high in itertools.pairwise(ends)]
    titles = titles or [f"{ends[0]:g} s"]
    return _exhibit(
        cells,
        _means(cells, place, len(titles), asked),
        titles,
        "error_by_length",
        "Error by seconds of audio given",
        "All audio of a question: the item's clip and, where exemplars are played, theirs too, "
        "which are the same for every item. Parts of about equally many of the "
        f"{int(known.sum()):,} items whose clip was heard; "
        "transcript-only answers are about the same items.",
    )


def _by_session(cells: Cells, sessions: NDArray[np.str_]) -> Exhibit:
    names, place = np.unique(sessions, return_inverse=True)
    mean = strata_means(cells.errors, place, len(names), resamples=0).value
    # One order for all panels: the sessions by what is left when models are averaged.
    order = np.argsort(np.nanmean(np.where(np.isnan(mean), np.nanmean(mean), mean), axis=0))
    parts = []
    for condition in cells.conditions:
        of_condition = mean[cells.of_condition(condition)]
        kept = [at for at in order if not np.isnan(of_condition[:, at]).all()]
        parts.append(
            pd.DataFrame(
                {
                    "unit": names[kept],
                    "panel": condition,
                    "lowest": np.nanmin(of_condition[:, kept], axis=0),
                    "mean": np.nanmean(of_condition[:, kept], axis=0),
                    "highest": np.nanmax(of_condition[:, kept], axis=0),
                    "items": np.bincount(place)[kept],
                }
            )
        )
    frame = pd.concat(parts, ignore_index=True)
    return Exhibit(
        "error_by_session",
        "Error by session",
        f"{len(names)} sessions in one order for all panels, from the easiest to the hardest over "
        "all models and conditions. Dot: mean over the models; span: from the best to the worst "
        "model in that session.",
        frame,
        svg=plots.spans(frame, "sessions, easiest first", f"mean {cells.loss}"),
    )


def _clustered(cells: Cells, sessions: NDArray[np.str_]) -> Exhibit:
    rows = []
    for at, (model, condition) in enumerate(cells.keys):
        found = clustering(cells.errors[at], sessions)
        rows.append(
            {
                "Model": model,
                "Cond.": condition,
                "ICC": found.icc,
                "Between": found.between,
                "Within": found.within,
                "Design effect": found.design_effect,
                "Sessions": found.groups,
                "n": found.n,
                "Reason": found.reason or "",
            }
        )
    return table(
        "session_variance",
        "How much of the error is the session's",
        "Random-intercept variance components of the error (ANOVA estimator). ICC: share of the "
        "variance between sessions; design effect: by how much intervals over turns understate "
        "the variance of the mean.",
        pd.DataFrame(rows),
        words=2,
        folded=True,
    )
