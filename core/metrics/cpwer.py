"""Concatenated minimum-permutation word error rate: right words from the wrong speaker count.

Source: Watanabe et al. 2020 (CHiME-6), section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

from core.speech.listening import word_errors, words


def cp_word_errors(reference: Mapping[str, str], found: Mapping[str, str]) -> tuple[int, int]:
    """Word edits under the best one-to-one mapping of speakers, and words of the reference.

    Args:
        reference, found: speaker -> all that speaker says, in order.
    """
    real, ours = list(reference.values()), list(found.values())
    # Who has no counterpart said, or was said to say, everything wrongly.
    size = max(len(real), len(ours))
    real += [""] * (size - len(real))
    ours += [""] * (size - len(ours))
    costs = np.array([[word_errors(one, other)[0] for other in ours] for one in real])
    if not size:
        return 0, 0
    rows, columns = linear_sum_assignment(costs)
    return int(costs[rows, columns].sum()), sum(len(words(text)) for text in real)
