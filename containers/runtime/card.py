"""A model's card: `containers/<name>/model.toml` as plain data.

The card says what a model is (repositories, revisions, licence), what it can
take (capabilities) and how much of it at once (budget). The host reads it to
plan a run before anything is loaded, the runtime to carry it out.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from core.protocol import digest


class CardError(ValueError):
    """A card that lacks a field, has an unknown one, or a value of the wrong kind."""


@dataclass(frozen=True)
class Repo:
    """One repository of weights at one full revision; `folder` is where it goes under the
    model's weights folder."""

    id: str
    revision: str
    folder: str = "."
    gated: bool = False
    licence: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capabilities:
    """What a prompt may hold.

    Attributes:
        audio: takes audio at all.
        system_prompt: has a system role.
        system_prompt_with_audio: still has it when the prompt holds audio.
        clips_per_prompt: most audio clips in one prompt.
        longest_clip_s: seconds after which a clip is cut; None for no limit.
        batch: prompts may share a forward pass.
        writes: text of its own; one that does not weighs the answers it is given.
        precisions: what `-P precision=` may say; the first is the default.
    """

    audio: bool = True
    system_prompt: bool = True
    system_prompt_with_audio: bool = True
    clips_per_prompt: int = 1
    longest_clip_s: float | None = None
    batch: bool = True
    writes: bool = True
    precisions: tuple[str, ...] = ("bf16",)


@dataclass(frozen=True)
class Budget:
    """How much goes into one batch, and how long one may take."""

    items: int = 8
    audio_s: float = 240.0
    tokens: int = 16_000
    timeout_s: float = 300.0


@dataclass(frozen=True)
class Card:
    """All of `model.toml`.

    Attributes:
        version: of the adapter's own doing; raised by whoever changes its answers (a
            constant, a template), so that answers of the former are not used again.
        packages: modules that must be importable for the process runner.
        verified: "none", "layout", "tiny" or "weights", and `verified_on` the date.
        gpu_memory_gb: by precision.
        vllm: extra arguments of `vllm serve`, or None where vLLM does not serve it faithfully.
        digest: of the whole file's meaning; in every response.
    """

    name: str
    title: str
    family: str
    licence: str
    parameters: float
    bytes: float
    verified: str
    verified_on: str = ""
    version: int = 1
    python: str = "3.11"
    packages: tuple[str, ...] = ()
    gpu_memory_gb: dict[str, float] = field(default_factory=dict)
    repos: tuple[Repo, ...] = ()
    capabilities: Capabilities = Capabilities()
    budget: Budget = Budget()
    vllm: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Changes with anything that could change an answer; verification and notes cannot."""
        decides = asdict(self)
        for remark in ("verified", "verified_on", "notes", "vllm", "budget"):
            decides.pop(remark)
        return digest(decides)


def read_card(path: Path) -> Card:
    """Read a `model.toml`.

    Raises:
        CardError: naming the file and the field.
    """
    try:
        table = _toml(path)
    except FileNotFoundError as error:
        raise CardError(f"{path}: no such card.") from error
    except (ValueError, RecursionError) as error:
        raise CardError(f"{path}: not readable as TOML ({error}).") from error
    repos = table.get("repos", [])
    if not isinstance(repos, list):
        raise CardError(f"{path}, repos: expected a list of tables, found {repos!r:.40}.")
    table["repos"] = tuple(_build(Repo, repo, path, "repos") for repo in repos)
    table["capabilities"] = _build(
        Capabilities, table.get("capabilities", {}), path, "capabilities"
    )
    table["budget"] = _build(Budget, table.get("budget", {}), path, "budget")
    card: Card = _build(Card, table, path, "top level")
    return card


def _build(kind: Any, table: Any, path: Path, where: str) -> Any:
    if not isinstance(table, dict):
        raise CardError(f"{path}, {where}: expected a table, found {table!r:.40}.")
    known = {entry.name for entry in fields(kind)}
    if unknown := sorted(set(table) - known):
        raise CardError(f"{path}, {where}: unknown {', '.join(unknown)}; known: {sorted(known)}.")
    frozen = {key: tuple(v) if isinstance(v, list) else v for key, v in table.items()}
    try:
        return kind(**frozen)
    except TypeError as error:
        raise CardError(f"{path}, {where}: {error}.") from error


def _toml(path: Path) -> dict[str, Any]:
    # tomllib came with Python 3.11; the 3.10 images install tomli, the same parser.
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    with path.open("rb") as stream:
        table: dict[str, Any] = toml.load(stream)
    return table
