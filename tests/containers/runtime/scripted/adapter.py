"""A model that misbehaves on cue: the words of a prompt say how.

`raise`, `nan`, `oom` (never fits), `hang`, `slow` (0.3 s), `long` (text at its
limit). `SCRIPTED` in the environment sets the mode of the whole model: `deaf`,
`cuts`, `small` (fits two at a time), `unloadable`, `too_big`, `broken`, `needs_torch`,
`stuck` (every batch hangs), `chatty`, `mute` (raises on the canary).
"""

from __future__ import annotations

import os
import time

import numpy as np

from containers.runtime.adapter import Answer, LoadError, OutOfMemoryError, Work

MODE = os.environ.get("SCRIPTED", "")


def load(card, weights, *, precision, device_map):
    if MODE == "unloadable":
        raise LoadError(f"{weights}/model.safetensors is missing; fetch it with: fetch-it.")
    if MODE == "too_big":
        raise MemoryError("CUDA out of memory")
    if MODE == "broken":
        raise KeyError("audio_tower.weight")
    if MODE == "needs_torch":
        import a_package_nobody_has  # noqa: F401
    if MODE == "chatty":
        print("Loading checkpoint shards: 100%")
        os.write(1, b"a line from native code\n")
    return Scripted()


class Scripted:
    def __init__(self):
        self.work = Work()

    def next_token_logits(self, batch):
        if MODE == "mute":
            raise TypeError("unexpected keyword audios")
        return np.stack([self._logits(prompt) for prompt in batch])

    def answer(self, batch):
        says = [" ".join(getattr(part, "text", "") for part in prompt.parts) for prompt in batch]
        canary = batch[0].id.startswith("canary")
        if not canary:
            self._misbehave(says)
        return [self._answer(prompt, said) for prompt, said in zip(batch, says, strict=True)]

    def _misbehave(self, says):
        if MODE == "small" and len(says) > 2:
            raise OutOfMemoryError("CUDA out of memory")
        for said in says:
            if "oom" in said:
                raise OutOfMemoryError("CUDA out of memory")
            if "raise" in said:
                raise ValueError("the tokenizer\nfell over")
            if "hang" in said or MODE == "stuck":
                time.sleep(3600)
            if "slow" in said:
                time.sleep(0.3)

    def _logits(self, prompt):
        energy = sum(float(np.abs(clip.samples).sum()) for clip in prompt.clips)
        heard = 0.0 if MODE == "deaf" else energy % 7
        return np.array([heard, 1.0, -heard, 0.5, 0.0], dtype=np.float32)

    def _answer(self, prompt, said):
        logits = self._logits(prompt).astype(float)
        logprobs = logits - np.log(np.exp(logits).sum())
        if "nan" in said:
            logprobs[0] = np.nan
        self.work.prompt_positions += 1
        given = sum(clip.seconds for clip in prompt.clips)
        used = sum(min(clip.seconds, 20.0) for clip in prompt.clips)
        return Answer(
            text=said,
            finish_reason="length" if "long" in said else "stop",
            prompt_tokens=len(said),
            audio_seconds_used=given / 2 if MODE == "cuts" else used,
            choice_logprobs=dict(zip("12345", logprobs.tolist(), strict=True))
            if prompt.choices
            else None,
            choice_mass=1.0 if prompt.choices else None,
        )
