"""Entry point `cbt_check`: what cbt_words and cbt_turns made, against recordings that are known.

For recordings with a sidecar <session>.turns.json of true times, speakers and words
(render_sessions writes them): diarization error, word errors, patient turns recovered,
roles. Exit code 1 where a limit is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.options import OptionError, existing_folder, read_options

OPTIONS = {
    "truth": ("outputs/demo-sessions", "folder with <session>.turns.json"),
    "words": ("outputs/cbt-words", "folder of cbt_words"),
    "turns": ("outputs/cbt-turns", "folder of cbt_turns"),
}
MOST_DER = 0.05
MOST_WER = 0.05
LEAST_RECOVERED = 0.95
NEAR_S = 0.3


@dataclass(frozen=True)
class Session:
    """How one recording came out; counts, so that several can be added up."""

    name: str
    der: float
    wrong_words: int
    words: int
    recovered: float
    patient_turns: int
    roles_right: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; 2 for a value that is wrong, 1 where a limit is missed."""
    try:
        said = read_options(OPTIONS, arguments, "cbt_check", __doc__)
        truth, words, turns = (existing_folder(name, said[name]) for name in OPTIONS)
        sidecars = sorted(truth.glob("*.turns.json"))
        if not sidecars:
            raise OptionError(f"truth: {truth} has no <session>.turns.json.")
        sessions = [session(path, words, turns) for path in sidecars]
    except OptionError as error:
        print(f"cbt_check: {error}", file=sys.stderr)
        return 2
    return _told(sessions)


def session(sidecar: Path, words: Path, turns: Path) -> Session:
    """One recording against its sidecar.

    Raises:
        OptionError: its words or turns are not there.
    """
    import json

    import pandas as pd

    from core.metrics.diarization import diarization_error, recovered
    from core.speech.listening import word_errors
    from core.turns import PATIENT
    from core.words import Stretch

    name = sidecar.name.removesuffix(".turns.json")
    files = [
        words / f"{name}.parquet",
        words / "speech" / f"{name}.csv",
        turns / "turns" / f"{name}.csv",
    ]
    if missing := [path for path in files if not path.is_file()]:
        raise OptionError(f"{name}: {missing[0]} is missing; run cbt_words, then cbt_turns.")
    true = json.loads(sidecar.read_text(encoding="utf-8"))["turns"]
    heard, speech, made = pd.read_parquet(files[0]), pd.read_csv(files[1]), pd.read_csv(files[2])
    error = diarization_error(
        [Stretch(turn["start_s"], turn["end_s"], turn["speaker"]) for turn in true],
        [
            Stretch(float(row["start_s"]), float(row["end_s"]), str(row["speaker"]))
            for row in speech.to_dict("records")
        ],
    )
    wrong, total = word_errors(" ".join(turn["text"] for turn in true), " ".join(heard["word"]))
    spans = [(turn["start_s"], turn["end_s"]) for turn in true if turn["speaker"] == PATIENT]
    found = made[made["role"] == PATIENT]
    roles = dict(zip(made["speaker"], made["role"], strict=True))
    return Session(
        name=name,
        der=error.rate,
        wrong_words=wrong,
        words=total,
        recovered=recovered(
            spans, list(zip(found["start_s"], found["end_s"], strict=True)), NEAR_S
        ),
        patient_turns=len(spans),
        roles_right=all(roles.get(ours) == real for ours, real in error.mapping.items()),
    )


def _told(sessions: Sequence[Session]) -> int:
    for one in sessions:
        print(
            f"{one.name}: diarization error {one.der:.3f}, words wrong {one.wrong_words} of "
            f"{one.words}, patient turns within {NEAR_S:g} s {one.recovered:.0%} of "
            f"{one.patient_turns}, roles {'right' if one.roles_right else 'wrong'}"
        )
    worst = max(one.der for one in sessions)
    wer = sum(one.wrong_words for one in sessions) / max(sum(one.words for one in sessions), 1)
    count = sum(one.patient_turns for one in sessions)
    share = sum(one.recovered * one.patient_turns for one in sessions if one.patient_turns) / count
    right = sum(one.roles_right for one in sessions)
    print(
        f"all {len(sessions)}: worst diarization error {worst:.3f} (limit {MOST_DER:g}), word "
        f"error rate {wer:.1%} ({MOST_WER:.0%}), patient turns {share:.0%} "
        f"({LEAST_RECOVERED:.0%}), roles right in {right}"
    )
    held = worst < MOST_DER and wer < MOST_WER and share >= LEAST_RECOVERED
    return 0 if held and right == len(sessions) else 1


if __name__ == "__main__":
    sys.exit(main())
