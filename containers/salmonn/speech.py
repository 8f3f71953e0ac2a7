"""What SALMONN hears: a clip as 88 tokens in the language model's space.

Two encoders see the whole clip, Whisper's for speech and BEATs for other sounds;
their frames, both 20 ms apart, are joined side by side and read window by
window by the Q-Former. Source: Tang et al. 2024, arXiv 2310.13289, section 3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from containers.runtime.adapter import LoadError, Samples
from containers.salmonn.beats import Beats, load_beats
from containers.salmonn.checkpoint import Tensors, fill, read_folder, refuse
from containers.salmonn.fbank import RATE_HZ
from containers.salmonn.qformer import HEADS, QFormer, cut_in_windows, qformer_config

SHORTEST_S = 1
LONGEST_S = 30

# Parts of a Whisper repository that are no encoder.
WHISPER_REST = ("decoder.", "model.decoder.", "proj_out.")


class Connector(nn.Module):
    """From the two encoders' frames to speech tokens: all that was trained but the LoRA.

    Args:
        shapes: of the release's tensors, by name.
        heads: of the Q-Former's attention.

    Raises:
        KeyError: a tensor that gives a size is not there.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], heads: int) -> None:
        super().__init__()
        prefix = "speech_Qformer."
        own = {k.removeprefix(prefix): v for k, v in shapes.items() if k.startswith(prefix)}
        self.ln_speech = nn.LayerNorm(shapes["ln_speech.weight"][0])
        self.ln_audio = nn.LayerNorm(shapes["ln_audio.weight"][0])
        self.speech_query_tokens = nn.Parameter(torch.empty(shapes["speech_query_tokens"]))
        self.speech_Qformer = QFormer(qformer_config(own, heads))
        out, width = shapes["speech_llama_proj.weight"]
        self.speech_llama_proj = nn.Linear(width, out)

    def forward(self, speech: Tensor, audio: Tensor) -> Tensor:
        """(1, T, Hw) of Whisper and (1, U, Hb) of BEATs to (windows, H)."""
        speech, audio = self.ln_speech(speech), self.ln_audio(audio)
        length = max(speech.shape[1], audio.shape[1])
        frames = torch.cat([_to_length(speech, length), _to_length(audio, length)], dim=-1)
        windows = cut_in_windows(frames)
        query = self.speech_query_tokens.expand(len(windows), -1, -1)
        tokens: Tensor = self.speech_llama_proj(self.speech_Qformer(query, windows))
        return tokens.flatten(0, 1)


class SpeechEncoder(nn.Module):
    """Samples to speech tokens, in float32 whatever the language model computes in.

    The encoders are a tenth of the model and run once a clip; half precision
    would save little.
    """

    def __init__(self, whisper: Any, beats: Beats, connector: Connector) -> None:
        super().__init__()
        from transformers import WhisperFeatureExtractor

        self.whisper, self.beats, self.connector = whisper, beats, connector
        self.extractor = WhisperFeatureExtractor(feature_size=whisper.config.num_mel_bins)

    def forward(self, samples: Samples) -> tuple[Tensor, float]:
        """(n,) at 16 kHz to (88, H) tokens and the seconds of the clip that were heard."""
        heard = samples[: LONGEST_S * RATE_HZ]
        missing = SHORTEST_S * RATE_HZ - len(heard)
        padded = np.pad(heard, (0, max(0, missing))).astype(np.float32)
        mel = self.extractor(padded, sampling_rate=RATE_HZ, return_tensors="pt").input_features
        device = self.connector.speech_query_tokens.device
        speech = self.whisper(mel.to(device)).last_hidden_state
        audio = self.beats(torch.from_numpy(padded).to(device))
        return self.connector(speech, audio), len(heard) / RATE_HZ


def load_speech_encoder(
    whisper: Path, beats: Path, bert: Path, trained: Tensors, source: Path
) -> SpeechEncoder:
    """The three parts from their files.

    Args:
        whisper: folder of a Whisper release.
        beats: file of a BEATs release.
        bert: config.json of the BERT the Q-Former's sizes are of; need not exist.
        trained: SALMONN's own tensors without the LoRA.
        source: the file they are from.

    Raises:
        LoadError: see `checkpoint`.
    """
    parts = (_load_whisper(whisper), load_beats(beats), _load_connector(trained, bert, source))
    encoder = SpeechEncoder(*parts)
    connector = encoder.connector
    given = (encoder.whisper.config.d_model, encoder.beats.config.encoder_embed_dim)
    expected = (len(connector.ln_speech.weight), len(connector.ln_audio.weight))
    if given != expected:
        raise LoadError(
            f"{source}: made for Whisper and BEATs of width {expected}, found {given} in "
            f"{whisper} and {beats}. SALMONN needs whisper-large-v2 and BEATs iter3+ AS2M."
        )
    return encoder.eval()


def _load_connector(trained: Tensors, bert: Path, source: Path) -> Connector:
    shapes = {name: tuple(value.shape) for name, value in trained.items()}
    heads = json.loads(bert.read_text())["num_attention_heads"] if bert.is_file() else HEADS
    try:
        with torch.device("meta"):
            connector = Connector(shapes, heads)
    except KeyError as error:
        refuse(source, "missing", [str(error.args[0])])
        raise
    fill(connector, trained, source)
    return connector


def _load_whisper(folder: Path) -> Any:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    tensors, others = read_folder(folder, ("encoder.", "model.encoder."))
    if unknown := sorted(name for name in others if not name.startswith(WHISPER_REST)):
        refuse(folder, "unexpected", unknown)
    config = WhisperConfig.from_pretrained(folder, local_files_only=True)
    with torch.device("meta"):
        encoder = WhisperEncoder(config)
    fill(encoder, tensors, folder)
    return encoder


def _to_length(frames: Tensor, length: int) -> Tensor:
    return functional.pad(frames, (0, 0, 0, length - frames.shape[1]))
