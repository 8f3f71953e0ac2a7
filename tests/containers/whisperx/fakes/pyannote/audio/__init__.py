"""pyannote.audio 4.0.7's Pipeline as its callers see it."""

from types import SimpleNamespace

import whisperx


class Annotation:
    def __init__(self, lines):
        self.lines = lines

    def itertracks(self, yield_label=False):
        assert yield_label
        for start, end, speaker in self.lines:
            yield SimpleNamespace(start=start, end=end), "A", speaker


class Pipeline:
    @classmethod
    def from_pretrained(
        cls,
        checkpoint,
        revision=None,
        hparams_file=None,
        subfolder=None,
        token=None,
        cache_dir=None,
    ):
        whisperx.note("from_pretrained", config=checkpoint)
        return cls()

    def to(self, device):
        assert device == "device cpu"
        return self

    def __call__(self, file, num_speakers=None, min_speakers=None, max_speakers=None):
        assert file["waveform"].ndim == 2
        assert file["sample_rate"] == 16_000
        whisperx.note("diarize", least=min_speakers, most=max_speakers)
        both = [(0.1, 2.1, "SPEAKER_00"), (1.8, 4.1, "SPEAKER_01")]
        apart = [(0.1, 2.1, "SPEAKER_00"), (2.1, 4.1, "SPEAKER_01")]
        return SimpleNamespace(
            speaker_diarization=Annotation(both), exclusive_speaker_diarization=Annotation(apart)
        )
