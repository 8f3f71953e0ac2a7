"""The prompts, as text files beside this module: `<task>/<name>.txt`.

A template is a file's text with blanks such as `{context}`. Filling one gives
the parts of a request, the filled-in text apart from the words around it, so
that nothing a speaker said is ever read as a blank. What was chosen where the
papers leave room is in NOTES.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from core.protocol import Part

FOLDER = Path(__file__).parent

# The paper calls the current turn's transcript {patient_text}; every other part of
# the house calls it the transcript.
SLOT_OF_BLANK = {"patient_text": "transcript"}

_BLANK = re.compile(r"\{([a-z_]+)\}")


class PromptError(ValueError):
    """A template that does not exist, or slots that do not fit its blanks."""


@dataclass(frozen=True)
class Template:
    """One prompt: `id` as in "distress/ao", `text` with its blanks, `sha256` of the text."""

    id: str
    text: str
    sha256: str

    @property
    def slots(self) -> tuple[str, ...]:
        """What its blanks want, in order."""
        return tuple(SLOT_OF_BLANK.get(blank, blank) for blank in _BLANK.findall(self.text))


@cache
def template(id: str) -> Template:
    """Read one template, once a process; the newline that ends the file is not part of it.

    Raises:
        PromptError: naming the templates there are.
    """
    if id not in template_ids():
        raise PromptError(f"prompt: expected one of {', '.join(template_ids())}, found {id!r}.")
    text = (FOLDER / f"{id}.txt").read_text(encoding="utf-8").removesuffix("\n")
    return Template(id=id, text=text, sha256=sha256(text.encode()).hexdigest())


def template_ids() -> tuple[str, ...]:
    """All templates, in alphabetical order."""
    return tuple(
        sorted(
            path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.txt")
        )
    )


def fill(template: Template, **slots: str) -> tuple[Part, ...]:
    """The template as request parts: its own words, and each slot's text as a part of its own.

    Joined, the parts are the prompt. Text put into a slot is taken as it is, braces
    and all.

    Raises:
        PromptError: for a slot the template has no blank for, or a blank without a slot.
    """
    if set(slots) != set(template.slots):
        raise PromptError(
            f"prompt {template.id}: expected the slots {sorted(set(template.slots))}, "
            f"found {sorted(slots)}."
        )
    parts: list[Part] = []
    for index, piece in enumerate(_pieces(template.text)):
        if index % 2:
            slot = SLOT_OF_BLANK.get(piece, piece)
            parts.append({"text": slots[slot], "slot": slot})
        elif piece:
            parts.append({"text": piece})
    return tuple(parts)


# A template is filled for every item.
@cache
def _pieces(text: str) -> list[str]:
    """The words and the names of the blanks, which re.split with one group alternates between."""
    return _BLANK.split(text)
