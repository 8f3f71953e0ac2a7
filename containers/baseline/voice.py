"""From prosody to a distribution over labels: how far a voice is from an ordinary one.

Each measure is taken as so many standard deviations from a norm; activation is
the mean of those that rise with arousal, strain of those that come with a voice
under load. One standard deviation is one level of the scale: no constant here
was fitted to a label. Absolute level is measured but not used, since it says
more of the microphone than of the speaker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from containers.baseline.prosody import Prosody

Floats = NDArray[np.float64]

# Traunmüller & Eriksson (1995): typical mean pitch of men and of women.
TYPICAL_PITCH_HZ = (120.0, 210.0)
# A measure further out than this is more likely a fault of the recording than a feeling.
MOST_Z = 2.0
MIDDLE_LEVEL = 3.0
# Width of the distribution in levels: with one rating scale and no knowledge of the
# speaker, a neighbour level is nearly as likely as the level itself.
LEVEL_SD = 1.0


@dataclass(frozen=True)
class Norm:
    """Mean and standard deviation over ordinary adult speech, and which way a measure points."""

    mean: float
    sd: float
    sign: int = 1


# Directions: Juslin & Laukka (2003), Scherer (2003): higher and more variable pitch and
# level, faster speech and more high-frequency energy go with arousal.
# Means and spreads: pitch_raise and pitch_spread after Traunmüller & Eriksson (1995),
# who give the spread in semitones and its growth with lively talk; the rate after
# Jacewicz et al. (2010), about five syllables a second in American English talk, less
# the share that peak picking misses (de Jong & Wempe 2009). The level spread and the
# alpha ratio have no norm that holds across recordings: round figures, set by judgement.
ACTIVATION = {
    "pitch_raise_st": Norm(0.0, 3.0),
    "pitch_spread_st": Norm(2.5, 1.0),
    "level_spread_db": Norm(6.0, 1.5),
    "syllables_per_s": Norm(4.5, 0.9),
    "alpha_db": Norm(-12.0, 5.0),
}
# Directions: Cannizzaro et al. (2004): more pausing with severer depression; a rougher or
# breathier voice has a lower harmonics-to-noise ratio (Boersma 1993). Figures: connected
# speech lies well below the 20 dB of a healthy sustained vowel, and a speaker pauses for
# about a fifth of the time: round figures, set by judgement.
STRAIN = {
    "pause_share": Norm(0.2, 0.1),
    "hnr_db": Norm(11.0, 3.0, sign=-1),
}


def distress_logprobs(heard: Prosody | None) -> Floats:
    """(5,) log-probabilities of the levels 1-5; even where no voice was heard."""
    if heard is None:
        return np.full(5, -np.log(5))
    level = MIDDLE_LEVEL + (activation(heard) + strain(heard)) / 2
    scores: Floats = -0.5 * ((np.arange(1.0, 6.0) - level) / LEVEL_SD) ** 2
    return normalised(scores)


def manipulation_logprobs(heard: Prosody | None) -> Floats:
    """(2,) log-probabilities of YES and NO.

    An activated voice is taken for weak evidence of pressure, one log-odd for a
    standard deviation; no study says so. It is here so that audio alone has a floor.
    """
    score = 0.0 if heard is None else activation(heard)
    return normalised(np.array([score / 2, -score / 2]))


def activation(heard: Prosody) -> float:
    """Mean of the arousal measures in standard deviations, within [-2, 2]."""
    return _mean_z(heard, ACTIVATION)


def strain(heard: Prosody) -> float:
    """Mean of the measures of a voice under load in standard deviations, within [-2, 2]."""
    return _mean_z(heard, STRAIN)


def normalised(scores: Floats) -> Floats:
    """Log-probabilities from log-scores, along the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    logprobs: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logprobs


def _mean_z(heard: Prosody, norms: dict[str, Norm]) -> float:
    return float(np.mean([_z(_measure(heard, name), norm) for name, norm in norms.items()]))


def _measure(heard: Prosody, name: str) -> float:
    if name == "pitch_raise_st":
        # Whose voice it is stays unknown: the nearer of the two norms is the cautious guess.
        return float(min((12 * np.log2(heard.pitch_hz / f) for f in TYPICAL_PITCH_HZ), key=abs))
    return float(getattr(heard, name))


def _z(value: float, norm: Norm) -> float:
    return float(np.clip(norm.sign * (value - norm.mean) / norm.sd, -MOST_Z, MOST_Z))
