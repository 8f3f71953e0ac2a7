"""From the first answer position on: label scores and generated text.

Both start from the same prefilled prompt. Label scores are exact, whole labels
at a time; text is greedy or drawn with the request's own generator, so equal
requests give equal text whatever else is in the batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from containers.runtime.adapter import PromptError
from containers.runtime.language_model import LanguageModel, Past, extend, extend_in_branches
from containers.runtime.prefix import select

Form = tuple[int, ...]
"""Token ids of one way to write a label."""
Forms = Mapping[str, Sequence[Form]]
"""Label -> its forms."""


@dataclass(frozen=True)
class Sampling:
    """How to continue one prompt; fields as in `core.protocol.Request`."""

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Continuation:
    """Generated tokens, without the end token; `ended` False where the limit cut them off."""

    ids: tuple[int, ...]
    ended: bool


def label_forms(
    model: LanguageModel, choices: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Form, ...]]:
    """The token sequences that count as each label.

    A form that begins with another form of its label is part of that one's
    probability already and left out.

    Raises:
        PromptError: a form is empty, or begins with a form of another label, which
            would count one text for two labels.
    """
    forms: dict[str, tuple[Form, ...]] = {}
    for label, texts in choices.items():
        own = {tuple(model.token_ids(text)) for text in texts}
        if () in own:
            raise PromptError(f"choice {label!r}: a surface form of {texts} has no tokens.")
        forms[label] = tuple(
            sorted(form for form in own if not any(_begins(form, other) for other in own))
        )
    for label, mine in forms.items():
        for other_label, others in forms.items():
            if label != other_label and any(
                form == other or _begins(form, other) for form in mine for other in others
            ):
                raise PromptError(
                    f"choices {label!r} and {other_label!r}: a form of one begins with a form of "
                    "the other in this model's tokens. Give them surface forms that differ."
                )
    return forms


def label_scores(
    model: LanguageModel, logits: Tensor, past: Past, asked: Sequence[Forms | None]
) -> list[dict[str, float] | None]:
    """Log-probability of each label at the first answer position of each prompt.

    Args:
        logits: (B, V) raw logits there.
        past: of the B prompts; stays as it is.
        asked: each prompt's labels, see `label_forms`; None where it has none.

    Returns:
        For each prompt label -> log of the sum over its forms of the probability of
        the whole form, or None.
    """
    scores: list[dict[Form, float]] = []
    beginnings: list[list[Form]] = []
    for row, forms in enumerate(asked):
        first = torch.log_softmax(logits[row].double(), dim=-1).cpu()
        own = sorted({form for some in (forms or {}).values() for form in some})
        scores.append({form: float(first[form[0]]) for form in own})
        # Forms with equal beginnings (a space, then a digit) need that beginning read once.
        beginnings.append(sorted({form[:-1] for form in own} - {()}))
    for row, likely in _after(model, past, beginnings).items():
        for form in scores[row]:
            if (then := likely.get(form[:-1])) is not None:
                scores[row][form] += sum(float(then[i, t]) for i, t in enumerate(form[1:]))
    return [
        None if forms is None else _by_label(forms, scores[row]) for row, forms in enumerate(asked)
    ]


def choice_mass(scores: Mapping[str, float]) -> float:
    """Probability of all labels together, in [0, 1]."""
    return min(1.0, sum(math.exp(score) for score in scores.values()))


def generate(
    model: LanguageModel, logits: Tensor, past: Past, samplings: Sequence[Sampling]
) -> list[Continuation]:
    """Continue each prompt until its end token or its limit.

    Args:
        logits: (B, V) raw logits at the first answer position.
        past: of the B prompts; is taken over.
    """
    generators = [torch.Generator().manual_seed(s.seed) for s in samplings]
    written: list[list[int]] = [[] for _ in samplings]
    ended = [False] * len(samplings)
    active = list(range(len(samplings)))
    while True:
        # Whole rows leave the GPU only where one has to be drawn from.
        likeliest = logits.argmax(dim=-1).tolist()
        tokens = [
            next_token(logits[place].cpu(), samplings[row], generators[row])
            if samplings[row].temperature
            else likeliest[place]
            for place, row in enumerate(active)
        ]
        going: list[int] = []
        for place, row in enumerate(active):
            if tokens[place] in model.eos_ids:
                ended[row] = True
                continue
            written[row].append(tokens[place])
            if len(written[row]) < samplings[row].max_new_tokens:
                going.append(place)
        if not going:
            return [Continuation(tuple(ids), end) for ids, end in zip(written, ended, strict=True)]
        if len(going) < len(active):
            past = select(past, going)
        active = [active[place] for place in going]
        fed = torch.tensor([[tokens[place]] for place in going], device=model.device)
        hidden, past = extend(model, past, _rows(model, fed))
        model.work.generated_tokens += len(active)
        logits = model.logits(hidden[:, -1])


def next_token(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """The likeliest token of (V,) logits, or one drawn after temperature, then top-p.

    Source: Holtzman et al. 2020, nucleus sampling; the token that crosses top_p is kept.
    """
    if sampling.temperature == 0:
        return int(logits.argmax())
    probabilities = torch.softmax(logits.double() / sampling.temperature, dim=-1)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(descending=True, stable=True)
        beyond = ordered.cumsum(0) - ordered >= sampling.top_p
        probabilities[order[beyond]] = 0.0
    return int(torch.multinomial(probabilities, 1, generator=generator))


def _begins(form: Form, other: Form) -> bool:
    return len(form) > len(other) and form[: len(other)] == other


def _by_label(forms: Forms, scores: Mapping[Form, float]) -> dict[str, float]:
    def total(own: Sequence[Form]) -> float:
        return float(torch.tensor([scores[form] for form in own], dtype=torch.double).logsumexp(0))

    return {label: total(own) for label, own in forms.items()}


def _after(
    model: LanguageModel, past: Past, beginnings: Sequence[Sequence[Form]]
) -> dict[int, dict[Form, Tensor]]:
    """(n, V) log-probabilities after each token of each prompt's beginnings, teacher-forced."""
    rows = [row for row, own in enumerate(beginnings) if own]
    if not rows:
        return {}
    if model.branches:
        read = _in_branches(model, select(past, rows), [beginnings[row] for row in rows])
    else:
        read = [_in_rows_of_their_own(model, past, row, beginnings[row]) for row in rows]
    return {
        row: {
            form: torch.log_softmax(model.logits(hidden).double(), dim=-1).cpu()
            for form, hidden in zip(beginnings[row], own, strict=True)
        }
        for row, own in zip(rows, read, strict=True)
    }


def _in_branches(
    model: LanguageModel, past: Past, beginnings: Sequence[Sequence[Form]]
) -> list[list[Tensor]]:
    """(n, H) states of each beginning: those of a prompt share its row and its cache."""
    fed = [list(chain.from_iterable(own)) for own in beginnings]
    rows = [model.token_inputs(torch.tensor([ids], device=model.device)) for ids in fed]
    lengths = [[len(form) for form in own] for own in beginnings]
    hidden, _, places = extend_in_branches(model, past, rows, lengths)
    return [[hidden[row, place] for place in own] for row, own in enumerate(places)]


def _in_rows_of_their_own(
    model: LanguageModel, past: Past, row: int, beginnings: Sequence[Form]
) -> list[Tensor]:
    fed = [model.token_inputs(torch.tensor([form], device=model.device)) for form in beginnings]
    hidden, _ = extend(model, select(past, [row] * len(beginnings)), fed)
    length = hidden.shape[1]
    return [hidden[at, length - len(form) :] for at, form in enumerate(beginnings)]


def _rows(model: LanguageModel, ids: Tensor) -> list[dict[str, Tensor]]:
    inputs = model.token_inputs(ids)
    return [
        {name: value[row : row + 1] for name, value in inputs.items()} for row in range(len(ids))
    ]
