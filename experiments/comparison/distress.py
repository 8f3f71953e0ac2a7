"""Study 1's own exhibits: Table 2, Appendix F, the paired tests, Figure 2 and the forest plot.

Source: CBT-Audio, section 4 and the captions of its Table 2 and Figure 2.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from core.stats.paired import absolute_errors
from experiments.comparison import plots
from experiments.comparison.asked import Asked
from experiments.comparison.cells import Cells, side_by_side
from experiments.comparison.distress_figures import metric_frame, pair_frame
from experiments.comparison.document import (
    ALPHA,
    CONDITION_TITLES,
    Cell,
    Exhibit,
    Head,
    Layout,
    Section,
    by_cell,
    figure,
    interval,
    is_long,
    p_value,
    table,
    undefined_notes,
)
from experiments.comparison.drawing import dots
from experiments.comparison.gathering import Gathered
from experiments.comparison.table_2 import table_2

LOSS = "absolute error (levels)"
APPENDIX_F = ("mae", "spearman", "qwk", "rmse", "a1")
TITLES = {"mae": "MAE", "spearman": "ρ", "qwk": "QWK", "rmse": "RMSE", "a1": "A1"}


def cells_of(gathered: Gathered) -> Cells:
    """The runs side by side, their loss the absolute error in levels."""
    return side_by_side(
        gathered.predictions, lambda aligned, over: absolute_errors(aligned, over=over), LOSS
    )


def sections(cells: Cells, asked: Asked) -> tuple[list[Section], pd.DataFrame]:
    """Results, what audio adds, and the appendix of all metrics; with every metric's frame."""
    metrics, pairs = metric_frame(cells, asked), pair_frame(cells, asked)
    results = Section(
        "results",
        "Results by model and condition",
        (
            "Laid out and marked as Table 2 of CBT-Audio. A metric is over the answered turns; how "
            "many that is stands under “What was not answered” and in Appendix F.",
        ),
        [table_2(metrics, pairs, cells), _mae_figure(metrics, cells, asked)],
    )
    if (beside := published_table(metrics, asked)) is not None:
        results.exhibits.append(beside)
    return [results, _audio_section(pairs), appendix_f(metrics, cells)], metrics


def _mae_figure(metrics: pd.DataFrame, cells: Cells, asked: Asked) -> Exhibit:
    of_mae = metrics[metrics["metric"] == "mae"]
    drawn = of_mae.rename(columns={"model": "row", "condition": "panel"}).assign(
        series="this comparison"
    )
    printed = pd.DataFrame(
        [
            {"row": model, "panel": condition, "series": "published", "value": value}
            for condition in cells.conditions
            for model, (value, _) in asked.figures("mae", condition).items()
            if model in cells.models
        ],
        columns=["row", "panel", "series", "value"],
    )
    frame = pd.concat([drawn[[*printed.columns, "low", "high"]], printed], ignore_index=True)
    frame["panel"] = frame["panel"].map(CONDITION_TITLES)
    stars = " Stars: as published." if len(printed) else ""
    return Exhibit(
        "mae_by_condition",
        "Mean absolute error by condition",
        f"With 95 % bootstrap intervals over turns.{stars} Models in the order of Table 2.",
        frame,
        svg=dots(frame, "mean absolute error (levels)", same_x=True),
    )


def published_table(metrics: pd.DataFrame, asked: Asked) -> Exhibit | None:
    """Our figures beside the paper's, where it prints one for a model that was run."""
    if asked.published is None:
        return None
    known = by_cell(metrics)
    rows = []
    for entry in asked.published.figures:
        key = (entry.model, entry.condition, entry.metric)
        if key in known:
            ours = known[key]
            rows.append(
                {
                    "model": entry.model,
                    "condition": entry.condition,
                    "metric": entry.metric,
                    "here": ours["value"],
                    "here low": ours["low"],
                    "here high": ours["high"],
                    "n": int(ours["n"]),
                    "published": entry.value,
                    "difference": ours["value"] - entry.value,
                    "where": entry.where,
                }
            )
    if not rows:
        return None
    paper = asked.published
    caption = (
        f"Published: {paper.study}, {paper.items:,} items. {paper.note} It has no interval of its "
        "own here, so whether the two agree is read from ours."
    )
    return table("published", "Beside the published figures", caption, pd.DataFrame(rows), words=3)


def _audio_section(pairs: pd.DataFrame) -> Section:
    section = Section(
        "audio",
        "What audio adds",
        (
            "A negative difference is a smaller error with the first condition. Tests are paired, "
            "over the turns that both conditions answered.",
        ),
    )
    if pairs.empty:
        section.notes.append(
            "No model was run in two conditions, so nothing can be said of what audio adds."
        )
        return section
    section.exhibits += [_forest(pairs), _tests(pairs)]
    both = figure_2(pairs)
    if both is not None:
        section.exhibits.insert(0, both)
    else:
        section.notes.append("Figure 2 needs a model in all three conditions.")
    return section


def figure_2(pairs: pd.DataFrame) -> Exhibit | None:
    """Audio's value alone against its value beside the transcript; up and right is better."""
    alone, added = (pairs[pairs["pair"] == pair].set_index("model") for pair in ("AO-TO", "AT-TO"))
    models = [model for model in added.index if model in alone.index]
    if not models:
        return None
    # Value is the error that is gone: the difference, turned round.
    label = _with_part(pairs[pairs["pair"].isin(["AO-TO", "AT-TO"])])
    frame = pd.DataFrame(
        {
            "row": [label[model] for model in models],
            "series": "models",
            "x": -alone.loc[models, "difference"].to_numpy(),
            "x_low": -alone.loc[models, "high"].to_numpy(),
            "x_high": -alone.loc[models, "low"].to_numpy(),
            "y": -added.loc[models, "difference"].to_numpy(),
            "y_low": -added.loc[models, "high"].to_numpy(),
            "y_high": -added.loc[models, "low"].to_numpy(),
        }
    )
    return Exhibit(
        "figure_2",
        "Figure 2: audio alone and audio added",
        "Right of the upright line audio alone beats the transcript alone; above the level line "
        "audio added to the transcript helps. 95 % bootstrap intervals over turns, paired"
        f"{_PART}. A name that would cover others is left out.",
        frame,
        svg=plots.plane(
            frame,
            "audio alone: MAE of TO − MAE of AO (levels)",
            "audio added: MAE of TO − MAE of AT (levels)",
            zero=True,
        ),
    )


_PART = ", over the turns both conditions answered (before a name, where those are not all)"


def _with_part(pairs: pd.DataFrame) -> dict[str, str]:
    """Each model with `37/40 · ` before it, or `35–37/40 · ` where its pairs differ; else bare.

    Before it, since a long name is cut at its end.
    """
    said = {}
    for model, rows in pairs.groupby("model", sort=False):
        fewest, most, total = int(rows["n"].min()), int(rows["n"].max()), int(rows["n_total"].max())
        several = f"{fewest}–{most}" if fewest < most else f"{fewest}"
        said[str(model)] = f"{several}/{total} · {model}" if fewest < total else str(model)
    return said


def _forest(pairs: pd.DataFrame) -> Exhibit:
    frame = pairs.rename(columns={"model": "row", "pair": "panel", "difference": "value"})
    frame["panel"] = frame["panel"].str.replace("-", " − ")
    frame["row"] = frame["row"].map(_with_part(pairs))
    columns = ["row", "panel", "series", "value", "low", "high", "n", "n_total"]
    frame = frame.assign(series="models")[columns]
    return Exhibit(
        "forest",
        "Differences between conditions",
        "MAE of the first condition minus MAE of the second; left of the line the first is "
        f"better. 95 % bootstrap intervals over turns, paired{_PART}.",
        frame,
        svg=dots(frame, "difference of mean absolute error (levels)", zero=0.0, same_x=True),
    )


def _tests(pairs: pd.DataFrame) -> Exhibit:
    heads = ("Model", "Pair", "Difference", "over sessions", "p, paper's", "p", "p, Holm", "r")
    rows = []
    for row in pairs.to_dict("records"):
        rows.append(
            (
                Cell(row["model"]),
                Cell(row["pair"].replace("-", " − ")),
                Cell(interval(row["difference"], row["low"], row["high"])),
                Cell(_ends(row)),
                Cell(p_value(row["p_paper"])),
                Cell(p_value(row["p"])),
                Cell(p_value(row["p_holm"]), bold=row["p_holm"] < ALPHA),
                Cell(interval(row["r"], row["r_low"], row["r_high"])),
                Cell(f"{row['n']}/{row['n_total']}"),
            )
        )
    layout = Layout((tuple(map(Head, (*heads, "n"))),), tuple(rows), words=2)
    caption = (
        "Difference: MAE of the first minus the second, with its interval over turns and over "
        "whole sessions. p, paper's: Wilcoxon's signed-rank test with zero differences "
        "dropped, exact up to 13 turns (or 50 without ties and zeros) and normal above, as scipy "
        "chooses; p: "
        "with Pratt's zeros, exact up to 50 non-zero differences; Holm's adjustment is over the "
        "models of a pair of conditions (bold: below 0.05). r: matched-pairs rank-biserial "
        "correlation, negative where the first has the smaller errors."
    )
    return Exhibit(
        "paired_tests", "Paired tests", caption, pairs, layout=layout, folded=is_long(rows)
    )


def _ends(row: Mapping[Hashable, Any]) -> str:
    if np.isnan(row["session_low"]):
        return "–"
    return f"[{figure(row['session_low'])},\N{NO-BREAK SPACE}{figure(row['session_high'])}]"


def appendix_f(metrics: pd.DataFrame, cells: Cells) -> Section:
    """All five metrics of the study with intervals, then what else was worked out."""
    known = by_cell(metrics)
    by_turn, by_session = [], []
    for model, condition in cells.keys:
        found = [known[model, condition, metric] for metric in APPENDIX_F]
        names = (Cell(model), Cell(condition))
        by_turn.append(
            (
                *names,
                *(Cell(interval(e["value"], e["low"], e["high"], 3)) for e in found),
                Cell(f"{found[0]['n']}/{found[0]['n_total']}"),
            )
        )
        by_session.append(
            (
                *names,
                *(
                    Cell(interval(e["value"], e["session_low"], e["session_high"], 3))
                    for e in found
                ),
            )
        )
    heads = tuple(Head(text) for text in ("Model", "Cond.", *(TITLES[m] for m in APPENDIX_F)))
    section = Section(
        "appendix_f",
        "Appendix F: all metrics",
        ("Over answered turns; n is how many of how many that is.",),
        [
            Exhibit(
                "appendix_f",
                "All metrics with 95 % bootstrap intervals over turns",
                "Percentile intervals, as the study reports.",
                metrics,
                layout=Layout(((*heads, Head("n")),), tuple(by_turn), words=2),
            ),
        ],
    )
    if cells.sessions is not None:
        few = "" if cells.units is not None else " There are too few sessions to trust them."
        section.exhibits.append(
            Exhibit(
                "appendix_f_sessions",
                "The same with intervals over sessions",
                "Whole sessions are drawn, since turns of one session are not independent." + few,
                metrics[["model", "condition", "metric", "value", "session_low", "session_high"]],
                layout=Layout((heads,), tuple(by_session), words=2),
                folded=True,
            )
        )
    section.exhibits.append(_further(metrics, cells))
    section.notes += undefined_notes(metrics)
    return section


FURTHER = (
    *("exact", "macro_mae", "bias", "mae_all", "a1_all", "expected_mae"),
    *("ranked_probability_score", "expected_calibration_error"),
)
FURTHER_TITLES = ("Exact", "Macro MAE", "Bias", "MAE, all", "A1, all", "E-MAE", "RPS", "ECE")


def _further(metrics: pd.DataFrame, cells: Cells) -> Exhibit:
    known = by_cell(metrics)
    rows = []
    for model, condition in cells.keys:
        found = [known[model, condition, metric] for metric in FURTHER]
        figures = (Cell(interval(e["value"], e["low"], e["high"])) for e in found)
        rows.append((Cell(model), Cell(condition), *figures))
    heads = tuple(Head(text) for text in ("Model", "Cond.", *FURTHER_TITLES))
    return Exhibit(
        "further_metrics",
        "Further metrics",
        "Exact: share predicted exactly; macro MAE: mean over gold levels; bias: predicted minus "
        "gold; “all”: over every turn, no answer charged the worst error; E-MAE: error of the "
        "distribution's mean; RPS: ranked probability score (0 best); ECE: expected calibration "
        "error; these three over the answered turns that have a distribution.",
        metrics[metrics["metric"].isin(FURTHER)],
        layout=Layout((heads,), tuple(rows), words=2),
        folded=True,
    )
