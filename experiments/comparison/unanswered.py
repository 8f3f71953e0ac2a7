"""What was not answered: coverage, refusals, unparsed answers, seconds that were not heard."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from experiments.comparison import plots
from experiments.comparison.cells import Cells
from experiments.comparison.document import Exhibit, Section, is_long, percent, table
from experiments.table import FAILURES

SHADES = ("#E69F00", "#56B4E9", "#CC79A7", "#D55E00", "#444444", "#ffffff")
HATCHES = ("", "////", "---", "xxxx", "", "\\\\")
MOST_REASONS = 60
LONGEST_REASON = 160


def section(cells: Cells) -> Section:
    """Counts and seconds by model and condition, and the commonest reasons."""
    found = Section("unanswered", "What was not answered")
    frame = coverage_frame(cells)
    caption = (
        "Answered items and what became of the others; failed: the clip could not be read, the "
        "model broke or took too long. Unheard: seconds of audio given and not used by the "
        "model's encoder; longest: the longest such rest of one question. Audio of exemplars "
        "counts each time it is played."
    )
    folded = is_long(cells.keys)
    found.exhibits.append(
        table("coverage", "Coverage", caption, _shown(frame), words=2, folded=folded, numbers=frame)
    )
    if (frame["answered"] == frame["items"]).all():
        found.notes.append("Every item was answered by every model in every condition.")
        return found
    found.exhibits.insert(0, _statuses(frame))
    found.exhibits.append(_reasons(cells))
    return found


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns a reader looks at, short enough for a page."""
    failed = frame[["audio_error", "model_error", "timeout"]].sum(axis=1)
    return pd.DataFrame(
        {
            "Model": frame["model"],
            "Cond.": frame["condition"],
            "Answered": [
                f"{a}/{n}" for a, n in zip(frame["answered"], frame["items"], strict=True)
            ],
            "Coverage": [percent(share) for share in frame["coverage"]],
            "Refused": frame["refused"],
            "Unparsed": frame["unparsed"],
            "Truncated": frame["truncated"],
            "Failed": failed,
            "Audio s": [f"{seconds:,.0f}" for seconds in frame["seconds"]],
            "Unheard s": [f"{seconds:,.1f}" for seconds in frame["unheard"]],
            "Longest s": [f"{seconds:,.1f}" for seconds in frame["longest"]],
        }
    )


def coverage_frame(cells: Cells) -> pd.DataFrame:
    """One row a cell: how many were answered, each other status, seconds unheard."""
    rows = []
    for (model, condition), of_cell in cells.frames.items():
        status = of_cell["status"].value_counts()
        answered = int(of_cell["prediction"].notna().sum())
        given, used = (
            of_cell[name].to_numpy(dtype=np.float64) for name in ("seconds_given", "seconds_used")
        )
        # An encoder pads its last frame; more than given is no gain.
        unheard = np.nan_to_num(np.maximum(given - used, 0))
        rows.append(
            {
                "model": model,
                "condition": condition,
                "items": len(of_cell),
                "answered": answered,
                "coverage": answered / len(of_cell) if len(of_cell) else np.nan,
                **{name: int(status.get(name, 0)) for name in FAILURES},
                "seconds": float(np.nansum(given)),
                "unheard": float(unheard.sum()),
                "longest": float(unheard.max(initial=0.0)),
            }
        )
    return pd.DataFrame(rows)


def _statuses(frame: pd.DataFrame) -> Exhibit:
    rows = [
        {
            "row": row["model"],
            "panel": row["condition"],
            "part": status,
            "count": row[status],
            "share": row[status] / row["items"] if row["items"] else 0.0,
        }
        for row in frame.to_dict("records")
        for status in FAILURES
    ]
    drawn = pd.DataFrame(rows)
    return Exhibit(
        "statuses",
        "Share of items without an answer",
        "An answer that was refused, could not be read as a label, was about a clip not heard to "
        "its end, or failed. None of them is a number in any figure.",
        drawn,
        svg=plots.stacked(drawn, FAILURES, "share of items", SHADES, HATCHES),
    )


def _reasons(cells: Cells) -> Exhibit:
    parts: list[dict[str, Any]] = []
    for (model, condition), rows in cells.frames.items():
        failed = rows[rows["prediction"].isna()]
        counts = Counter(
            zip(failed["status"].astype(str), failed["reason"].astype(str), strict=True)
        )
        parts += [
            {
                "Model": model,
                "Cond.": condition,
                "Status": status,
                "Reason": " ".join(reason.split())[:LONGEST_REASON],
                "Items": count,
            }
            for (status, reason), count in counts.items()
        ]
    frame = pd.DataFrame(parts).sort_values("Items", ascending=False, kind="stable")
    shown = frame.head(MOST_REASONS)
    caption = f"The commonest {len(shown)} of {len(frame)}; all of them in the CSV."
    return table("reasons", "Reasons", caption, shown, words=4, folded=True, numbers=frame)
