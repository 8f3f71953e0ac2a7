"""A batch of prompts to answers: render, prefill, score the choices, write the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from containers.runtime.adapter import Answer, Logits, OutOfMemoryError, Prompt
from containers.runtime.decoding import (
    Continuation,
    Sampling,
    choice_mass,
    generate,
    label_forms,
    label_scores,
)
from containers.runtime.language_model import LanguageModel, Rendered
from containers.runtime.prefix import PrefixStore, prefill, prefix_name


def next_token_logits(model: LanguageModel, batch: Sequence[Prompt], store: PrefixStore) -> Logits:
    """(B, V) raw float32 logits at the first answer position; see `Adapter`."""
    rows: dict[int, Logits] = {}
    with memory_guarded():
        for places, rendered in _together(model, batch):
            logits, _ = prefill(model, rendered, store)
            for place, row in zip(places, logits.float().cpu().numpy(), strict=True):
                rows[place] = row
    return np.stack([rows[place] for place in range(len(batch))])


def answer(model: LanguageModel, batch: Sequence[Prompt], store: PrefixStore) -> list[Answer]:
    """One answer a prompt, in order; see `Adapter`."""
    answers: dict[int, Answer] = {}
    with memory_guarded():
        for places, rendered in _together(model, batch):
            for place, one in zip(places, _answers(model, rendered, store), strict=True):
                answers[place] = one
    return [answers[place] for place in range(len(batch))]


def _answers(model: LanguageModel, batch: Sequence[Rendered], store: PrefixStore) -> list[Answer]:
    forms = [
        label_forms(model, rendered.prompt.choices) if rendered.prompt.choices else None
        for rendered in batch
    ]
    logits, past = prefill(model, batch, store)
    scores = label_scores(model, logits, past, forms)
    samplings = [
        Sampling(p.max_new_tokens, p.temperature, p.top_p, p.seed)
        for p in (rendered.prompt for rendered in batch)
    ]
    texts = generate(model, logits, past, samplings)
    return [
        _answered(model, rendered, own, text)
        for rendered, own, text in zip(batch, scores, texts, strict=True)
    ]


def _answered(
    model: LanguageModel, rendered: Rendered, scores: dict[str, float] | None, text: Continuation
) -> Answer:
    # With choices the answer is the distribution; a text cut at its limit is no loss.
    cut = "length" if scores is None else "choice"
    return Answer(
        text=model.text(text.ids),
        finish_reason="stop" if text.ended else cut,
        prompt_tokens=len(rendered.ids),
        audio_seconds_used=rendered.seconds_used,
        choice_logprobs=scores,
        choice_mass=None if scores is None else choice_mass(scores),
        fallbacks=rendered.fallbacks,
    )


def _together(
    model: LanguageModel, batch: Sequence[Prompt]
) -> list[tuple[list[int], list[Rendered]]]:
    """Places and rendered prompts of the batch, by what they begin with."""
    groups: dict[str, tuple[list[int], list[Rendered]]] = {}
    for place, prompt in enumerate(batch):
        rendered = model.render(prompt)
        places, members = groups.setdefault(prefix_name(rendered.prompt), ([], []))
        places.append(place)
        members.append(rendered)
    return list(groups.values())


@contextmanager
def memory_guarded() -> Iterator[None]:
    """Inference mode; torch's errors for want of memory as OutOfMemoryError."""
    try:
        with torch.inference_mode():
            yield
    # The name that torch 2.3 has too.
    except (torch.cuda.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(str(error)) from error
    except RuntimeError as error:
        # The CPU allocator has no exception of its own.
        if "not enough memory" in str(error) or "can't allocate memory" in str(error):
            raise OutOfMemoryError(str(error)) from error
        raise
