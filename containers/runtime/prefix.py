"""Read what prompts share once.

Prompts are compared by position keys, so a shared stretch is found on the
tokens of the full prompts: no cut ever changes a token, and equal placeholders
of different clips never pass for equal audio. Two kinds are shared: the system
text with the exemplars, kept from batch to batch, and the clip beyond them that
two conditions or two questions of one batch are about.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from containers.runtime.adapter import Clip, Prompt, Words
from containers.runtime.language_model import (
    Inputs,
    LanguageModel,
    Past,
    Rendered,
    Span,
    extend,
    extend_in_branches,
    joined,
    nothing_read,
)

Keys = NDArray[np.int64]

# A forward pass of its own is not worth fewer positions.
LEAST_SHARED = 8


@dataclass(frozen=True)
class Stem:
    """Prompts of a batch (by index) that are equal up to position `stop`."""

    rows: tuple[int, ...]
    stop: int


class PrefixStore:
    """Openings that were read (system text and exemplars), the last used ones."""

    def __init__(self, most: int = 4) -> None:
        self.most = most
        self._kept: OrderedDict[str, tuple[Keys, Past]] = OrderedDict()

    def get(self, name: str) -> tuple[Keys, Past] | None:
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def put(self, name: str, keys: Keys, past: Past) -> None:
        self._kept[name] = (keys, past)
        self._kept.move_to_end(name)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Give the memory back."""
        self._kept.clear()


def position_keys(ids: NDArray[np.int64], spans: Sequence[Span]) -> Keys:
    """(S,) keys of a prompt; see `Rendered.keys`."""
    keys = ids.copy()
    for span in spans:
        first = int.from_bytes(sha256(span.clip.name.encode()).digest()[:7], "big")
        # Negative, so that no audio row is ever a token's id.
        keys[span.start : span.stop] = -1 - first - np.arange(span.stop - span.start)
    return keys


def common_length(rows: Sequence[Keys]) -> int:
    """How many leading keys all rows have in common."""
    shortest = min(len(row) for row in rows)
    same = np.ones(shortest, dtype=bool)
    for row in rows[1:]:
        same &= row[:shortest] == rows[0][:shortest]
    return shortest if same.all() else int(np.argmin(same))


def prefix_name(prompt: Prompt) -> str:
    """Equal for prompts with the same system text and the same exemplars."""
    parts = [_part_name(part) for part in prompt.parts[: prompt.prefix_parts]]
    return sha256(repr((prompt.system, parts)).encode()).hexdigest()


def prefill(
    model: LanguageModel, batch: Sequence[Rendered], store: PrefixStore
) -> tuple[Tensor, Past]:
    """Read whole prompts, shared stretches once.

    Args:
        batch: prompts of one `prefix_name`.

    Returns:
        (B, V) float32 logits at the first answer position; the past of the B prompts.
    """
    prefix = _opening(model, batch, store)
    start = int(prefix.lengths[0])
    stems = _stems(batch, start)
    if len(stems) < len(batch):
        together = _in_branches if model.branches else _in_stages
        return together(model, batch, prefix, stems)
    stretches = [(row, start, len(rendered.ids)) for row, rendered in enumerate(batch)]
    hidden, past = _read(model, select(prefix, [0] * len(batch)), batch, stretches)
    return model.logits(hidden[:, -1]), past


def _in_branches(
    model: LanguageModel, batch: Sequence[Rendered], prefix: Past, stems: Sequence[Stem]
) -> tuple[Tensor, Past]:
    """One row a stem, in one pass: the stem, then what each of its prompts goes on with."""
    start = int(prefix.lengths[0])
    rows: list[Inputs] = []
    ways: list[list[int]] = []
    for stem in stems:
        alone = len(stem.rows) == 1
        stop = len(batch[stem.rows[0]].ids) if alone else stem.stop
        ends = [] if alone else [(row, stop, len(batch[row].ids)) for row in stem.rows]
        stretches = [(stem.rows[0], start, stop), *ends]
        rows.append(joined([model.inputs(batch[row], *place) for row, *place in stretches]))
        ways.append([last - first for _, first, last in ends])
        model.work.prompt_positions += sum(last - first for _, first, last in stretches)
    read = select(prefix, [0] * len(stems))
    hidden, past, places = extend_in_branches(model, read, rows, ways)
    # Of each prompt: its stem, its branch, and where its last state is.
    found = {
        row: (number, way + 1, places[number][way].stop - 1) if ways[number] else (number, 0, -1)
        for number, stem in enumerate(stems)
        for way, row in enumerate(stem.rows)
    }
    of_stem, branch, last = zip(*(found[row] for row in range(len(batch))), strict=True)
    lengths = torch.tensor([len(rendered.ids) for rendered in batch], device=model.device)
    own = _branches(past, of_stem, branch, lengths)
    return model.logits(hidden[list(of_stem), list(last)]), own


def _in_stages(
    model: LanguageModel, batch: Sequence[Rendered], prefix: Past, stems: Sequence[Stem]
) -> tuple[Tensor, Past]:
    """First the stems, then each prompt's end from a copy of its stem."""
    start = int(prefix.lengths[0])
    stretches = [(stem.rows[0], start, stem.stop) for stem in stems]
    _, past = _read(model, select(prefix, [0] * len(stems)), batch, stretches)
    of_row = {row: number for number, stem in enumerate(stems) for row in stem.rows}
    past = select(past, [of_row[row] for row in range(len(batch))])
    stretches = [
        (row, stems[of_row[row]].stop, len(rendered.ids)) for row, rendered in enumerate(batch)
    ]
    hidden, past = _read(model, past, batch, stretches)
    return model.logits(hidden[:, -1]), past


def select(past: Past, rows: Sequence[int]) -> Past:
    """A past of these rows, repeats allowed; reading on from it leaves the original as it is."""
    index = list(rows)

    def picked(states: Tensor) -> Tensor:
        # No copy where none is needed: what reads on makes its own.
        if len(set(index)) == 1:
            row = states[index[0] : index[0] + 1]
            return row.expand(len(index), *row.shape[1:])
        if index == list(range(len(states))):
            return states
        return states[index]

    return Past(
        _with_layers(past.cache, picked),
        past.valid[index],
        past.positions[index],
        past.lengths[index],
    )


def _branches(past: Past, rows: Sequence[int], branch: Sequence[int], lengths: Tensor) -> Past:
    """`select`, each row with one of its branches; the others are as good as padding."""
    own = select(past, rows)
    if past.branch is not None:
        of_slot = past.branch[list(rows)]
        number = torch.tensor(branch, device=of_slot.device)[:, None]
        own.valid = own.valid & ((of_slot == 0) | (of_slot == number))
    own.lengths = lengths
    return own


def _opening(model: LanguageModel, batch: Sequence[Rendered], store: PrefixStore) -> Past:
    """One row that has read what all prompts of this name begin with; maybe nothing."""
    prompt = batch[0].prompt
    name = prefix_name(prompt)
    nothing = nothing_read(1, model.device)
    keys = [rendered.keys[:-1] for rendered in batch]
    if (kept := store.get(name)) is not None:
        return _cropped(kept[1], common_length([kept[0], *keys]))
    # Where the exemplars end is found by comparison with a prompt that goes on otherwise.
    parts = prompt.parts[: prompt.prefix_parts] or (Words("."),)
    other = model.render(replace(prompt, parts=parts, prefix_parts=0))
    length = common_length([other.keys, *keys])
    if length < LEAST_SHARED:
        return nothing
    past = _read(model, nothing, batch, [(0, 0, length)])[1]
    store.put(name, batch[0].keys[:length], past)
    return past


def _stems(batch: Sequence[Rendered], start: int) -> list[Stem]:
    """Group prompts by the clip they go on with; alone, a prompt is its own stem."""
    groups: dict[str, list[int]] = {}
    for row, rendered in enumerate(batch):
        beyond = (span.clip.name for span in rendered.spans if span.stop > start)
        groups.setdefault(next(beyond, f"row {row}"), []).append(row)
    stems: list[Stem] = []
    for rows in groups.values():
        stop = common_length([batch[row].keys[:-1] for row in rows])
        if stop >= start + LEAST_SHARED:
            stems.append(Stem(tuple(rows), stop))
        else:
            stems.extend(Stem((row,), len(batch[row].ids) - 1) for row in rows)
    return stems


def _read(
    model: LanguageModel,
    past: Past,
    batch: Sequence[Rendered],
    stretches: Sequence[tuple[int, int, int]],
) -> tuple[Tensor, Past]:
    model.work.prompt_positions += sum(stop - start for _, start, stop in stretches)
    rows = [model.inputs(batch[row], start, stop) for row, start, stop in stretches]
    return extend(model, past, rows)


def _cropped(past: Past, length: int) -> Past:
    """The first `length` positions of an unpadded past."""
    cache = _with_layers(past.cache, lambda states: states[..., :length, :])
    return Past(
        cache,
        past.valid[:, :length],
        past.positions[:, :length],
        past.lengths.clamp(max=length),
    )


def _with_layers(cache: DynamicCache, change: Callable[[Tensor], Tensor]) -> DynamicCache:
    # A layer grows by replacing its tensors, so shallow copies keep the original as it was.
    changed = DynamicCache()
    if not hasattr(cache, "layers"):
        # Before transformers 4.54 the tensors of all layers are in two lists.
        changed.key_cache = [change(keys) for keys in cache.key_cache]
        changed.value_cache = [change(values) for values in cache.value_cache]
        changed._seen_tokens = changed.get_seq_length()
        return changed
    for layer in cache.layers:
        layer = copy.copy(layer)
        if layer.is_initialized:
            layer.keys, layer.values = change(layer.keys), change(layer.values)
        changed.layers.append(layer)
    return changed


def _part_name(part: Words | Clip) -> tuple[str, str]:
    return ("audio", part.name) if isinstance(part, Clip) else ("text", part.text)
