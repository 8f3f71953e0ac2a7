"""What a reader needs to trust or doubt labels by semantic similarity, in words and tables.

The runs' spread and how far they agree (appendix B.2), numbers asked for directly beside
them (B.3), and the levels that ten known descriptions get: the embedding's own bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import ssr
from core.embedding import Embedder

Floats = NDArray[np.float64]
TABLES = ("stability", "direct", "bias")


@dataclass(frozen=True)
class LabelReport:
    """The report: `figures` by name (None where undefined), `tables` by name."""

    text: str
    figures: Mapping[str, float | None]
    tables: Mapping[str, pd.DataFrame]
    runs: int


def report(
    rated: pd.DataFrame,
    runs: pd.DataFrame,
    labels: pd.DataFrame,
    model: Embedder,
    scores: pd.DataFrame | None,
) -> LabelReport:
    """Of one labelling.

    Args:
        rated: a row a description, with its `label`.
        runs: (turns, runs) labels as float, NaN where a run has none.
        labels: a row a turn, voted.
        scores: item_id, run, score asked for directly; None where nobody asked.
    """
    voted = labels["label"].astype("Float64").astype(float).to_numpy()
    spread = {f"run {run}": runs[run].to_numpy(float) for run in runs.columns} | {"voted": voted}
    figures: dict[str, float | None] = {
        "descriptions_without_words": float(rated["label"].isna().sum()),
        **_agreement(runs.to_numpy(float)),
    }
    lines = [
        f"{len(labels):,} turns, {runs.shape[1]} {'run' if runs.shape[1] == 1 else 'runs'}, "
        f"embedded by {model.name}",
        f"- without a label: {int(labels['label'].isna().sum()):,} turns; descriptions without "
        f"words: {int(rated['label'].isna().sum()):,}",
        *(f"- {name}: {_said(values)}" for name, values in spread.items()),
    ]
    if runs.shape[1] > 1:
        lines += _stability_lines(figures)
    tables = {"stability": _spread_table(spread), "bias": _bias_table(model)}
    if scores is not None:
        direct = _direct(labels, scores)
        lines += direct.lines
        figures |= direct.figures
        if not direct.table.empty:
            tables["direct"] = direct.table
    right = int(sum(tables["bias"]["level"] == tables["bias"]["label"]))
    figures["bias_right_of_ten"] = float(right)
    lines.append(
        f"- {right} of {len(tables['bias'])} example descriptions get the level they were "
        "written for:"
    )
    for level, group in tables["bias"].groupby("level"):
        lines.append(f"  - written for {level}: {', '.join(map(str, group['label']))}")
    return LabelReport("\n".join(lines), figures, tables, runs.shape[1])


def _agreement(runs: Floats) -> dict[str, float | None]:
    """Of whole turns and of pairs of runs; the study does not say which its 94.3 % is."""
    pairs = [
        np.abs(runs[:, a] - runs[:, b])[~np.isnan(runs[:, a] - runs[:, b])]
        for a, b in combinations(range(runs.shape[1]), 2)
    ]
    apart = np.concatenate(pairs) if pairs else np.empty(0)
    whole = runs[~np.isnan(runs).any(axis=1)]
    return {
        "turns_with_all_runs": float(len(whole)),
        "within_one_all_runs": _share(np.ptp(whole, axis=1) <= 1 if len(whole) else []),
        "equal_all_runs": _share(np.ptp(whole, axis=1) == 0 if len(whole) else []),
        "within_one_pairs": _share(apart <= 1),
        "equal_pairs": _share(apart == 0),
    }


def _stability_lines(figures: Mapping[str, float | None]) -> list[str]:
    whole = int(figures["turns_with_all_runs"] or 0)
    return [
        f"- all runs within one level: {_percent(figures['within_one_all_runs'])} of {whole:,} "
        f"turns with all runs, all equal {_percent(figures['equal_all_runs'])} "
        "(the study: within one 94.3 %)",
        f"- pairs of runs: within one level {_percent(figures['within_one_pairs'])}, equal "
        f"{_percent(figures['equal_pairs'])}",
    ]


@dataclass(frozen=True)
class _Direct:
    lines: list[str]
    figures: dict[str, float | None]
    table: pd.DataFrame


def _direct(labels: pd.DataFrame, scores: pd.DataFrame) -> _Direct:
    """Numbers asked for directly beside the labels, on the turns that have both."""
    by_run = scores.pivot(index="item_id", columns="run", values="score").astype(float)
    voted = pd.Series(ssr.vote(by_run.to_numpy(float)), index=by_run.index, name="direct")
    both = labels.set_index("item_id")["label"].astype(float).to_frame("ssr")
    both = both.join(voted, how="inner").dropna()
    if both.empty:
        return _Direct(["- asked for directly: no turn has both"], {}, pd.DataFrame())
    apart = (both["ssr"] - both["direct"]).abs()
    figures: dict[str, float | None] = {
        "direct_turns": float(len(both)),
        "direct_equal": float(np.mean(apart == 0)),
        "direct_within_one": float(np.mean(apart <= 1)),
        "direct_most_common_share": _most_common(both["direct"].to_numpy(float)),
        "ssr_most_common_share": _most_common(both["ssr"].to_numpy(float)),
    }
    lines = [
        f"- asked for directly, on the same {len(both):,} turns: "
        f"{_said(both['direct'].to_numpy(float))}",
        f"- labels and direct scores on {len(both):,} turns: equal "
        f"{_percent(figures['direct_equal'])}, within one level "
        f"{_percent(figures['direct_within_one'])}; the most common level holds "
        f"{_percent(figures['ssr_most_common_share'])} of the labels and "
        f"{_percent(figures['direct_most_common_share'])} of the scores",
    ]
    counts = pd.crosstab(both["ssr"].astype(int), both["direct"].astype(int))
    counts = counts.reindex(index=ssr.LEVELS, columns=ssr.LEVELS, fill_value=0)
    counts.columns = pd.Index([f"direct_{level}" for level in ssr.LEVELS])
    return _Direct(lines, figures, counts.rename_axis("ssr").reset_index())


def _most_common(labels: Floats) -> float:
    return max(ssr.distribution(labels).values()) / len(labels)


def _spread_table(spread: Mapping[str, Floats]) -> pd.DataFrame:
    rows = []
    for name, values in spread.items():
        counts = ssr.distribution(values)
        total = sum(counts.values())
        shares = {f"share_{k}": n / total if total else float("nan") for k, n in counts.items()}
        rows.append({"of": name, "n": total, **{f"n_{k}": n for k, n in counts.items()}, **shares})
    return pd.DataFrame(rows)


def _bias_table(model: Embedder) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for example, label in ssr.bias(model):
        rows.append({"level": example.level, "label": label, "description": example.text})
    return pd.DataFrame(rows, columns=["level", "label", "description"])


def _share(holds: Any) -> float | None:
    return float(np.mean(holds)) if len(holds) else None


def _percent(share: float | None) -> str:
    return "undefined" if share is None else f"{share:.1%}"


def _said(labels: Floats) -> str:
    counts = ssr.distribution(labels)
    total = max(sum(counts.values()), 1)
    return ", ".join(f"{level}: {count:,} ({count / total:.0%})" for level, count in counts.items())
