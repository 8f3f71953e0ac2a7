"""Entry point `cbt_check`: what cbt_words and cbt_turns made, against recordings that are known.

For recordings with a sidecar <session>.turns.json (render_sessions writes them) or with a
corpus's <session>.stm, and .rttm: diarization error, word errors, and word errors by
speaker (cpWER); with a sidecar also patient turns recovered and roles, held to limits.
The diarization error is given twice: counting every frame, overlaps too, and as NIST's
md-eval counts, without 0.25 s on each side of every boundary of the truth. The limit is
held to the first, the stricter. Exit code 1 where a limit is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import OptionError, existing_folder, read_options

if TYPE_CHECKING:
    import pandas as pd

    from core.speech.true_turns import Truth

OPTIONS = {
    "truth": ("outputs/demo-sessions", "folder with <session>.turns.json or <session>.stm"),
    "words": ("outputs/cbt-words", "folder of cbt_words"),
    "turns": ("outputs/cbt-turns", "folder of cbt_turns; none checks words alone"),
}
MOST_DER = 0.05
MOST_WER = 0.05
LEAST_RECOVERED = 0.95
NEAR_S = 0.3


@dataclass(frozen=True)
class Session:
    """How one recording came out; counts, so that several can be added up.

    `recovered` and `roles_right` are None where the truth knows no roles.
    """

    name: str
    der: float
    der_with_collar: float
    wrong_words: int
    wrong_by_speaker: int
    words: int
    recovered: float | None
    patient_turns: int
    roles_right: bool | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; 2 for a value that is wrong, 1 where a limit is missed."""
    try:
        said = read_options(OPTIONS, arguments, "cbt_check", __doc__)
        return _checked(said)
    except OptionError as error:
        print(f"cbt_check: {error}", file=sys.stderr)
        return 2


def _checked(said: dict[str, str]) -> int:
    from core.speech.true_turns import TruthError, read_truths

    truth, words = (existing_folder(name, said[name]) for name in ("truth", "words"))
    turns = None if said["turns"] == "none" else existing_folder("turns", said["turns"])
    try:
        truths = read_truths(truth)
    except TruthError as error:
        raise OptionError(str(error)) from error
    if not truths:
        raise OptionError(f"truth: {truth} has no <session>.turns.json and no <session>.stm.")
    return _told([session(one, words, turns) for one in truths])


def session(truth: Truth, words: Path, turns: Path | None) -> Session:
    """One recording against what is known of it.

    Raises:
        OptionError: its words or turns are not there.
    """
    from core.metrics.cpwer import cp_word_errors
    from core.metrics.diarization import NIST_COLLAR_S, diarization_error
    from core.speech.listening import word_errors
    from core.words import WORDS, Stretch, settle

    name = truth.session_id
    heard = settle(_table(words / f"{name}.parquet", WORDS)).words
    speech = _table(words / "speech" / f"{name}.csv", ("start_s", "end_s", "speaker"))
    stretches = [
        Stretch(float(row["start_s"]), float(row["end_s"]), str(row["speaker"]))
        for row in speech.to_dict("records")
    ]
    error = diarization_error(truth.stretches, stretches)
    near = diarization_error(truth.stretches, stretches, collar_s=NIST_COLLAR_S)
    wrong, total = word_errors(" ".join(turn.text for turn in truth.turns), " ".join(heard["word"]))
    real: dict[str, str] = {}
    for turn in truth.turns:
        real[turn.speaker] = f"{real.get(turn.speaker, '')} {turn.text}"
    found = {str(s): " ".join(of["word"]) for s, of in heard.groupby("speaker")}
    recovered, patient_turns, right = None, 0, None
    if truth.roles and turns is not None:
        made = _table(turns / "turns" / f"{name}.csv", ("start_s", "end_s", "speaker", "role"))
        recovered, patient_turns, right = _roles(truth, made, error.mapping)
    return Session(
        name=name,
        der=error.rate,
        der_with_collar=near.rate,
        wrong_words=wrong,
        wrong_by_speaker=cp_word_errors(real, found)[0],
        words=total,
        recovered=recovered,
        patient_turns=patient_turns,
        roles_right=right,
    )


def _roles(truth: Truth, made: pd.DataFrame, mapping: dict[str, str]) -> tuple[float, int, bool]:
    """Share of the patient's turns that came back, of how many, and whether roles are right."""
    from core.metrics.diarization import recovered
    from core.turns import PATIENT

    spans = [(turn.start_s, turn.end_s) for turn in truth.turns if turn.speaker == PATIENT]
    found = made[made["role"] == PATIENT]
    ends = list(zip(found["start_s"], found["end_s"], strict=True))
    roles = dict(zip(made["speaker"], made["role"], strict=True))
    right = all(roles.get(ours) == real for ours, real in mapping.items())
    return recovered(spans, ends, NEAR_S), len(spans), right


def _table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    from experiments.spoken_files import read_table

    if not path.is_file():
        raise OptionError(f"{path} is missing; run cbt_words, then cbt_turns.")
    table = read_table(path)
    if absent := [name for name in columns if name not in table.columns]:
        raise OptionError(f"{path}: expected the columns {', '.join(absent)}; run cbt_turns again.")
    return table


def _told(sessions: Sequence[Session]) -> int:
    for one in sessions:
        line = (
            f"{one.name}: diarization error {one.der:.3f} (with NIST's collar "
            f"{one.der_with_collar:.3f}), words wrong {one.wrong_words} of {one.words}, by speaker "
            f"{one.wrong_by_speaker}"
        )
        if one.recovered is not None:
            line += (
                f", patient turns within {NEAR_S:g} s {one.recovered:.0%} of {one.patient_turns}, "
                f"roles {'right' if one.roles_right else 'wrong'}"
            )
        print(line)
    held = [one for one in sessions if one.recovered is not None]
    if not held:
        return 0
    worst = max(one.der for one in held)
    wer = sum(one.wrong_words for one in held) / max(sum(one.words for one in held), 1)
    count = max(sum(one.patient_turns for one in held), 1)
    share = sum((one.recovered or 0.0) * one.patient_turns for one in held) / count
    right = sum(bool(one.roles_right) for one in held)
    print(
        f"all {len(held)}: worst diarization error {worst:.3f} (limit {MOST_DER:g}), word "
        f"error rate {wer:.1%} ({MOST_WER:.0%}), patient turns {share:.0%} "
        f"({LEAST_RECOVERED:.0%}), roles right in {right}"
    )
    fine = worst < MOST_DER and wer < MOST_WER and share >= LEAST_RECOVERED
    return 0 if fine and right == len(held) else 1


if __name__ == "__main__":
    sys.exit(main())
