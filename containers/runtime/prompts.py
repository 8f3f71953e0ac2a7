"""From a request to the prompt a model can take, as its card says.

What a model cannot take is a recorded fallback, decided here before anything
runs, or a reason why the request is not asked at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from containers.runtime.adapter import Clip, Prompt, PromptError, Words
from containers.runtime.card import Capabilities
from core.protocol import Request

SYSTEM_IN_USER_TURN = "system_in_user_turn"
CLIP_CUT = "clip_cut"


def clip_names(request: Request) -> list[str]:
    """Audio files of a request, in order, repeats kept."""
    return [part["audio"] for part in request.parts if "audio" in part]


def check_suits(request: Request, can: Capabilities) -> None:
    """Raises:
    PromptError: saying what the card allows and what the request holds.
    """
    count = len(clip_names(request))
    if count and not can.audio:
        raise PromptError(f"the model takes no audio; the request holds {count} clips.")
    if count > can.clips_per_prompt:
        raise PromptError(
            f"the model takes {can.clips_per_prompt} clips per prompt; the request holds {count}."
        )


def prompt_of(
    request: Request, clips: Mapping[str, Clip], can: Capabilities
) -> tuple[Prompt, tuple[str, ...]]:
    """The prompt and the names of the fallbacks it took.

    Args:
        request: one that `check_suits` accepts.
        clips: by file name; holds every clip of the request.
        can: the card's capabilities.
    """
    parts: tuple[Words | Clip, ...] = tuple(
        clips[part["audio"]] if "audio" in part else Words(part["text"], part.get("slot"))
        for part in request.parts
    )
    prompt = Prompt(
        id=request.id,
        system=request.system,
        parts=parts,
        choices=request.choices,
        max_new_tokens=request.max_new_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        seed=request.seed,
        prefix_parts=request.prefix_parts,
    )
    fallbacks: tuple[str, ...] = ()
    if prompt.system and not _has_system_role(prompt, can):
        prompt = _system_in_user_turn(prompt)
        fallbacks += (SYSTEM_IN_USER_TURN,)
    limit_s = can.longest_clip_s
    if limit_s is not None and any(clip.seconds > limit_s for clip in prompt.clips):
        fallbacks += (CLIP_CUT,)
    return prompt, fallbacks


def _has_system_role(prompt: Prompt, can: Capabilities) -> bool:
    return can.system_prompt and (can.system_prompt_with_audio or not prompt.clips)


def _system_in_user_turn(prompt: Prompt) -> Prompt:
    # The same for every prompt of a run, so exemplars behind it stay a shared prefix.
    opening = Words(f"{prompt.system}\n\n")
    prefix_parts = prompt.prefix_parts + 1 if prompt.prefix_parts else 0
    return replace(prompt, system=None, parts=(opening, *prompt.parts), prefix_parts=prefix_parts)
