"""The ears: filterbanks, BEATs and the cut into windows, against other implementations' numbers."""

from __future__ import annotations

import numpy as np
import pytest

from containers.runtime.adapter import LoadError

pytestmark = pytest.mark.models


def chirp() -> np.ndarray:
    """1.5 s, rising from 200 Hz, with a faint tone at 3.1 kHz."""
    time = np.arange(24_000) / 16_000
    rising = 0.3 * np.sin(2 * np.pi * (200 + 300 * time) * time)
    return (rising + 0.02 * np.sin(2 * np.pi * 3_100 * time)).astype(np.float32)


@pytest.mark.parametrize(
    ("frame", "bin_", "expected"),
    # torchaudio 2.11.1, compliance.kaldi.fbank(chirp * 2**15, num_mel_bins=128,
    # sample_frequency=16000, frame_length=25, frame_shift=10)
    [
        (0, 0, 10.6914),
        (0, 9, 20.6721),
        (0, 40, 4.3663),
        (70, 20, 12.1914),
        (70, 90, 8.6193),
        (147, 127, -2.1699),
    ],
)
def test_filterbanks_are_kaldis(frame, bin_, expected):
    import torch

    from containers.salmonn.fbank import kaldi_fbank

    frames = kaldi_fbank(torch.from_numpy(chirp()) * 2**15)
    assert frames.shape == (148, 128)
    # e^-2.2 beside the tone's e^20 is below float32's rounding: there processors differ.
    apart = 1e-3 if expected > 0 else 0.05
    assert float(frames[frame, bin_]) == pytest.approx(expected, abs=apart)


def test_silence_is_the_smallest_number_not_minus_infinity():
    import torch

    from containers.salmonn.fbank import kaldi_fbank

    # log of float32's epsilon, 2**-23
    assert kaldi_fbank(torch.zeros(16_000)).unique().tolist() == pytest.approx([-15.9424], abs=1e-3)


def test_beats_with_gated_relative_positions_and_deep_norm_is_the_published_one(tmp_path):
    import torch
    from tiny.salmonn import BEATS_CFG, drawn, released_beats

    from containers.salmonn.beats import load_beats

    path = tmp_path / "beats.pt"
    torch.save({"cfg": BEATS_CFG, "model": released_beats(BEATS_CFG, drawn)}, path)
    with torch.no_grad():
        rows = load_beats(path)(torch.from_numpy(chirp()))[0]
    assert rows.shape == (9 * 8, 24)
    # speechbrain 1.1.2, lobes.models.beats, its encoder with the same tensors and torchaudio's
    # filterbanks. Without the gate, or with other buckets, rows differ by more than 2.
    expected = {(0, 0): -0.4812, (0, 23): 0.4472, (35, 7): 1.8819, (71, 5): -1.0906}
    assert {at: float(rows[at]) for at in expected} == pytest.approx(expected, abs=2e-3)


def test_distances_share_a_bucket_the_more_the_further_they_are():
    import torch

    from containers.salmonn.beats import distance_buckets

    # T5 with 8 buckets up to 16: 4 behind, 4 ahead; in each half 0 and 1 are exact, from
    # 2 to 16 the logarithm has the other two, of which the last begins at 2 * 8**(1/2) = 5.7.
    distance = torch.tensor([0, -1, -2, -5, -6, -16, -99, 1, 2, 5, 6, 99])
    expected = [0, 1, 2, 2, 3, 3, 3, 5, 6, 6, 7, 7]
    assert distance_buckets(distance, 8, 16).tolist() == expected


def test_frames_that_fill_no_window_are_left_out():
    import torch

    from containers.salmonn.qformer import cut_in_windows

    windows = cut_in_windows(torch.arange(1_500.0)[None, :, None])
    # 30 s of Whisper: 1500 frames in windows of 17.
    assert windows.shape == (88, 17, 1)
    assert windows[1, 0, 0] == 17


def test_layers_that_disagree_about_distances_are_refused(tmp_path):
    import torch
    from tiny.salmonn import BEATS_CFG, drawn, released_beats

    from containers.salmonn.beats import load_beats

    tensors = released_beats(BEATS_CFG, drawn)
    tensors["encoder.layers.1.self_attn.relative_attention_bias.weight"] += 1
    torch.save({"cfg": BEATS_CFG, "model": tensors}, tmp_path / "beats.pt")
    with pytest.raises(LoadError, match="distances differ"):
        load_beats(tmp_path / "beats.pt")


def test_another_way_of_computing_is_refused(tmp_path):
    import torch
    from tiny.salmonn import BEATS_CFG, drawn, released_beats

    from containers.salmonn.beats import load_beats

    cfg = {**BEATS_CFG, "activation_fn": "glu"}
    torch.save({"cfg": cfg, "model": released_beats(BEATS_CFG, drawn)}, tmp_path / "beats.pt")
    with pytest.raises(LoadError, match="found glu"):
        load_beats(tmp_path / "beats.pt")


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    import pickle

    from containers.salmonn.checkpoint import read_pickled

    (tmp_path / "beats.pt").write_bytes(pickle.dumps(print))
    with pytest.raises(LoadError, match="not a checkpoint of tensors alone"):
        read_pickled(tmp_path / "beats.pt")
