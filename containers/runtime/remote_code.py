"""Models whose class comes with their weights: `trust_remote_code`, inside an image of their own.

The vendor's class is loaded from the pinned local folder. Its own processor and
encoder turn a clip into embeddings, one clip at a time; its decoder, a stock
causal language model, is driven by the shared decoding. That the two halves are
put together as the vendor does is not taken on trust: the first prompt with one
clip is also asked the vendor's way, processor and plain forward pass, and
nothing is answered unless the tokens are equal and the logits agree.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from containers.runtime import inference
from containers.runtime.adapter import Answer, LoadError, Logits, Prompt, PromptError, Work
from containers.runtime.card import Card
from containers.runtime.language_model import Inputs, Rendered, Span
from containers.runtime.loading import (
    check_complete,
    check_folder,
    how_to_get_packages,
    how_to_get_weights,
)
from containers.runtime.prefix import PrefixStore, position_keys
from containers.runtime.transformers_adapter import REMEMBERED_S, ClipMemory, TransformersAdapter

# Of the spread of the logits. Two orders of summation in bf16 stay below 0.1 of
# it; a clip in a wrong place or a wrong template moves them by about 1.
MOST_APART = 0.3

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


class DisagreementError(RuntimeError):
    """The adapter and the vendor's own forward pass give different tokens or logits."""


class RemoteCodeAdapter(TransformersAdapter):
    """A vendor's model as `Adapter` and as `LanguageModel`.

    A subclass encodes a clip (`encode`), lays a prompt out (`layout`) and asks it
    the vendor's way (`vendor_pass`).
    """

    model_class: ClassVar[str] = ""
    # The vendors' decoders make their masks themselves.
    branches = False

    def __init__(
        self,
        card: Card,
        processor: Any,
        model: Any,
        *,
        decoder: Any,
        head: Any,
        eos_ids: frozenset[int],
    ) -> None:
        self.card = card
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.model = model
        self.decoder = decoder
        self.head = head
        self.config = decoder.config
        self.device = decoder.get_input_embeddings().weight.device
        self.work = Work()
        self.eos_ids = eos_ids
        self.store = PrefixStore()
        self._clips = ClipMemory(REMEMBERED_S)
        self._agreed = False

    def layout(self, prompt: Prompt, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        """Token ids of the whole prompt, and where each clip's `rows[i]` positions begin."""
        raise NotImplementedError

    def vendor_pass(self, prompt: Prompt) -> tuple[list[int], Tensor]:
        """Token ids and (V,) logits of the last position, by the vendor's processor and forward."""
        raise NotImplementedError

    # Adapter

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        self.check_agreement(batch)
        return inference.next_token_logits(self, batch, self.store)

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        self.check_agreement(batch)
        return inference.answer(self, batch, self.store)

    def check_agreement(self, batch: Sequence[Prompt]) -> None:
        """Once, on the first prompt with one clip.

        Several clips are left out: vendors pad them to the longest of a call, and
        then a clip's embeddings depend on its neighbours.

        Raises:
            DisagreementError: saying what differs.
        """
        asked = next((prompt for prompt in batch if len(prompt.clips) == 1), None)
        if self._agreed or asked is None:
            return
        rendered = self.render(asked)
        with torch.inference_mode():
            ids, logits = self.vendor_pass(rendered.prompt)
        if ids != rendered.ids.tolist():
            pairs = enumerate(zip_longest(ids, rendered.ids.tolist()))
            place = next(number for number, (theirs, ours) in pairs if theirs != ours)
            raise DisagreementError(
                f"{self.card.name}: the vendor's processor gives other tokens than the adapter "
                f"from position {place} on ({len(ids)} and {len(rendered.ids)} in all). "
                "Check that the weights are the card's revision."
            )
        expected = logits.float().cpu().numpy()
        found = inference.next_token_logits(self, [asked], PrefixStore())[0]
        apart = float(np.abs(found - expected).max() / (expected.std() or 1.0))
        if not apart < MOST_APART:
            raise DisagreementError(
                f"{self.card.name}: the vendor's own forward pass gives other logits than the "
                f"adapter (expected a difference below {MOST_APART} of their spread, found "
                f"{apart:.2g}). Check that the packages are those of the lock."
            )
        self._agreed = True

    # LanguageModel

    def render(self, prompt: Prompt) -> Rendered:
        prompt, fallbacks = self._suited(prompt)
        rows = [len(self._encoded(clip)) for clip in prompt.clips]
        ids, starts = self.layout(prompt, rows)
        spans = tuple(
            Span(start, start + count, clip)
            for start, count, clip in zip(starts, rows, prompt.clips, strict=True)
        )
        limit = getattr(self.config, "max_position_embeddings", None)
        if limit and len(ids) + prompt.max_new_tokens > limit:
            raise PromptError(
                f"{self.card.name} reads {limit} positions; this prompt takes {len(ids)} and "
                f"{prompt.max_new_tokens} for its answer. Give fewer exemplars or shorter clips."
            )
        whole = np.asarray(ids, dtype=np.int64)
        used = sum(self._clips.seconds_used[clip.name] for clip in prompt.clips)
        return Rendered(prompt, whole, spans, position_keys(whole, spans), used, fallbacks)

    def token_inputs(self, ids: Tensor) -> Inputs:
        return {"inputs_embeds": self.decoder.get_input_embeddings()(ids)}

    def logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.head(hidden).float()
        return logits


def load_remote(
    card: Card,
    folder: Path,
    auto_class: str,
    *,
    transformers_version: str,
    precision: str,
    device_map: str,
    left_out: tuple[str, ...] = (),
    **options: Any,
) -> Any:
    """The vendor's model of a local snapshot, on one device, ready to be asked.

    Args:
        auto_class: name of the Auto class that the vendor's example uses.
        transformers_version: beginning of the versions that the vendor's code runs on.
        left_out: beginnings of tensor names that are not read on purpose.
        options: of the vendor's own, passed to `from_pretrained`.

    Raises:
        LoadError: naming the missing file, package, version or tensor, and how to get it.
    """
    import_offline()
    import transformers

    if not transformers.__version__.startswith(transformers_version):
        raise LoadError(
            f"{card.name}: the vendor's code runs on transformers {transformers_version}, found "
            f"{transformers.__version__}. {how_to_get_packages(card)}"
        )
    check_folder(card, folder)
    device, dtype = one_device(device_map), _dtype(card, precision)
    try:
        model, report = getattr(transformers, auto_class).from_pretrained(
            folder,
            trust_remote_code=True,
            local_files_only=True,
            torch_dtype=dtype,
            output_loading_info=True,
            **options,
        )
        check_complete(card, folder, report, left_out=left_out)
        return model.eval().to(device)
    except ImportError as error:
        raise LoadError(f"{card.name}: {error}\n{how_to_get_packages(card)}") from error
    except (OSError, ValueError, KeyError) as error:
        raise LoadError(
            f"{card.name}: {folder} does not load: {error}\n{how_to_get_weights(card)}"
        ) from error


def load_processor(card: Card, folder: Path) -> Any:
    """The vendor's processor of a local snapshot. Raises LoadError, as `load_remote`."""
    import_offline()
    import transformers

    try:
        return transformers.AutoProcessor.from_pretrained(
            folder, trust_remote_code=True, local_files_only=True
        )
    except ImportError as error:
        raise LoadError(f"{card.name}: {error}\n{how_to_get_packages(card)}") from error
    except (OSError, ValueError, KeyError) as error:
        raise LoadError(
            f"{card.name}: the processor in {folder} does not load: {error}\n"
            f"{how_to_get_weights(card)}"
        ) from error


def import_offline() -> None:
    """Before transformers is imported: nothing may reach for the hub."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")


def one_device(device_map: str) -> torch.device:
    """The device for the whole model: vendors' code does not run spread over several.

    `auto` is the first GPU, or else the CPU. Raises LoadError: no GPU.
    """
    if device_map.startswith("cuda") and not torch.cuda.is_available():
        raise LoadError(f"device_map {device_map!r}: torch {torch.__version__} finds no GPU.")
    if device_map == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    return torch.device(device_map)


def end_ids(*found: Any) -> frozenset[int]:
    """All ids of single ids, lists of ids and None: releases keep them in several places."""
    ids: set[int] = set()
    for some in found:
        ids.update(some if isinstance(some, (list, tuple)) else [] if some is None else [some])
    return frozenset(ids)


def words(prompt: Prompt, placeholders: Sequence[str]) -> list[str]:
    """The user turn's pieces in order: neighbouring texts as one, a clip as its placeholder."""
    pieces: list[str] = []
    clips = iter(placeholders)
    open_text = False
    for part in prompt.parts:
        text = getattr(part, "text", None)
        if text is None:
            pieces.append(next(clips))
        elif open_text:
            pieces[-1] += text
        else:
            pieces.append(text)
        open_text = text is not None
    return pieces


def _dtype(card: Card, precision: str) -> torch.dtype:
    if precision not in DTYPES:
        raise LoadError(
            f"{card.name}: precision {precision!r}; the vendor's class takes {', '.join(DTYPES)}."
        )
    return DTYPES[precision]
