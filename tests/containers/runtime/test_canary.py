"""Who hears and who does not."""

from __future__ import annotations

import numpy as np
import pytest

from containers.runtime.adapter import Answer, Clip, Prompt, Words
from containers.runtime.canary import DeafError, check_hearing


class Model:
    """Logits by a function of the clip's samples; `noise` makes a repeat differ."""

    def __init__(self, logits, noise=0.0, uses=1.0):
        self.logits, self.uses, self.asked = logits, uses, []
        self.noise = noise * np.random.default_rng(0).standard_normal((99, 4))

    def next_token_logits(self, batch):
        (prompt,) = batch
        self.asked.append(prompt)
        return self.logits(prompt.clips[-1].samples)[None] + self.noise[len(self.asked)]

    def answer(self, batch):
        seconds = sum(clip.seconds for clip in batch[0].clips)
        return [Answer("1", "choice", 1, seconds * self.uses)]


def by_energy(samples):
    return np.array([np.abs(samples).mean(), 0.1, 0.2, 0.3])


def by_length(samples):
    return np.array([len(samples), 0.1, 0.2, 0.3])


def by_speech_or_not(samples):
    return np.array([float(samples.any()), 0.1, 0.2, 0.3])


def voices(*seconds: float) -> list[Clip]:
    generator = np.random.default_rng(1)
    sizes = [int(16_000 * s) for s in seconds]
    return [
        Clip(f"{n}.wav", "", generator.normal(0, 0.1 + n / 9, size).astype("f4"))
        for n, size in enumerate(sizes)
    ]


def question(clips: list[Clip], prefix: tuple = ()) -> Prompt:
    parts = (*prefix, clips[0], Words("How distressed?"))
    return Prompt("q", None, parts, {"1": ("1",)}, 8, 0.0, 1.0, 0, prefix_parts=len(prefix))


def test_a_model_that_hears_passes_and_the_figures_are_kept(tmp_path):
    hearing = check_hearing(Model(by_energy), question(voices(3)), voices(3, 4), tmp_path)
    assert min(hearing.changes.values()) > 0.01
    assert (hearing.noise, hearing.speech, hearing.seconds_used) == (0.0, "the run's own", 3.0)


def shape(samples):
    """The same at every level, as of a model that normalises what it hears."""
    level = samples.std() or 1.0
    return np.array([np.abs(samples).mean() / level, *(np.abs(samples[:3]) / level)])


def test_a_louder_copy_is_no_other_speech_by_which_to_tell_who_hears(tmp_path):
    one, other = voices(3, 3)
    louder = Clip("louder.wav", "", 4 * one.samples)

    hearing = check_hearing(Model(shape), question([one]), [one, louder, other], tmp_path)
    assert hearing.speech == "the run's own"
    assert check_hearing(Model(by_energy), question([one]), [one, louder], tmp_path).speech == (
        "synthetic"
    )


def test_a_model_that_only_counts_frames_is_deaf(tmp_path):
    with pytest.raises(DeafError, match="speech / other speech and for speech / silence"):
        check_hearing(Model(by_length), question(voices(3)), voices(3, 4), tmp_path)


def test_a_model_that_only_notices_sound_is_deaf_to_speech(tmp_path):
    with pytest.raises(DeafError, match="the same for speech / other speech "):
        check_hearing(Model(by_speech_or_not), question(voices(3)), voices(3, 4), tmp_path)


def test_a_change_within_the_models_own_noise_is_no_hearing(tmp_path):
    deaf = Model(lambda samples: np.array([0.0, 1.0, 2.0, 3.0]), noise=0.2)
    with pytest.raises(DeafError, match="does not hear"):
        check_hearing(deaf, question(voices(3)), voices(3, 4), tmp_path)


def test_half_the_seconds_used_fails(tmp_path):
    with pytest.raises(DeafError, match=r"given 3\.00 s of audio and used 1\.50 s"):
        check_hearing(Model(by_energy, uses=0.5), question(voices(3)), voices(3, 4), tmp_path)


def test_seconds_used_that_are_no_number_fail(tmp_path):
    with pytest.raises(DeafError, match="used nan s"):
        check_hearing(Model(by_energy, uses=np.nan), question(voices(3)), voices(3, 4), tmp_path)


def test_logits_that_are_no_numbers_fail(tmp_path):
    with pytest.raises(DeafError, match="not numbers"):
        check_hearing(
            Model(lambda samples: np.full(4, np.nan)), question(voices(3)), voices(3), tmp_path
        )


def test_a_padded_vocabulary_is_no_change(tmp_path):
    def padded(samples):
        return np.array([np.abs(samples).mean(), 0.5, -np.inf, -np.inf])

    assert check_hearing(Model(padded), question(voices(3)), voices(3, 4), tmp_path).noise == 0


@pytest.mark.parametrize("clips", [[], voices(3), voices(0.2, 0.2)])
def test_without_two_usable_clips_synthetic_voices_stand_in(tmp_path, clips):
    hearing = check_hearing(Model(by_energy), question(voices(3)), clips, tmp_path)
    assert hearing.speech == "synthetic"


def test_two_copies_of_one_clip_are_not_two_voices(tmp_path):
    clip = voices(3)[0]
    hearing = check_hearing(Model(by_energy), question([clip]), [clip, clip], tmp_path)
    assert hearing.speech == "synthetic"


def test_exemplars_are_left_out_and_the_words_are_kept(tmp_path):
    model = Model(by_energy)
    exemplar = (voices(5)[0], Words("Answer: 3"))
    check_hearing(model, question(voices(3), exemplar), voices(3, 4), tmp_path)
    assert all(len(prompt.clips) == 1 for prompt in model.asked)
    assert [part.text for part in model.asked[0].parts if isinstance(part, Words)] == [
        "How distressed?"
    ]
