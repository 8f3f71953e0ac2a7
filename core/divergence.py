"""Where words and voice part: turns whose transcript and whose audio are rated differently.

`divergence` puts the three conditions of each turn side by side and says which of the study's
case studies it is like. The query is by rule, so that it gives the same turns again and can be
asked of any model; the study chose its seven cases with experts, by listening.

Source: CBT-Audio, section 4.2.1 (figure 3, cases A to G).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from core.manifest import is_nothing
from core.modality import CONDITIONS
from core.scoring import by_item

CASES: Mapping[str, str] = {
    "A": "the words understate: TO too low, audio and AT nearer",
    "B, C": "the words overstate: TO too high, audio and AT nearer",
    "D": "the words mislead AT too: TO and AT too high, audio nearer than both",
    "E": "audio overstates: TO right, audio and AT too high",
    "F": "the two complete each other: audio and TO too high, AT nearer than both",
    "G": "the words are enough: TO right, AT the same",
}
"""Which turns are meant by each of the study's cases, by stated levels. B and C are one rule:
what tells them apart is a laugh. A turn is one case at most, and may be none."""

_SHOWN_WORDS = 60


def case(gold: int, audio: int, both: int, words: int) -> str | None:
    """The case a turn is like.

    Args:
        gold: reference level, 1-5.
        audio, both, words: levels stated in AO, AT and TO.
    """
    of_audio, of_both, of_words = (abs(level - gold) for level in (audio, both, words))
    if of_words == 0:
        if both == words:
            return "G"
        return "E" if audio > gold and both > gold else None
    if words < gold:
        return "A" if of_audio < of_words and of_both < of_words else None
    if audio > gold and of_both < of_words and of_both < of_audio:
        return "F"
    if of_audio < of_words and of_both < of_words:
        return "B, C"
    return "D" if both > gold and of_audio < min(of_words, of_both) else None


def divergence(cells: Mapping[str, pd.DataFrame], items: pd.DataFrame) -> pd.DataFrame:
    """Every turn with its three ratings, the furthest apart first.

    Args:
        cells: predictions of AO, AT and TO.
        items: with item_id, session_id, turn_index, audio, transcript, label and, where the
            clip is a part of its file, start_s and end_s.

    Returns:
        Columns item_id, session_id, turn_index, case (see `CASES`; None for none), gold, AO, AT,
        TO, "AO expected", "AT expected", "TO expected", levels (stated AO less TO), expected
        (the same of the distributions' means), audio, start_s, end_s, transcript. Ordered by
        the size of `expected`, where there is none by that of `levels`, then by item; turns
        with neither come last.
    """
    columns = ["item_id", "session_id", "turn_index", "audio", "start_s", "end_s", "transcript"]
    frame = items.reindex(columns=[*columns, "label"]).rename(columns={"label": "gold"})
    frame["item_id"] = frame["item_id"].astype(str)
    for condition in CONDITIONS:
        known = by_item(cells[condition])
        frame[condition] = frame["item_id"].map(known["prediction"]).astype("Int64")
        frame[f"{condition} expected"] = frame["item_id"].map(known["expected"].astype("float64"))
    frame["levels"] = frame["AO"] - frame["TO"]
    frame["expected"] = frame["AO expected"] - frame["TO expected"]
    frame["case"] = [_case(row) for row in frame.to_dict("records")]
    size = frame["expected"].abs()
    frame["_size"] = size.fillna(frame["levels"].astype("float64").abs())
    ordered = frame.sort_values(
        ["_size", "item_id"], ascending=[False, True], na_position="last", kind="stable"
    )
    named = [f"{condition} expected" for condition in CONDITIONS]
    order = [*columns[:3], "case", "gold", *CONDITIONS, *named, "levels", "expected", *columns[3:]]
    return ordered[order].reset_index(drop=True)


def cases_table(turns: pd.DataFrame) -> pd.DataFrame:
    """How many turns are like each case, of those answered in all three conditions.

    Returns:
        Columns case, meaning, turns ("12/1790"), share, then the one whose audio and words lie
        furthest apart: example (its item), gold, AO, AT, TO, audio; in the order of `CASES`,
        then a row for none of them.
    """
    whole = turns[turns[list(CONDITIONS)].notna().all(axis=1)]
    rows = []
    for name, meaning in (*CASES.items(), ("none", "like none of them")):
        like = whole[whole["case"].isna() if name == "none" else whole["case"] == name]
        rows.append(
            {
                "case": name,
                "meaning": meaning,
                "turns": f"{len(like)}/{len(whole)}",
                "share": len(like) / len(whole) if len(whole) else np.nan,
                **_example(like),
            }
        )
    # Objects keep None, which says nothing is to be said, apart from NaN, which is undefined.
    return pd.DataFrame(rows, dtype=object)


def case_turns(turns: pd.DataFrame) -> pd.DataFrame:
    """As `divergence`, the turns like a case: A first, and of each the furthest apart first."""
    return turns[turns["case"].notna()].sort_values("case", kind="stable").reset_index(drop=True)


def _example(like: pd.DataFrame) -> dict[str, str | None]:
    if not len(like):
        return dict.fromkeys(("example", "gold", *CONDITIONS, "audio"))
    row = like.iloc[0]
    levels = {name: _level(row[name]) for name in ("gold", *CONDITIONS)}
    return {"example": row["item_id"], **levels, "audio": _where(row)}


def furthest(turns: pd.DataFrame, most: int) -> pd.DataFrame:
    """The first `most` turns as a reader wants them: words cut short, the file to listen to.

    Turns whose two conditions agree, or where one has no answer, are not among them.
    """
    apart = turns[(turns["expected"].fillna(0) != 0) | (turns["levels"].fillna(0) != 0)]
    rows = [
        {
            "turn": row["item_id"],
            "case": None if is_nothing(row["case"]) else row["case"],
            "gold": _level(row["gold"]),
            **{condition: _level(row[condition]) for condition in CONDITIONS},
            "AO - TO, levels": _level(row["levels"], signed=True),
            "AO - TO, expected": None if is_nothing(row["expected"]) else f"{row['expected']:+.2f}",
            "audio": _where(row),
            "transcript": _cut(str(row["transcript"])),
        }
        for row in apart.head(most).to_dict("records")
    ]
    return pd.DataFrame(rows, dtype=object)


def _case(row: Mapping[Hashable, Any]) -> str | None:
    levels = [row[name] for name in ("gold", *CONDITIONS)]
    if any(is_nothing(level) for level in levels):
        return None
    gold, audio, both, words = (int(level) for level in levels)
    return case(gold, audio, both, words)


def _level(value: Any, *, signed: bool = False) -> str | None:
    return None if is_nothing(value) else f"{int(value):{'+' if signed else ''}d}"


def _where(row: Mapping[Any, Any] | pd.Series[Any]) -> str | None:
    if is_nothing(row["audio"]):
        return None
    if is_nothing(row["start_s"]):
        return str(row["audio"])
    end = "" if is_nothing(row["end_s"]) else f"{row['end_s']:.1f}"
    return f"{row['audio']} {row['start_s']:.1f}-{end} s"


def _cut(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _SHOWN_WORDS else line[: _SHOWN_WORDS - 3].rstrip() + "..."
