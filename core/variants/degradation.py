"""Sound made worse in one stated way: noise, telephone band, speed, level.

Takes and gives mono samples at 16 kHz; nothing is read or written. Each change is
measured where it is made (the ratio to this clip's own power, the gain it really got),
and none of them clips: what would go beyond full scale is scaled to a peak of 1 as a
whole, noise and all, and `scaled_db` says by how much.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.audio import RATE_HZ, SHORTEST_S, Samples

TELEPHONE_HZ = (300.0, 3400.0)
"""Band of a wired telephone (ITU-T G.120); no codec and no companding are put on top."""

# Steep enough that 200 Hz and 3.5 kHz are 60 dB down, and shorter than the shortest clip.
_TAPS = 1025
_ATTENUATION_DB = 60.0

BOUNDS: dict[str, tuple[float, float]] = {
    "noise": (-20.0, 60.0),
    "speed": (0.5, 2.0),
    "level": (-40.0, 40.0),
}
"""What amounts make sense: dB, times as fast, dB."""

EXPECTED = (
    "noise:SNR in dB (-20 to 60), telephone, speed:FACTOR (0.5 to 2, not 1) or "
    "level:dB (-40 to 40, not 0), comma-joined"
)

_NOTHING = {"speed": 1.0, "level": 0.0}
_AMOUNT = re.compile(r"[+-]?\d{1,3}(?:\.\d{1,2})?", re.ASCII)


class UnchangedError(ValueError):
    """A sound that a change does not apply to; the message says why."""


@dataclass(frozen=True)
class Degradation:
    """One change: `kind` of noise, telephone, speed, level, and how much of it."""

    kind: str
    amount: float = 0.0

    @property
    def slug(self) -> str:
        """A name without the minus sign, which stands between the two of a pair: level_minus_12."""
        if self.kind == "telephone":
            return self.kind
        minus = "minus_" if self.amount < 0 else ""
        return f"{self.kind}_{minus}{abs(self.amount):g}"

    @property
    def meaning(self) -> str:
        """What is done, for a reader."""
        return {
            "noise": f"white noise, signal to noise {self.amount:g} dB",
            "telephone": f"band of {TELEPHONE_HZ[0]:g} to {TELEPHONE_HZ[1]:g} Hz",
            "speed": f"{self.amount:g} times as fast, pitch with it",
            "level": f"level {self.amount:+g} dB",
        }[self.kind]


@dataclass(frozen=True)
class Degraded:
    """`samples` within [-1, 1], and `scaled_db` <= 0, what full scale took from their level."""

    samples: Samples
    scaled_db: float


def degradation(said: str) -> Degradation | None:
    """What "noise:10", "telephone", "speed:0.9" or "level:+12" means; None for anything else."""
    kind, _, amount = said.strip().lower().partition(":")
    if kind == "telephone" and not amount:
        return Degradation(kind)
    if kind not in BOUNDS or not _AMOUNT.fullmatch(amount):
        return None
    low, high = BOUNDS[kind]
    value = float(amount)
    if not low <= value <= high or value == _NOTHING.get(kind):
        return None
    # 0 and -0 are one ratio and must be one name.
    return Degradation(kind, value + 0.0)


def degraded(
    samples: Samples, change: Degradation, drawing: Callable[[], np.random.Generator]
) -> Degraded:
    """The samples (n,) with the change made.

    Args:
        drawing: gives the generator of the clip's noise. It is asked for noise alone, and
            should be the same at every ratio: then two ratios differ in the ratio only.

    Raises:
        UnchangedError: silence has no ratio to noise; a clip got too short.
    """
    made = {
        "noise": lambda: with_noise(samples, change.amount, drawing()),
        "telephone": lambda: telephone(samples),
        "speed": lambda: sped(samples, change.amount),
        "level": lambda: samples.astype(np.float64) * 10 ** (change.amount / 20),
    }[change.kind]()
    peak = float(np.abs(made).max(initial=0.0))
    scaled_db = -20 * float(np.log10(peak)) if peak > 1 else 0.0
    if peak > 1:
        made = made / peak
    return Degraded(np.clip(made, -1, 1).astype(np.float32), scaled_db)


def with_noise(
    samples: Samples, snr_db: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """White Gaussian noise over the whole clip, at exactly this ratio of the two powers.

    Powers are means over the whole clip, pauses in both: the ratio during speech is higher,
    by as much as the clip is quiet in between. White noise reaches to 8 kHz, so within the
    band of speech it is milder than its ratio says.

    Raises:
        UnchangedError: the samples are digital silence.
    """
    sound = samples.astype(np.float64)
    power = float(np.square(sound).mean())
    if power == 0:
        raise UnchangedError("digital silence has no ratio to noise")
    noise = generator.standard_normal(len(sound))
    # Scaled by the power it has, not by the one to be expected, so that the ratio is exact.
    wanted = power / 10 ** (snr_db / 10)
    return np.asarray(sound + noise * np.sqrt(wanted / np.square(noise).mean()), np.float64)


def telephone(samples: Samples) -> NDArray[np.float64]:
    """The telephone's band alone: linear phase, no delay, as long as before."""
    from scipy.signal import firwin, kaiser_beta, oaconvolve

    window = ("kaiser", kaiser_beta(_ATTENUATION_DB))
    taps = firwin(_TAPS, TELEPHONE_HZ, pass_zero=False, window=window, fs=RATE_HZ)
    found: NDArray[np.float64] = oaconvolve(samples.astype(np.float64), taps, mode="same")
    return found


def sped(samples: Samples, factor: float) -> NDArray[np.float64]:
    """Played `factor` times as fast, as a tape would be: duration and pitch move together.

    Source: Ko et al. (2015), Audio augmentation for speech recognition.

    Raises:
        UnchangedError: less than 0.1 s would be left.
    """
    import soxr

    if len(samples) / factor < SHORTEST_S * RATE_HZ:
        raise UnchangedError(
            f"{len(samples) / RATE_HZ:.2f} s at {factor:g} times the speed are under {SHORTEST_S} s"
        )
    resampled = soxr.resample(samples.astype(np.float64), RATE_HZ * factor, RATE_HZ, quality="HQ")
    return np.asarray(resampled, np.float64)
