"""A written dialogue with its label: what study 2 speaks, shows and asks about."""

from __future__ import annotations

from dataclasses import dataclass

TECHNIQUES = (
    "Accusation",
    "Brandishing Anger",
    "Denial",
    "Evasion",
    "Feigning Innocence",
    "Intimidation",
    "Persuasion or Seduction",
    "Playing Servant Role",
    "Playing Victim Role",
    "Rationalization",
    "Shaming or Belittlement",
)
VULNERABILITIES = (
    "Dependency",
    "Low self-esteem",
    "Naivete",
    "Over-intellectualization",
    "Over-responsibility",
)


@dataclass(frozen=True)
class Dialogue:
    """One dialogue.

    Attributes:
        turns: (speaker, text) in order; text is "" for an empty turn, speaker is ""
            where the source names none.
        techniques, vulnerabilities: of `TECHNIQUES` and `VULNERABILITIES`; empty
            where the source gives none, and always where it is not manipulative.
    """

    dialogue_id: str
    manipulative: bool
    techniques: tuple[str, ...]
    turns: tuple[tuple[str, str], ...]
    vulnerabilities: tuple[str, ...] = ()

    @property
    def transcript(self) -> str:
        """One "speaker: text" line a turn."""
        return "\n".join(f"{speaker}: {text}" for speaker, text in self.turns)

    @property
    def label(self) -> str:
        """YES or NO, as the manipulation task names them."""
        return "YES" if self.manipulative else "NO"

    @property
    def speakers(self) -> tuple[str, ...]:
        """Named speakers in the order they first speak."""
        return tuple(dict.fromkeys(speaker for speaker, _ in self.turns if speaker))
