"""Speed of the statistics beside scikit-learn and scipy, in one process.

    python -m benchmarks.statistics [--reference-cells 1] [--repeats 9]

Prints a table of medians. The loop over resamples with scikit-learn and scipy is timed for
as many of the thirty cells as asked and scaled up, since all thirty take a minute; pass
`--reference-cells 30` to time it whole.
"""

from __future__ import annotations

import argparse
import os
import tracemalloc
from collections.abc import Callable
from itertools import combinations
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.metrics.ordinal import METRICS
from core.metrics.tables import counts, counts_by_session
from core.stats.bootstrap import bootstrap, cluster_bootstrap
from core.stats.paired import absolute_errors, align, compare_errors

CELLS, TURNS, SESSIONS, RESAMPLES = 30, 1802, 96, 1000
FIVE = {name: METRICS[name] for name in ("mae", "spearman", "qwk", "rmse", "a1")}
Ratings = tuple[NDArray[np.int64], NDArray[np.int64]]


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Median wall time of `repeats` calls, after one that warms up."""
    work()
    taken = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        taken.append(perf_counter() - start)
    return median(taken)


def ratings(turns: int, cells: int, seed: int = 0) -> Ratings:
    """Gold (turns,) and predictions (cells, turns) with the study's unbalanced levels."""
    drawing = np.random.default_rng(seed)
    gold = drawing.choice([1, 2, 3, 4, 5], turns, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    return gold, np.clip(gold + drawing.integers(-2, 3, (cells, turns)), 1, 5)


def loop_over_resamples(gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> None:
    """One cell's five intervals as they are usually computed."""
    from scipy.stats import spearmanr
    from sklearn.metrics import cohen_kappa_score, mean_absolute_error, mean_squared_error

    drawing = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        rows = drawing.integers(0, len(gold), len(gold))
        g, p = gold[rows], predicted[rows]
        drawn.append(
            (
                mean_absolute_error(g, p),
                spearmanr(g, p)[0],
                cohen_kappa_score(g, p, weights="quadratic"),
                mean_squared_error(g, p) ** 0.5,
                np.mean(np.abs(g - p) <= 1),
            )
        )
    np.percentile(drawn, [2.5, 97.5], axis=0)


def pairwise_scipy(errors: NDArray[np.int8]) -> None:
    """All pairs by scipy's test alone: no effect size, no interval, no shift."""
    from scipy.stats import wilcoxon

    whole = errors.astype(np.int64)
    for one, two in combinations(range(len(whole)), 2):
        wilcoxon(whole[one] - whole[two], zero_method="pratt", method="approx", correction=False)


def peak_megabytes(tables: NDArray[Any]) -> float:
    """Highest memory that the intervals of one table take, in MB."""
    tracemalloc.start()
    bootstrap(tables, FIVE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def rows(repeats: int, reference_cells: int) -> list[tuple[str, str, str, str]]:
    """(work, ours, others, ratio), as printed."""
    gold, predicted = ratings(TURNS, CELLS)
    tables = np.stack([counts(gold, answers) for answers in predicted])
    ours = seconds(lambda: bootstrap(tables, FIVE), repeats)
    start = perf_counter()
    for answers in predicted[:reference_cells]:
        loop_over_resamples(gold, answers)
    loop = (perf_counter() - start) * CELLS / reference_cells
    scaled = "" if reference_cells == CELLS else f" ({reference_cells} cells, scaled)"
    found = [
        (
            f"{CELLS} cells x 5 metrics x B = {RESAMPLES}, n = {TURNS}",
            f"{ours:.3f} s",
            f"scikit-learn/scipy loop {loop:.1f} s{scaled}",
            f"{loop / ours:.0f}x",
        )
    ]
    bca = seconds(lambda: bootstrap(tables, FIVE, method="bca"), repeats)
    found.append(("the same, BCa", f"{bca:.3f} s", "", ""))

    sessions = np.sort(np.random.default_rng(1).integers(0, SESSIONS, TURNS))
    by_session = np.stack([counts_by_session(gold, answers, sessions) for answers in predicted])
    clustered = seconds(lambda: cluster_bootstrap(by_session, FIVE), repeats)
    found.append((f"the same over {SESSIONS} sessions", f"{clustered:.3f} s", "", ""))

    small = counts(*(part.reshape(-1)[:500] for part in ratings(500, 1)))
    ten_thousand = seconds(lambda: bootstrap(small, FIVE, resamples=10_000), repeats)
    found.append(("5 metrics x B = 10,000, n = 500", f"{ten_thousand:.3f} s", "", ""))

    frames = {
        f"cell-{cell:02d}": pd.DataFrame(
            {
                "item_id": [f"turn-{turn:04d}" for turn in range(TURNS)],
                "gold": gold,
                "prediction": answers,
                "group_id": sessions,
            }
        )
        for cell, answers in enumerate(predicted)
    }
    aligned = align(frames)
    pairs = seconds(lambda: compare_errors(aligned), repeats)
    errors = absolute_errors(aligned)
    scipy_pairs = seconds(lambda: pairwise_scipy(errors), 1)
    number = CELLS * (CELLS - 1) // 2
    found.append(
        (
            f"{number} signed-rank tests with r, its interval, shift, power",
            f"{pairs:.3f} s",
            f"scipy, p alone {scipy_pairs:.2f} s",
            f"{scipy_pairs / pairs:.1f}x",
        )
    )
    for turns in (1_000, 1_000_000):
        million_gold, million = ratings(turns, 1)
        start = perf_counter()
        table = counts(million_gold, million[0])
        counted = perf_counter() - start
        taken = seconds(lambda table=table: bootstrap(table, FIVE), repeats)  # type: ignore[misc]
        peak = peak_megabytes(table)
        work = f"n = {turns:,}: counting, then 5 intervals"
        found.append((work, f"{counted:.3f} s + {taken:.3f} s", f"peak {peak:.1f} MB", ""))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--reference-cells", type=int, default=1)
    options = parser.parse_args()
    print(f"numpy {np.__version__}, {os.cpu_count()} cores, medians of {options.repeats}\n")
    print("| work | ours | beside | ratio |\n|---|---|---|---|")
    for row in rows(options.repeats, options.reference_cells):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
