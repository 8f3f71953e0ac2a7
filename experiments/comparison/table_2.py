"""Table 2 of study 1: models by MAE, A1 and rho in each condition, the best of each marked.

Source: CBT-Audio, section 4 and the caption of its Table 2.
"""

from __future__ import annotations

import math

import pandas as pd

from experiments.comparison.cells import Cells
from experiments.comparison.document import ALPHA, Cell, Exhibit, Head, Layout, best, figure

# Name, title, smaller is better, shown as per cent.
TABLE_2 = (
    ("mae", "MAE ↓", True, False),
    ("a1", "A1 % ↑", False, True),
    ("spearman", "ρ ↑", False, False),
)


def table_2(metrics: pd.DataFrame, pairs: pd.DataFrame, cells: Cells) -> Exhibit:
    """Models by MAE, A1 and rho in each condition, marked by the paper's rules."""
    value = metrics.set_index(["metric", "model", "condition"])["value"].to_dict()
    of_mae = metrics[metrics["metric"] == "mae"].set_index(["model", "condition"])
    answered = {
        key: (int(n), int(total))
        for key, n, total in zip(of_mae.index, of_mae["n"], of_mae["n_total"], strict=True)
    }
    conditions, models = cells.conditions, cells.models

    def column(metric: str, condition: str) -> list[float]:
        return [value.get((metric, model, condition), math.nan) for model in models]

    lines: list[list[Cell]] = [[Cell(model, mark=_star(pairs, model))] for model in models]
    for metric, _, smaller, percent in TABLE_2:
        of_metric = {condition: column(metric, condition) for condition in conditions}
        # A model that left out the hard items would win by it.
        whole = {
            c: [
                v if not _part(answered.get((m, c))) else math.nan
                for m, v in zip(models, values, strict=True)
            ]
            for c, values in of_metric.items()
        }
        best_model = {c: best(values, smaller=smaller) for c, values in whole.items()}
        for at, model in enumerate(models):
            across = [of_metric[c][at] for c in conditions]
            rivals = [whole[c][at] for c in conditions]
            best_condition = best(rivals, smaller=smaller) if _several(rivals) else set()
            for number, condition in enumerate(conditions):
                shown = across[number] * 100 if percent else across[number]
                ran = cells.place(model, condition) is not None
                lines[at].append(
                    Cell(
                        figure(shown, 1 if percent else 3) + _part(answered.get((model, condition)))
                        if ran
                        else "",
                        bold=number in best_condition,
                        underline=len(models) > 1 and at in best_model[condition],
                    )
                )
    heads = (
        (Head(""), *(Head(title, len(conditions)) for _, title, _, _ in TABLE_2)),
        (Head("Model"), *(Head(c) for _ in TABLE_2 for c in conditions)),
    )
    wide = metrics[metrics["metric"].isin([name for name, *_ in TABLE_2])]
    caption = (
        "MAE in levels of the 1–5 scale (lower is better), A1 the percentage of answers within one "
        "level (higher is better), ρ Spearman's rank correlation (higher is better). Models are "
        "sorted by MAE with audio and transcript. Bold: the model's best condition for the metric; "
        "underlined: the best model in the condition, both by the third decimal. A figure over a "
        "part of the items has it behind it (answered/all) and is never marked as best. * audio + "
        "transcript significantly better than transcript only by the paper's test: Wilcoxon's "
        "signed-rank test on absolute errors, zero differences dropped, p < 0.05; ** also after "
        "Holm's adjustment over the models, with Pratt's zeros. – undefined; blank: not run."
    )
    layout = Layout(heads, tuple(tuple(line) for line in lines))
    return Exhibit("table_2", "Table 2: distress estimation", caption, wide, layout=layout)


def _part(answered: tuple[int, int] | None) -> str:
    """` (37/40)` where not all items were answered."""
    return f" ({answered[0]}/{answered[1]})" if answered and answered[0] < answered[1] else ""


def _several(values: list[float]) -> bool:
    return sum(not math.isnan(value) for value in values) > 1


def _star(pairs: pd.DataFrame, model: str) -> str:
    found = pairs[(pairs["model"] == model) & (pairs["pair"] == "AT-TO")]
    if not len(found):
        return ""
    row = found.iloc[0]
    if not (row["difference"] < 0 and row["p_paper"] < ALPHA):
        return ""
    return "**" if row["p_holm"] < ALPHA else "*"
