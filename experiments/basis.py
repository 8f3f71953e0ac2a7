"""What a run's figures rest on, at one moment: equal digests, nothing of it has changed.

The words of the command, our code and every installed package, the model and its image, and
the dataset. Code, manifest and dataset.json count by content. Clips count by size, place on the
disk and times, as version control knows files, since to read them all takes longer than the rest
of showing a run again: of these a change changes one, but for a program that holds a clip in its
mapped memory and writes there once more.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from containers.runtime.card import read_card
from core.file_hash import sha256_of
from core.protocol import digest
from experiments.code_version import code_digest, everything_below
from experiments.evaluation import precision_of, site_of
from experiments.runners import runner
from experiments.settings import Settings

_SAID_IN_WORDS = {"manifest.csv", "manifest.jsonl", "manifest.parquet", "dataset.json"}
# A file may be written twice within a step of its file system's clock, and bear the same time.
# Most count in milliseconds; those whose times are whole seconds in up to two.
_CLOCK_STEP_S, _COARSE_CLOCK_STEP_S = 0.05, 2.0


@dataclass(frozen=True)
class Basis:
    """What a command's figures rest on.

    Attributes:
        command: digest of words, code, packages and model.
        data: digest of the dataset's folder.
        settled: no file of it is so young that it could be written again and look the same.
    """

    command: str
    data: str
    settled: bool


def basis_of(settings: Settings) -> Basis | None:
    """What an evaluation rests on now; None where a file of it cannot be read.

    Raises:
        SettingsError, RunnerError, CardError: no model can be asked so.
    """
    card, site = read_card(settings.card_path), site_of(settings)
    name, module = runner(settings.runner, card, site)
    model = [card.digest, precision_of(settings.precision, card), name, module.image(card, site)]
    command = {
        "asked": {name: str(value) for name, value in asdict(settings).items()},
        "environment": {k: v for k, v in os.environ.items() if k.startswith("UNDERTONE_")},
        "packages": [sys.version, *_packages()],
        "model": model,
    }
    try:
        return Basis(digest({**command, "code": code_digest()}), *_folder(settings.data))
    except OSError:
        return None


def _packages() -> list[str]:
    """Name and version of every installed package, as their folders are called."""
    return sorted({path.name for place in sys.path for path in Path(place).glob("*.dist-info")})


def _folder(folder: Path) -> tuple[str, bool]:
    """Digest of a folder's files, and whether they are settled."""
    lines, settled, now = [], True, time.time()
    for entry in everything_below(str(folder)):
        try:
            found = entry.stat()
        except FileNotFoundError:
            # A link to nothing.
            found = entry.stat(follow_symlinks=False)
        settled &= all(
            now - ns / 1e9 > (_CLOCK_STEP_S if ns % 1_000_000_000 else _COARSE_CLOCK_STEP_S)
            for ns in (found.st_mtime_ns, found.st_ctime_ns)
        )
        facts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        in_words = entry.name in _SAID_IN_WORDS and entry.is_file()
        read = sha256_of(Path(entry.path)) if in_words else ""
        lines.append(f"{entry.path}\0{facts}\0{read}")
    told = "\n".join(sorted(lines)).encode(errors="surrogateescape")
    return sha256(told).hexdigest(), settled
