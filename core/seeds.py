"""Random generators, one for each draw: nothing in the process shares a random state."""

from __future__ import annotations

import struct
from hashlib import sha256, shake_256

import numpy as np


def seed_of(run_seed: int, *names: str) -> int:
    """A 63-bit seed from the run's seed and what the draw is for (item id, purpose, vote)."""
    text = "\x1f".join((str(run_seed), *names))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def generator(run_seed: int, *names: str) -> np.random.Generator:
    """The generator of one draw; equal names give equal draws, in any order of work."""
    return np.random.default_rng(seed_of(run_seed, *names))


def points(seed: int, count: int) -> list[float]:
    """Uniform draws from the open interval (0, 1), of 52 bits each; the same for each seed.

    Read off SHAKE-256 of the seed in decimal: the same in any version of any library, and a
    few points cost a tenth of what it takes to make a generator.
    """
    words = struct.unpack(f">{count}Q", shake_256(str(seed).encode()).digest(8 * count))
    # Half a step up: neither end is ever drawn, so logarithms of a point are finite.
    return [((word >> 12) + 0.5) * 2.0**-52 for word in words]
