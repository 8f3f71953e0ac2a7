"""Vicuna's SentencePiece vocabulary, read without the control tokens it could be talked into.

The file of the release is used as it is. A text piece of the prompt begins with a
word boundary, as in the training of SALMONN; what continues a text does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from containers.runtime.adapter import LoadError

# Protocol buffers merge what is appended to them: normalizer_spec {add_dummy_prefix: false,
# remove_extra_whitespaces: false}. The library has no other way to set these when encoding.
AS_WRITTEN = b"\x1a\x04\x18\x00\x20\x00"


class Tokenizer:
    """`tokenizer.model` of a Llama release.

    Raises:
        LoadError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        try:
            model = path.read_bytes()
            self._pieces = SentencePieceProcessor(model_proto=model)
            self._continued = SentencePieceProcessor(model_proto=model + AS_WRITTEN)
        except (OSError, RuntimeError) as error:
            raise LoadError(f"{path}: no SentencePiece model ({error}). Fetch it again.") from error
        self.bos_id: int = self._pieces.bos_id()
        self.eos_id: int = self._pieces.eos_id()

    def piece(self, text: str) -> list[int]:
        """Tokens of a text that stands by itself: "A" is one token with a space in front."""
        ids: list[int] = self._pieces.encode(text)
        return ids

    def continuation(self, text: str) -> list[int]:
        """Tokens of exactly this text after another one: "A" and " A" differ."""
        ids: list[int] = self._continued.encode(text)
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """Control tokens leave no trace; a space in front of the first word is left out."""
        return str(self._pieces.decode(list(ids)))
