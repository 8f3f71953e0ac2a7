"""Comparing models and conditions on the same items: aligned first, then tested.

Takes predictions tables, one for each cell (a model in a condition), asserts that all hold
the same items with the same gold, and gives one row a pair with the test, its effect sizes
and its Holm-adjusted p. A family is what one call compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.metrics import binary, tables
from core.metrics.ordinal import WORST
from core.stats.holm import holm
from core.stats.mcnemar import mcnemar_of_joint
from core.stats.permutation import sign_flip
from core.stats.power import detectable_accuracy_difference, detectable_error_difference
from core.stats.wilcoxon import signed_rank_of_counts

BLOCK = 65_536
"""Items counted at once, so that a million take no more memory than these."""

SHOWN = 10
"""Ids spelled out in an error; the rest are counted."""


class UnequalItemsError(ValueError):
    """Two cells do not hold the same items, or disagree about their gold."""


@dataclass(frozen=True)
class Aligned:
    """Predictions of C cells for the same n items, in the same order.

    Attributes:
        names: C cell names.
        item_ids: (n,) sorted.
        gold: (n,) as in the tables.
        predicted: (C, n) objects; None where there is no answer.
        sessions: (n,) the group of each item, or None where the tables have none.
    """

    names: tuple[str, ...]
    item_ids: NDArray[np.str_]
    gold: NDArray[Any]
    predicted: NDArray[Any]
    sessions: NDArray[np.str_] | None


def align(predictions: Mapping[str, pd.DataFrame]) -> Aligned:
    """Put the cells' predictions side by side, by item id.

    Args:
        predictions: cell name to a table with item_id, gold, prediction and, for tests over
            sessions, group_id; one row an item.

    Raises:
        UnequalItemsError: an item twice in one cell, items that some cell lacks (all of them listed
            up to ten a cell), or an item whose gold or group differs between cells.
    """
    if not predictions:
        raise UnequalItemsError("there is no predictions table to compare.")
    ordered = {
        name: table.assign(item_id=table["item_id"].astype(str)).sort_values("item_id")
        for name, table in predictions.items()
    }
    for name, table in ordered.items():
        twice = table["item_id"][table["item_id"].duplicated()]
        if len(twice):
            raise UnequalItemsError(
                f"{name}: {_listed(set(twice))} occur more than once. Keep one row an item: "
                "select one condition before comparing."
            )
    _assert_same_items({name: set(table["item_id"]) for name, table in ordered.items()})
    first = next(iter(ordered.values()))
    columns = ["gold"] + (["group_id"] if "group_id" in first else [])
    for name, table in ordered.items():
        for column in columns:
            unlike = table["item_id"].to_numpy()[
                table[column].astype(str).to_numpy() != first[column].astype(str).to_numpy()
            ]
            if len(unlike):
                raise UnequalItemsError(
                    f"{name}, {column}: {_listed(set(unlike))} differ from "
                    f"{next(iter(ordered))}. Compare runs on the same dataset version."
                )
    answers = [table["prediction"].astype(object) for table in ordered.values()]
    return Aligned(
        names=tuple(ordered),
        item_ids=first["item_id"].to_numpy(dtype=str),
        gold=first["gold"].to_numpy(),
        predicted=np.array([answer.where(answer.notna(), None).to_numpy() for answer in answers]),
        sessions=first["group_id"].to_numpy(dtype=str) if "group_id" in first else None,
    )


def _assert_same_items(ids: Mapping[str, set[str]]) -> None:
    every = set().union(*ids.values())
    lacking = {name: every - held for name, held in ids.items() if held != every}
    if lacking:
        parts = "; ".join(f"{name} lacks {_listed(items)}" for name, items in lacking.items())
        raise UnequalItemsError(
            f"the cells do not hold the same items: {parts}. A paired test needs all of them in "
            "each; an item without an answer stays in its table with an empty prediction."
        )


def _listed(items: Iterable[str]) -> str:
    names = sorted(items)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} items ({', '.join(names[:SHOWN])}{more})"


def absolute_errors(aligned: Aligned, *, over: str = "answered") -> NDArray[np.int8]:
    """Absolute errors of distress ratings.

    Args:
        over: "answered" marks an unanswered item -1; "all" charges it the worst error of its
            gold level.

    Returns:
        (C, n) integers 0-4, or -1.
    """
    _check_over(over)
    gold = tables.levels_of(aligned.gold, name="gold", missing=False)
    errors = np.empty(aligned.predicted.shape, dtype=np.int8)
    for cell, name in enumerate(aligned.names):
        answer = tables.levels_of(aligned.predicted[cell], name=name, missing=True)
        unanswered = WORST[gold - 1] if over == "all" else -1
        errors[cell] = np.where(answer == 6, unanswered, np.abs(answer - gold))
    return errors


def difference_counts(errors: NDArray[np.int8]) -> NDArray[np.int64]:
    """How often the errors of each two cells differ by -4 to 4, on items both answered.

    Args:
        errors: (C, n) integers 0-4, or -1 for an item to leave out.

    Returns:
        (C, C, 9); [a, b] counts error of a minus error of b.
    """
    cells, items = errors.shape
    joint = np.zeros((cells * 5, cells * 5))
    for start in range(0, items, BLOCK):
        block = errors[:, None, start : start + BLOCK] == np.arange(5)[:, None]
        each = block.reshape(cells * 5, -1).astype(np.float32)
        # float32 counts whole numbers exactly up to 2**24, far above a block
        joint += each @ each.T
    by_error = joint.reshape(cells, 5, cells, 5).transpose(0, 2, 1, 3)
    diagonals = [by_error.diagonal(-step, 2, 3).sum(-1) for step in range(-4, 5)]
    return np.round(np.stack(diagonals, -1)).astype(np.int64)


def compare_errors(
    aligned: Aligned,
    pairs: Iterable[tuple[str, str]] | None = None,
    *,
    over: str = "answered",
    zeros: str = "pratt",
    method: str = "auto",
    sign_flips: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Signed-rank tests of per-turn absolute errors, one row a pair.

    Args:
        pairs: names of the cells to compare, a family for Holm's adjustment; all pairs if None.
        over: "answered" tests items both answered; "all" charges no answer the worst error.
        zeros, method, resamples, seed: as in `core.stats.wilcoxon`.
        sign_flips: add exact sign-flip tests of the mean difference, over items (p_flip) and,
            where the tables name groups, over sessions (p_sessions).

    Returns:
        Columns first, second, n, n_nonzero, difference (mean error of first minus second),
        w_plus, w_minus, statistic, p, p_holm, r, r_low, r_high, shift, method, zeros, over,
        detectable (smallest difference found with probability 0.8), reason.
    """
    errors = absolute_errors(aligned, over=over)
    chosen = list(combinations(aligned.names, 2)) if pairs is None else list(pairs)
    one, two = _places(aligned.names, chosen)
    counts = difference_counts(errors)[one, two]
    tested = signed_rank_of_counts(
        counts, zeros=zeros, method=method, resamples=resamples, seed=seed
    )
    detectable = [detectable_error_difference(table, zeros=zeros) for table in counts]
    mean = counts @ np.arange(-4, 5) / np.where(tested.n > 0, tested.n, np.nan)
    rows = pd.DataFrame(
        {
            "first": [pair[0] for pair in chosen],
            "second": [pair[1] for pair in chosen],
            "n": tested.n,
            "n_nonzero": tested.n_nonzero,
            "difference": mean,
            "w_plus": tested.w_plus,
            "w_minus": tested.w_minus,
            "statistic": tested.statistic,
            "p": tested.p,
            "p_holm": holm(tested.p),
            "r": tested.r,
            "r_low": tested.r_low,
            "r_high": tested.r_high,
            "shift": tested.shift,
            "method": tested.method,
            "zeros": zeros,
            "over": over,
            "detectable": [found.difference for found in detectable],
            "reason": [
                _why(n, nonzero) for n, nonzero in zip(tested.n, tested.n_nonzero, strict=True)
            ],
        }
    )
    if sign_flips:
        flipped = [
            _flips(errors[a], errors[b], aligned.sessions, seed)
            for a, b in zip(one, two, strict=True)
        ]
        rows[["p_flip", "p_sessions"]] = np.array(flipped).reshape(-1, 2)
    return rows


def _why(n: int, n_nonzero: int) -> str | None:
    if not n:
        return "no item was answered by both"
    return None if n_nonzero else "all differences are zero"


def _flips(
    first: NDArray[np.int8],
    second: NDArray[np.int8],
    sessions: NDArray[np.str_] | None,
    seed: int,
) -> tuple[float, float]:
    both = (first >= 0) & (second >= 0)
    apart = first[both].astype(np.int64) - second[both]
    over_items = sign_flip(apart, seed=seed).p
    if sessions is None:
        return over_items, np.nan
    return over_items, sign_flip(apart, sessions=sessions[both], seed=seed).p


def _places(
    names: tuple[str, ...], pairs: list[tuple[str, str]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    place = {name: number for number, name in enumerate(names)}
    for pair in pairs:
        for name in pair:
            if name not in place:
                raise ValueError(f"pairs: expected cells among {', '.join(names)}, found {name!r}.")
    found = np.array([[place[a], place[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _check_over(over: str) -> None:
    if over not in ("answered", "all"):
        raise ValueError(f'over: expected "answered" or "all", found {over!r}.')


def joint_table(
    aligned: Aligned,
    first: str,
    second: str,
    *,
    by_session: bool = False,
    count: Callable[[Any, Any, Any], NDArray[np.int64]] = tables.joint_counts,
) -> NDArray[np.int64]:
    """The joint table of two cells, for a paired bootstrap of the difference of any metric.

    Args:
        by_session: one table a session, for the cluster bootstrap.
        count: `core.metrics.tables.joint_counts` for distress ratings,
            `core.metrics.binary.joint_counts` for YES and NO.

    Returns:
        (R, R + 1, R + 1), axes gold, first, second, the last of each no answer; by session
        (S, R, R + 1, R + 1). `[..., :-1, :-1]` is the part that both answered.
    """
    (one,), (two,) = _places(aligned.names, [(first, second)])
    triple = (aligned.gold, aligned.predicted[one], aligned.predicted[two])
    if not by_session:
        return count(*triple)
    if aligned.sessions is None:
        raise ValueError(
            "by_session: the predictions tables have no group_id column to tell sessions by. "
            "Add one, or draw items."
        )
    chosen = [np.flatnonzero(aligned.sessions == name) for name in np.unique(aligned.sessions)]
    return np.stack([count(*(column[rows] for column in triple)) for rows in chosen])


def compare_answers(
    aligned: Aligned,
    pairs: Iterable[tuple[str, str]] | None = None,
    *,
    over: str = "answered",
    sign_flips: bool = True,
    seed: int = 0,
) -> pd.DataFrame:
    """McNemar tests of YES/NO answers, one row a pair.

    Args:
        pairs, over: as in `compare_errors`.
        sign_flips: whether to work out p_sessions.

    Returns:
        Columns first, second, n, first_only, second_only, difference (of accuracies), p, p_holm,
        mid_p, p_sessions (exact sign flip over groups; NaN where the tables name none, or without
        `sign_flips`), over, detectable, reason.
    """
    _check_over(over)
    chosen = list(combinations(aligned.names, 2)) if pairs is None else list(pairs)
    one, two = _places(aligned.names, chosen)
    rows = []
    for a, b, (first, second) in zip(one, two, chosen, strict=True):
        joint = binary.joint_counts(aligned.gold, aligned.predicted[a], aligned.predicted[b])
        tested = mcnemar_of_joint(joint, over=over)
        n, discordant = int(tested.n), int(tested.first_only + tested.second_only)
        rows.append(
            {
                "first": first,
                "second": second,
                "n": n,
                "first_only": int(tested.first_only),
                "second_only": int(tested.second_only),
                "difference": float(tested.difference),
                "p": float(tested.p),
                "mid_p": float(tested.mid_p),
                "p_sessions": _p_sessions(aligned, a, b, over, seed) if sign_flips else np.nan,
                "over": over,
                "detectable": detectable_accuracy_difference(n, discordant / max(n, 1)).difference,
                "reason": _why(n, discordant),
            }
        )
    table = pd.DataFrame(rows)
    if rows:
        table.insert(7, "p_holm", holm(table["p"]))
    return table


def _p_sessions(aligned: Aligned, first: int, second: int, over: str, seed: int) -> float:
    one, two = (wrong_answer(aligned, cell, over) for cell in (first, second))
    return _flips(one, two, aligned.sessions, seed)[1]


def wrong_answer(aligned: Aligned, cell: int, over: str) -> NDArray[np.int8]:
    """Whether each YES/NO answer of a cell is wrong, (n,) 0 or 1; `over` as `absolute_errors`."""
    answer = aligned.predicted[cell]
    unanswered = np.array([reply is None for reply in answer])
    wrong = (answer != aligned.gold).astype(np.int8)
    return wrong if over == "all" else np.where(unanswered, np.int8(-1), wrong)
