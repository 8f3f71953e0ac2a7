"""One figure with its interval and its denominator: what every table is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A metric of one condition.

    Attributes:
        metric: as in MLflow, e.g. "mae".
        condition: AO, AT or TO, or a pair such as "AT-TO".
        value: NaN where undefined, and then `reason` says why.
        low, high: 95 % interval ends; NaN where none was computed.
        n: items the value rests on.
        n_total: items asked; n < n_total where some were not answered.
    """

    metric: str
    condition: str
    value: float
    low: float
    high: float
    n: int
    n_total: int
    reason: str | None = None
