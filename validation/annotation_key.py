"""The private key of an annotation round: which code an annotator was shown is which item.

Written beside, never among, what annotators get. Takes a design and the items, and
gives codes that say nothing about them; reading a key checks it as if it were new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.replacing import replace_text
from validation.annotation_design import (
    MODALITIES,
    Design,
    DesignError,
    Modality,
    Share,
    design_faults,
    shares_of,
)

SCHEMA = 1
CODE_DIGITS = 10


class KeyFileError(ValueError):
    """A key that cannot be read; names the file and what to do."""


@dataclass(frozen=True)
class Shown:
    """One item as an annotator sees it.

    Attributes:
        code: what stands in place of its id; another one in each modality.
        content: in audio the clip's file name, in text the `fingerprint` of the words.
    """

    code: str
    item_id: str
    modality: Modality
    content: str


@dataclass(frozen=True)
class Key:
    """All that is needed to understand the answers.

    Attributes:
        dataset, dataset_hash: where the items are from.
        design: who was asked what.
        shown: every item in both modalities.
        reference: item -> label of the dataset, to compare with; never shown.
    """

    dataset: str
    dataset_hash: str
    design: Design
    shown: tuple[Shown, ...]
    reference: Mapping[str, str]

    def by_code(self) -> dict[str, Shown]:
        """Code -> what it stands for."""
        return {each.code: each for each in self.shown}

    def by_item(self, modality: Modality) -> dict[str, Shown]:
        """Item id -> how it was shown."""
        return {each.item_id: each for each in self.shown if each.modality == modality}

    def asked(self, annotator: str, modality: Modality) -> tuple[Shown, ...]:
        """What an annotator was asked to rate, in the order shown."""
        of_item = self.by_item(modality)
        shares = (each for each in shares_of(self.design, modality) if each.annotator == annotator)
        return tuple(of_item[item] for share in shares for item in share.items)


def code(seed: int, dataset_hash: str, modality: Modality, item_id: str) -> str:
    """A name for an item that says nothing about it.

    A letter first: a spreadsheet would make a number of 12345e6789.
    """
    text = "\x1f".join((str(seed), dataset_hash, modality, item_id))
    return modality[0].upper() + sha256(text.encode()).hexdigest()[:CODE_DIGITS]


def fingerprint(text: str) -> str:
    """Equal for texts that differ in blanks alone: spreadsheets rewrite line ends."""
    return sha256("".join(text.split()).encode("utf-8", "replace")).hexdigest()[:32]


def key_of(
    design: Design,
    *,
    dataset: str,
    dataset_hash: str,
    texts: Mapping[str, str],
    clips: Mapping[str, str],
    reference: Mapping[str, str],
) -> Key:
    """The key of a design.

    Args:
        texts: item -> words as they will be shown.
        clips: item -> file name of its clip as it will be shown.
        reference: item -> label.

    Raises:
        DesignError: two items would get one code.
    """
    content: dict[Modality, dict[str, str]] = {
        "text": {item: fingerprint(text) for item, text in texts.items()},
        "audio": dict(clips),
    }
    shown = tuple(
        Shown(code(design.seed, dataset_hash, mode, item), item, mode, content[mode][item])
        for mode in MODALITIES
        for item in design.items
    )
    if len({each.code for each in shown}) < len(shown):
        raise DesignError("seed: two items would get the same code; use another seed.")
    return Key(dataset, dataset_hash, design, shown, dict(reference))


def write_key(key: Key, path: Path) -> None:
    """As JSON that `read_key` reads back equal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = {
        "schema": SCHEMA,
        "private": "This file tells which code is which item. Keep it from annotators.",
        **asdict(key),
        "sha256": _digest(key),
    }
    replace_text(path, json.dumps(written, indent=1, ensure_ascii=False) + "\n")


def _digest(key: Key) -> str:
    """Of all that a key says: an edited one would make rows of others foreign, or lose some."""
    return sha256(json.dumps(asdict(key), sort_keys=True).encode()).hexdigest()


def read_key(path: Path) -> Key:
    """A key as `write_key` left it.

    Raises:
        KeyFileError: not JSON, not a key, or a design that contradicts itself.
    """
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        key = _key(said)
        stated = said["sha256"]
    except (OSError, ValueError, RecursionError) as error:
        raise KeyFileError(f"{path.name}: not readable as JSON ({error}).") from error
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise KeyFileError(
            f"{path.name}: not the design.json of annotate_export (lacks {error}). Use the one "
            "that was written with the workbooks."
        ) from error
    faults = [*_gaps(key), *design_faults(key.design)]
    if not faults and stated != _digest(key):
        faults = ["it was changed after it was written."]
    if faults:
        raise KeyFileError(f"{path.name}: {faults[0]} Use it as it was written.")
    return key


def _key(said: Any) -> Key:
    if said["schema"] != SCHEMA:
        raise TypeError(f"schema {SCHEMA}")
    design = said["design"]
    return Key(
        dataset=str(said["dataset"]),
        dataset_hash=str(said["dataset_hash"]),
        design=Design(
            items=_names(design["items"]),
            annotators=_names(design["annotators"]),
            batches=tuple(_names(batch) for batch in design["batches"]),
            shares=tuple(_share(each) for each in design["shares"]),
            overlap=float(design["overlap"]),
            seed=int(design["seed"]),
            both_modalities=bool(design["both_modalities"]),
        ),
        shown=tuple(
            Shown(str(each["code"]), str(each["item_id"]), _mode(each), str(each["content"]))
            for each in said["shown"]
        ),
        reference={str(item): str(label) for item, label in said["reference"].items()},
    )


def _share(said: Any) -> Share:
    return Share(str(said["annotator"]), _mode(said), int(said["batch"]), _names(said["items"]))


def _names(said: Any) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(name, str) for name in said):
        raise TypeError(f"a list of names in {said!r:.40}")
    return tuple(said)


def _mode(said: Any) -> Modality:
    if said["modality"] not in MODALITIES:
        raise TypeError(f"a modality in {said['modality']!r}")
    return "text" if said["modality"] == "text" else "audio"


def _gaps(key: Key) -> Iterator[str]:
    wanted: Sequence[str] = key.design.items
    for mode in MODALITIES:
        if missing := set(wanted) - set(key.by_item(mode)):
            yield f"{min(missing)} has no code as {mode}."
    if len(key.by_code()) < len(key.shown):
        yield "a code stands for two items."
