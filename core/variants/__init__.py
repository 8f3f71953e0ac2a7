"""A condition asked once more with one thing changed, to see what its answers rest on.

Flags of a task name the changes: `hearing` replaces the clip, `robustness` makes its sound
worse, `prompts` asks in other words. Each becomes a `Variant` that is planned, answered and
read exactly as the condition it belongs to. Its rows never mix with those of the conditions.

    >>> [v.name for v in variants({"hearing": "silence", "robustness": "noise:0"}, ("AO", "AT"))]
    ['AT.silence', 'AO.noise_0', 'AT.noise_0']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.modality import SHOWN, ModalityError
from core.protocol import Request
from core.task_settings import Setting
from core.tasks import TaskError
from core.variants.degradation import EXPECTED, Degradation, degradation

MISMATCHED, SILENCE, NEUTRAL = HEARING = ("mismatched", "silence", "neutral")

_CLIPS = {
    MISMATCHED: "mismatched (another item's)",
    SILENCE: "silence",
    NEUTRAL: "neutral (the words re-spoken by TTS)",
}

ROBUSTNESS_ON = ("AO", "AT")


@dataclass(frozen=True)
class Variant:
    """One condition with one change.

    Attributes:
        base: the condition, AO, AT or TO.
        flag: hearing, robustness or prompts.
        change: what is changed, as names have it: silence, noise_10, reversed.
        degradation: of the sound, for robustness.
    """

    base: str
    flag: str
    change: str
    degradation: Degradation | None = None

    @property
    def name(self) -> str:
        """Its name as a condition: no "-", which stands between the two of a pair."""
        return f"{self.base}.{self.change}"

    def settings(self, of_task: Mapping[str, str]) -> Mapping[str, str]:
        """The task's settings this variant is planned and read with."""
        return {**of_task, "wording": self.change} if self.flag == "prompts" else of_task


def hearing_setting(kinds: Sequence[str] = HEARING) -> Setting:
    """The flag `hearing`, of some kinds."""
    return _listed(
        "AT once more with another clip, to see what is heard: "
        + ", ".join(_CLIPS[k] for k in kinds),
        f"some of {', '.join(kinds)}, comma-joined",
        lambda said: said in kinds,
    )


def robustness_settings() -> dict[str, Setting]:
    """The flags `robustness` and `robustness_on`."""
    return {
        "robustness": _listed(
            "the clips made worse: noise:20,noise:10,telephone,speed:0.9,level:-12, ...",
            EXPECTED,
            lambda said: degradation(said) is not None,
        ),
        "robustness_on": on(
            "conditions that are asked with worse clips, of those asked", ROBUSTNESS_ON
        ),
    }


def on(meaning: str, conditions: Sequence[str]) -> Setting:
    """A setting that lists conditions; all of them by default."""
    known = ",".join(conditions)
    return Setting(
        known,
        meaning,
        f"some of {known}",
        lambda said: bool(words_of(said)) and all(w.upper() in conditions for w in words_of(said)),
    )


def prompts_setting(wordings: Sequence[str]) -> Setting:
    """The flag `prompts`; the first of the wordings is the study's own, and no variant."""
    others = wordings[1:]
    return _listed(
        "asked in other words: " + ", ".join(others),
        f"some of {', '.join(others)}, comma-joined",
        lambda said: said in others,
    )


def variants(settings: Mapping[str, str], conditions: Sequence[str]) -> tuple[Variant, ...]:
    """What the flags ask for, in the order of the flags; each once.

    Args:
        settings: with their defaults; a flag that is not among them asks for nothing.
        conditions: those of the run.

    Raises:
        TaskError: a flag that has nothing to compare with among the conditions.
    """
    found = [Variant("AT", "hearing", said) for said in words_of(settings.get("hearing", ""))]
    if found and "AT" not in conditions:
        raise TaskError(
            "hearing: it changes the clip of AT, which conditions leaves out; add AT, and TO to "
            "see how much of AT's gain over it is heard."
        )
    changes = [degradation(said) for said in words_of(settings.get("robustness", ""))]
    found += [
        Variant(base, "robustness", change.slug, change)
        for base in _bases("robustness", settings, conditions, any(changes))
        for change in changes
        if change
    ]
    wordings = words_of(settings.get("prompts", ""))
    if (own := settings.get("wording")) in wordings:
        raise TaskError(f"prompts: {own} is the wording of the run itself; leave it out of one.")
    found += [
        Variant(base, "prompts", wording)
        for base in _bases("prompts", settings, conditions, bool(wordings))
        for wording in wordings
    ]
    return tuple(dict.fromkeys(found))


def assert_variant(
    variant: Variant,
    requests: Mapping[str, Request],
    base: Mapping[str, Request],
    own: Mapping[str, str],
    without: Mapping[str, str],
) -> None:
    """Check that a variant asks what its condition asks, and changes nothing but its change.

    What the condition shows and withholds (in AT the transcript and exactly one clip) is
    checked when the requests are planned, by `core.modality.assert_modality`.

    Args:
        requests: of the variant, by item id.
        base: of its condition.
        own: item id -> the clip of the item itself.
        without: items that have no such clip, by id, with the reason; they are never sent.

    Raises:
        ModalityError: naming variant, item and what differs.
    """
    if list(requests) != list(base):
        raise ModalityError(
            f"{variant.name} and {variant.base}: expected the same items in the same order. Mend "
            "the task's plan."
        )
    faults = [
        f"item {item_id}, {variant.name}: {fault}. Mend the task's plan."
        for item_id, request in requests.items()
        if item_id not in without
        and (fault := _fault(variant, request, base[item_id], own.get(item_id)))
    ]
    if faults:
        raise ModalityError("\n".join(faults[:SHOWN]))


def _fault(variant: Variant, request: Request, base: Request, own: str | None) -> str | None:
    if (request.system, _slots(request)) != (base.system, _slots(base)):
        return f"expected system prompt, context and transcript of {variant.base}"
    if request.seed != base.seed:
        return f"expected the seed of {variant.base}"
    clips = [p["audio"] for p in request.parts[request.prefix_parts :] if "audio" in p]
    if variant.flag == "prompts":
        return None if clips in ([], [own]) else "expected the item's own clip"
    if own in clips:
        return f"expected another clip than the item's own, found {own}"
    words, of_base = ([p.get("text") for p in r.parts if "text" in p] for r in (request, base))
    return None if words == of_base else f"expected the words of {variant.base}"


def _slots(request: Request) -> list[tuple[str, str]]:
    return sorted((p["slot"], p["text"]) for p in request.parts if "slot" in p)


def _bases(
    flag: str, settings: Mapping[str, str], conditions: Sequence[str], asked: bool
) -> list[str]:
    wanted = [word.upper() for word in words_of(settings.get(f"{flag}_on", ""))]
    bases = [condition for condition in conditions if condition in wanted]
    if asked and not bases:
        raise TaskError(
            f"{flag}: {flag}_on is {','.join(wanted)}, and conditions has none of them."
        )
    return bases


def _listed(meaning: str, expected: str, fits: Callable[[str], bool]) -> Setting:
    return Setting("", meaning, expected, lambda said: all(map(fits, words_of(said))))


def words_of(said: str) -> list[str]:
    """The words of a comma-joined value, in small letters."""
    return [word.strip().lower() for word in said.split(",") if word.strip()]
