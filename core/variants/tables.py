"""What a change cost: each variant beside the condition it belongs to, over the same items.

`drop` is how much worse the variant is than its condition, paired, with a percentile interval
over items; p is the study's paired test, adjusted by Holm within one flag, and beside it the
sign-flip test over whole sessions. How many answers changed at all stands next to it: a model
may answer otherwise without being better or worse. All of these rest on `both`: the items that
the variant and its condition answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.metrics.estimate import Estimate
from core.metrics.ordinal import share
from core.scoring import by_item, estimate, of_pair
from core.stats import paired
from core.stats.bootstrap import Metric, bootstrap, difference, weight_bootstrap
from core.variants import Variant

Float = NDArray[np.float64]
Cells = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Measure:
    """What a task is scored by when two conditions are compared.

    Attributes:
        name: of the metric.
        metric: over (..., R, R) counts of gold by predicted.
        worse: 1 where a higher value is worse, else -1.
        count: joint counts of gold, first and second.
        errors: (C, n) error of each cell and item, negative for no answer.
        test: compares pairs of aligned cells: columns first, second, p, p_holm, p_sessions.
    """

    name: str
    metric: Metric
    worse: int
    count: Callable[[Any, Any, Any], NDArray[np.int64]]
    errors: Callable[[paired.Aligned], NDArray[np.int8]]
    test: Callable[[paired.Aligned, Sequence[tuple[str, str]]], pd.DataFrame]


@dataclass(frozen=True)
class Comparison:
    """Cells of the same items, ready to be compared.

    Attributes:
        cells: predictions by condition or variant.
        resamples, seed: of every interval.
    """

    cells: Cells
    aligned: paired.Aligned
    measure: Measure
    resamples: int
    seed: int
    _differences: dict[tuple[str, str], Estimate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def difference(self, first: str, second: str) -> Estimate:
        """The measure of the first minus that of the second, over items both answered.

        Drawn once a pair: the table, its notes and the run's figures all ask for it.
        """
        pair = (first, second)
        if pair not in self._differences:
            self._differences[pair] = self._difference(pair)
        return self._differences[pair]

    def _difference(self, pair: tuple[str, str]) -> Estimate:
        joint = paired.joint_table(self.aligned, *pair, count=self.measure.count)
        apart = difference(self.measure.metric)
        drawn = {"resamples": self.resamples, "seed": self.seed}
        return of_pair(self.measure.name, pair, joint, apart, **drawn)

    def drop(self, worse: str, base: str) -> Estimate:
        """The same, positive where the first is worse."""
        found = self.difference(worse, base)
        if self.measure.worse > 0:
            return found
        # From 0, since a difference of nothing turned round must not read -0.
        return replace(found, value=0.0 - found.value, low=0.0 - found.high, high=0.0 - found.low)

    def value(self, name: str) -> Estimate:
        """The measure of one cell over what it answered."""
        joint = paired.joint_table(self.aligned, name, name, count=self.measure.count)
        table = joint.sum(-1)[..., :-1]
        found = bootstrap(
            table, {"value": self.measure.metric}, resamples=self.resamples, seed=self.seed
        )["value"]
        n, n_total = int(table.sum()), int(joint.sum())
        reason = None if n else f"none of {n_total} items was answered"
        return estimate(self.measure.name, name, found, n=n, n_total=n_total, reason=reason)


def comparison(cells: Cells, measure: Measure, *, resamples: int, seed: int) -> Comparison:
    """Put cells side by side.

    Raises:
        core.stats.paired.UnequalItemsError: they do not hold the same items.
    """
    return Comparison(cells, paired.align(cells), measure, resamples, seed)


def drops(compared: Comparison, variants: Sequence[Variant]) -> list[Estimate]:
    """One figure a variant: the measure of the variant minus that of its condition."""
    return [compared.difference(variant.name, variant.base) for variant in variants]


def variants_table(compared: Comparison, variants: Sequence[Variant]) -> pd.DataFrame:
    """Each condition and below it its variants.

    Args:
        variants: of one flag, a family for Holm's adjustment.

    Returns:
        Columns given, answered, <measure>, both, drop, p, p_holm, p_sessions, changed (share of
        answers that differ from the condition's), shift (mean absolute change of `expected`);
        <measure> and drop with " low" and " high". <measure> rests on what the row answered, drop
        to shift on `both`: the items that it and its condition answered. None where a row has
        nothing to say, as the condition itself has no drop.
    """
    tested = _tested(compared, [(variant.name, variant.base) for variant in variants])
    rows: list[dict[str, Any]] = []
    for base in dict.fromkeys(variant.base for variant in variants):
        rows.append(_row(compared, base))
        rows += [
            _row(compared, variant.name, base, tested)
            for variant in variants
            if variant.base == base
        ]
    return _frame(rows)


def hearing_table(compared: Comparison, variants: Sequence[Variant]) -> pd.DataFrame:
    """As `variants_table`, with TO as the row where nothing is heard, and the share of the gain.

    The gain is what AT is better than TO; a variant's share of it is its drop over the gain. It
    is undefined unless the gain's interval lies above 0: a share of nothing can be any number.
    """
    with_to = "TO" in compared.cells
    names = [(variant.name, "AT") for variant in variants]
    tested = _tested(compared, names)
    rows = [_row(compared, "AT"), *(_row(compared, name, "AT", tested) for name, _ in names)]
    if with_to:
        rows.append(_row(compared, "TO", "AT", _tested(compared, [("TO", "AT")], family=False)))
        for row, (name, _) in zip(rows[1:-1], names, strict=True):
            row |= _ends("share of gain", share_of_gain(compared, name))
    return _frame(rows)


def share_of_gain(compared: Comparison, variant: str) -> Estimate:
    """How much of what AT is better than TO a variant loses, over items all three answered.

    Returns:
        1 where the variant is as good as TO, 0 where it is as good as AT; beyond both where
        it is worse than TO or better than AT.
    """
    gain = compared.drop("TO", "AT")
    n_total = gain.n_total
    if not gain.low > 0:
        why = f"AT's gain over TO is {_with_ends(gain)}: not above 0"
        return _undefined("share of gain", variant, why, n_total)
    names = compared.aligned.names
    errors = compared.measure.errors(compared.aligned)
    to, at, other = (errors[names.index(name)].astype(np.float64) for name in ("TO", "AT", variant))
    whole = (to >= 0) & (at >= 0) & (other >= 0)
    lost, gained = (other - at)[whole], (to - at)[whole]

    def ratio(weights: NDArray[Any]) -> Float:
        below = weights @ gained
        return share(weights @ lost, np.where(below > 0, below, 0.0))

    n = int(whole.sum())
    if not n or gained.sum() <= 0:
        why = "no gain among the items all three answered"
        return _undefined("share of gain", variant, why, n_total)
    found = weight_bootstrap(n, {"share": ratio}, resamples=compared.resamples, seed=compared.seed)[
        "share"
    ]
    return estimate("share of gain", variant, found, n=n, n_total=n_total, reason=None)


def hearing_notes(compared: Comparison, variants: Sequence[Variant]) -> list[str]:
    """What the table says, in a sentence or two."""
    if "TO" not in compared.cells:
        return ["hearing: TO was not asked, so nothing says what AT's audio adds to the words."]
    gain = compared.drop("TO", "AT")
    unit = {"mae": " levels"}.get(compared.measure.name, "")
    said = [f"hearing: AT's gain over TO is {_with_ends(gain)}{unit}."]
    if not gain.low > 0:
        said.append(
            "Its interval does not lie above 0, so there is no gain to divide up: the drops say "
            "whether the clip matters to the answer, not that it helps."
        )
    for variant in variants:
        drop = compared.drop(variant.name, "AT")
        if math.isnan(drop.value):
            said.append(f"{variant.name}: the drop is undefined ({drop.reason}).")
    return [" ".join(said)]


def prompts_notes(compared: Comparison, variants: Sequence[Variant]) -> list[str]:
    """The range of the measure over wordings, the study's among them.

    Over the items answered in all of them: else a wording whose hard items were refused would
    look better than one that answered them.
    """
    said = []
    for base in dict.fromkeys(variant.base for variant in variants):
        names = [base, *(variant.name for variant in variants if variant.base == base)]
        given = {name: _answers(compared, name) for name in names}
        named = [name for name in names if given[name].any()]
        if silent := [name for name in names if name not in named]:
            said.append(f"prompts, {base}: no item was answered in {', '.join(silent)}.")
        if len(named) > 1:
            everywhere = np.logical_and.reduce([given[name] for name in named])
            said.append(f"prompts, {base}: {_range(compared, named, everywhere)}")
    return said


def _range(compared: Comparison, names: Sequence[str], everywhere: NDArray[np.bool_]) -> str:
    """Least and most of the measure over the items that all of these answered."""
    n, n_total = int(everywhere.sum()), len(everywhere)
    measure = compared.measure.name
    if not n:
        return f"no range of {measure}, no item was answered in all {len(names)} wordings."
    aligned = compared.aligned
    shared = replace(
        aligned,
        item_ids=aligned.item_ids[everywhere],
        gold=aligned.gold[everywhere],
        predicted=aligned.predicted[:, everywhere],
        sessions=None if aligned.sessions is None else aligned.sessions[everywhere],
    )
    values: dict[str, float] = {}
    for name in names:
        joint = paired.joint_table(shared, name, name, count=compared.measure.count)
        values[name] = float(compared.measure.metric(joint.sum(-1)[..., :-1]))
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    ends = f"from {values[low]:.2f} ({low}) to {values[high]:.2f} ({high}) over"
    if values[low] == values[high]:
        ends = f"{values[low]:.2f} in all"
    return f"{measure} {ends} {len(names)} wordings, on the {n}/{n_total} items answered in each."


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    # Objects keep None, which says nothing is to be said, apart from NaN, which is undefined.
    cells = [[row.get(name) for name in columns] for row in rows]
    return pd.DataFrame(cells, columns=columns, dtype=object)


def _tested(
    compared: Comparison, pairs: Sequence[tuple[str, str]], *, family: bool = True
) -> dict[str, dict[str, str]]:
    found = compared.measure.test(compared.aligned, pairs)
    columns = ("p", "p_holm", "p_sessions") if family else ("p", "p_sessions")
    return {
        # A p of 0.0003 must not read as zero.
        str(row["first"]): {
            name: "undefined" if math.isnan(row[name]) else f"{row[name]:.2g}" for name in columns
        }
        for row in found.to_dict("records")
    }


def _row(
    compared: Comparison,
    name: str,
    base: str | None = None,
    tested: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    value = compared.value(name)
    row: dict[str, Any] = {"given": name, "answered": f"{value.n}/{value.n_total}"}
    row |= _ends(compared.measure.name, value)
    if base is None:
        return row
    drop = compared.drop(name, base)
    row["both"] = f"{drop.n}/{drop.n_total}"
    row |= {**_ends("drop", drop), **(tested or {}).get(name, {})}
    return row | _moved(compared, name, base)


def _moved(compared: Comparison, name: str, base: str) -> dict[str, float]:
    """How many answers differ, and how far `expected` moved, over the items both answered.

    The shift is undefined where one of these has no distribution: it would rest on fewer.
    """
    names = compared.aligned.names
    both = _answers(compared, name) & _answers(compared, base)
    if not both.any():
        return {"changed": math.nan, "shift": math.nan}
    one, two = (compared.aligned.predicted[names.index(key)] for key in (name, base))
    other = np.array([a != b for a, b in zip(one, two, strict=True)])
    first, second = (
        by_item(cell)["expected"]
        .loc[compared.aligned.item_ids[both].tolist()]
        .to_numpy(dtype=np.float64, na_value=np.nan)
        for cell in (compared.cells[name], compared.cells[base])
    )
    return {
        "changed": float(other[both].mean()),
        "shift": float(np.abs(first - second).mean()),
    }


def _answers(compared: Comparison, name: str) -> NDArray[np.bool_]:
    """(n,) whether this cell answered each item."""
    row = compared.aligned.predicted[compared.aligned.names.index(name)]
    return np.array([given is not None for given in row], dtype=bool)


def _ends(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name} low": found.low, f"{name} high": found.high}


def _with_ends(found: Estimate) -> str:
    if math.isnan(found.low):
        return "undefined" if math.isnan(found.value) else f"{found.value:.2f}"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _undefined(name: str, condition: str, why: str, n_total: int) -> Estimate:
    return Estimate(name, condition, math.nan, math.nan, math.nan, 0, n_total, why)
