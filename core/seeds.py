"""Random generators, one for each draw: nothing in the process shares a random state."""

from __future__ import annotations

from hashlib import sha256

import numpy as np


def seed_of(run_seed: int, *names: str) -> int:
    """A 63-bit seed from the run's seed and what the draw is for (item id, purpose, vote)."""
    text = "\x1f".join((str(run_seed), *names))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def generator(run_seed: int, *names: str) -> np.random.Generator:
    """The generator of one draw; equal names give equal draws, in any order of work."""
    return np.random.default_rng(seed_of(run_seed, *names))
