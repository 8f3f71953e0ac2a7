"""Kimi-Audio 7B: the vendor's own `kimia_infer`, inside the vendor's image, text answers only.

What the layout rests on, in `MoonshotAI/Kimi-Audio`: a message is
`{"role", "message_type": "text" | "audio", "content"}` and audio is a file path;
neighbouring messages of one role are one turn; there is no system role.
`KimiAPromptManager.get_prompt` (kimia_infer/api/prompt_manager.py) lays them out
as two aligned streams, audio and text, one of which is blank wherever the other
speaks. `KimiAudio._generate_loop` (kimia_infer/api/kimia.py) calls
`alm.forward(...)`, takes the second of its outputs for the text, feeds the text
token back beside a blank audio token, and ends at `kimia_text_eos`.

The model's cache is a tuple of tensors that each step replaces, so a prompt's
cache can be gone on from as often as needed: labels of several tokens and the
text start from one prefill. Prompts are read one at a time, and their beginnings
are not shared: the class takes no cache of a part of a prompt with audio.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from containers.runtime.adapter import (
    Adapter,
    Answer,
    Clip,
    LoadError,
    Logits,
    Prompt,
    PromptError,
    Work,
)
from containers.runtime.card import Card
from containers.runtime.decoding import Form, Sampling, choice_mass, label_forms, next_token
from containers.runtime.inference import memory_guarded
from containers.runtime.loading import check_folder, how_to_get_packages, how_to_get_weights

MOST_POSITIONS = 8_192
CODES_PER_S = 12.5
HUB_TOKENIZER = "THUDM/glm-4-voice-tokenizer"


@dataclass(frozen=True)
class Read:
    """A prompt that was read: (V,) logits of its answer's first text token, and the cache."""

    logits: Tensor
    cache: Any
    length: int
    seconds_used: float


class KimiAudio:
    """`model` is `kimia_infer.api.kimia.KimiAudio`, loaded without its detokenizer."""

    def __init__(self, card: Card, model: Any) -> None:
        self.card = card
        self.model = model
        self.tokens = model.extra_tokens
        self.device: torch.device = next(iter(model.alm.parameters())).device
        self.eos_ids = frozenset({self.tokens.kimia_text_eos})
        self.work = Work()

    # Adapter

    def next_token_logits(self, batch: Sequence[Prompt]) -> Logits:
        with memory_guarded():
            rows = [self._read(prompt).logits.float().cpu().numpy() for prompt in batch]
        return np.stack(rows)

    def answer(self, batch: Sequence[Prompt]) -> list[Answer]:
        with memory_guarded():
            return [self._answered(prompt) for prompt in batch]

    # What `label_forms` needs

    def token_ids(self, text: str) -> list[int]:
        """Tokens of a text, without marks of its beginning or end."""
        ids: list[int] = self.model.prompt_manager.text_tokenizer.encode(text, bos=False, eos=False)
        return list(ids)

    # Private

    def _answered(self, prompt: Prompt) -> Answer:
        forms = label_forms(self, prompt.choices) if prompt.choices else None
        read = self._read(prompt)
        scores = None
        if forms is not None:
            first = torch.log_softmax(read.logits.double(), dim=-1)
            scores = {
                label: float(torch.stack([self._score(read, first, f) for f in own]).logsumexp(0))
                for label, own in forms.items()
            }
        ids, ended = self._continued(read, prompt)
        cut = "length" if scores is None else "choice"
        return Answer(
            text=str(self.model.detokenize_text(ids)),
            finish_reason="stop" if ended else cut,
            prompt_tokens=read.length,
            audio_seconds_used=read.seconds_used,
            choice_logprobs=scores,
            choice_mass=None if scores is None else choice_mass(scores),
        )

    def _read(self, prompt: Prompt) -> Read:
        if prompt.system:
            raise PromptError("Kimi-Audio has no system role: put its text into the user turn.")
        content = self.model.prompt_manager.get_prompt(messages(prompt), output_type="text")
        audio_ids, text_ids, continuous = (part.to(self.device) for part in content.to_tensor())
        length = int(audio_ids.shape[1])
        if length + prompt.max_new_tokens > MOST_POSITIONS:
            raise PromptError(
                f"Kimi-Audio reads {MOST_POSITIONS} positions; this prompt takes {length} and "
                f"{prompt.max_new_tokens} for its answer. Give fewer exemplars or shorter clips."
            )
        _, text_logits, cache = self.model.alm.forward(
            input_ids=audio_ids,
            text_input_ids=text_ids,
            whisper_input_feature=[rows.to(self.device) for rows in content.continuous_feature],
            is_continuous_mask=continuous,
            position_ids=torch.arange(length, device=self.device)[None],
            past_key_values=None,
            return_dict=False,
        )
        self.work.prompt_positions += length
        self.work.encoder_seconds += sum(clip.seconds for clip in prompt.clips)
        used = _seconds_used(prompt.clips, int(continuous.sum()))
        return Read(text_logits[0, -1], cache, length, used)

    def _score(self, read: Read, first: Tensor, form: Form) -> Tensor:
        """Log-probability of a whole surface form, teacher-forced from the prompt's cache."""
        score = first[form[0]]
        if len(form) > 1:
            logits, _ = self._step(read.cache, read.length, form[:-1])
            likely = torch.log_softmax(logits.double(), dim=-1)
            said = torch.tensor(form[1:], device=likely.device)
            score = score + likely.gather(1, said[:, None]).sum()
        return score

    def _continued(self, read: Read, prompt: Prompt) -> tuple[list[int], bool]:
        sampling = Sampling(prompt.max_new_tokens, prompt.temperature, prompt.top_p, prompt.seed)
        generator = torch.Generator().manual_seed(prompt.seed)
        logits, cache = read.logits, read.cache
        written: list[int] = []
        while True:
            token = next_token(logits.float().cpu(), sampling, generator)
            if token in self.eos_ids:
                return written, True
            written.append(token)
            if len(written) == prompt.max_new_tokens:
                return written, False
            rows, cache = self._step(cache, read.length + len(written) - 1, (token,))
            self.work.generated_tokens += 1
            logits = rows[-1]

    def _step(self, cache: Any, position: int, tokens: Sequence[int]) -> tuple[Tensor, Any]:
        """(n, V) text logits after each of n text tokens, audio blank; and the longer cache."""
        text = torch.tensor([list(tokens)], device=self.device)
        _, text_logits, cache = self.model.alm.forward(
            input_ids=torch.full_like(text, self.tokens.kimia_text_blank),
            text_input_ids=text,
            whisper_input_feature=None,
            is_continuous_mask=None,
            position_ids=torch.arange(position, position + len(tokens), device=self.device)[None],
            past_key_values=cache,
            return_dict=False,
        )
        return text_logits[0], cache


def messages(prompt: Prompt) -> list[dict[str, str]]:
    """The user turn as the vendor's messages, in the request's order; neighbouring texts as one."""
    turn: list[dict[str, str]] = []
    for part in prompt.parts:
        if isinstance(part, Clip):
            turn.append({"role": "user", "message_type": "audio", "content": part.path})
        elif turn and turn[-1]["message_type"] == "text":
            turn[-1]["content"] += part.text
        else:
            turn.append({"role": "user", "message_type": "text", "content": part.text})
    return turn


def _seconds_used(clips: Sequence[Clip], codes: int) -> float:
    """Seconds behind so many codes; a clip's last, partial frame is no cut."""
    given = float(sum(clip.seconds for clip in clips))
    heard = codes / CODES_PER_S
    return given if given - heard <= len(clips) / CODES_PER_S else heard


def load(card: Card, weights: Path, *, precision: str, device_map: str) -> Adapter:
    """See `Adapter`. Raises LoadError."""
    if precision != "bf16":
        raise LoadError(f"{card.name}: the vendor's class loads bf16 alone, not {precision!r}.")
    if device_map not in ("auto", "cuda", "cuda:0") or not torch.cuda.is_available():
        raise LoadError(
            f"{card.name}: the vendor's code runs on the first NVIDIA GPU only; device_map "
            f"{device_map!r}, torch {torch.__version__} finds {torch.cuda.device_count()} GPUs."
        )
    folder, tokenizer = (weights / repo.folder for repo in card.repos)
    check_folder(card, folder)
    check_folder(card, tokenizer)
    if not (folder / "whisper-large-v3" / "config.json").is_file():
        raise LoadError(
            f"{card.name}: {folder} has no whisper-large-v3/config.json. {how_to_get_weights(card)}"
        )
    adapter: Adapter = KimiAudio(card, vendor_model(card, folder, tokenizer))
    return adapter


def vendor_model(card: Card, folder: Path, tokenizer: Path) -> Any:
    """`kimia_infer`'s model on local folders alone, without the parts that make sound.

    Raises:
        LoadError: no `kimia_infer`, another one than was read, or weights that do not load.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    folder, tokenizer = folder.resolve(), tokenizer.resolve()
    here = Path.cwd()
    # It opens a log file in the working folder on import, which an image has read-only.
    scratch = tempfile.TemporaryDirectory(prefix="kimia-")
    os.chdir(scratch.name)
    try:
        api = import_module("kimia_infer.api.kimia")
        prompt_manager = import_module("kimia_infer.api.prompt_manager")
        vendors = prompt_manager.Glm4Tokenizer

        def from_folder(name: str) -> Any:
            # Named in the vendor's code, without a revision.
            if name != HUB_TOKENIZER:
                raise LoadError(
                    f"{card.name}: expected the tokenizer {HUB_TOKENIZER}, found {name}."
                )
            return vendors(str(tokenizer))

        prompt_manager.Glm4Tokenizer = from_folder
        model = api.KimiAudio(model_path=str(folder), load_detokenizer=False)
        model.alm.eval()
        return model
    except ImportError as error:
        raise LoadError(
            f"{card.name}: {error}. kimia_infer comes with the vendor's image.\n"
            f"{how_to_get_packages(card)}"
        ) from error
    except AttributeError as error:
        raise LoadError(
            f"{card.name}: this kimia_infer is not the one the adapter was written for: {error}\n"
            f"{how_to_get_packages(card)}"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise LoadError(
            f"{card.name}: {folder} does not load: {error}\n{how_to_get_weights(card)}"
        ) from error
    finally:
        os.chdir(here)
        scratch.cleanup()
