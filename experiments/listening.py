"""The listening check of a dataset folder: recognised words against written ones.

Dialogues are heard turn by turn where a sidecar gives the times, so that an error
belongs to a voice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from core.audio import RATE_HZ, read_clip
from core.speech.engine import Samples, speakable
from core.speech.listening import Heard, by, error_rate, heard

# Over these a clip is listed, and a voice is broken. Whisper tiny mishears about one
# word in a hundred of a sound voice, and most of one that says something else.
CLIP_RATE = 0.25
VOICE_RATE = 0.25

_SPEAKER = re.compile(r"^(Person\d+)?: ?")


def listen(folder: Path, items: pd.DataFrame, recognise: Callable[[Samples], str]) -> list[Heard]:
    """Every stretch of speech of these items, heard.

    Args:
        items: manifest rows; `audio` relative to the folder.
    """
    found = []
    for row in items.to_dict("records"):
        path = folder / str(row["audio"])
        samples = read_clip(path).samples
        for voice, text, start, end in _stretches(path, row):
            stretch = samples[
                round(start * RATE_HZ) : None if end is None else round(end * RATE_HZ)
            ]
            if speakable(text):
                found.append(heard(recognise, str(row["item_id"]), voice, text, stretch))
    return found


def report(name: str, stretches: Sequence[Heard]) -> str:
    """A paragraph: the whole, each voice, and the clips over the limit with what was heard."""
    wrong, words = sum(s.wrong for s in stretches), sum(s.words for s in stretches)
    voices = ", ".join(
        f"{v} {error_rate(group):.1%}" for v, group in by("voice", stretches).items()
    )
    lines = [
        f"{name}: word error rate {error_rate(stretches):.1%} ({wrong} of {words} words); {voices}"
    ]
    for item_id, group in by("item_id", stretches).items():
        if error_rate(group) > CLIP_RATE:
            said = " / ".join(stretch.heard for stretch in group)
            lines.append(f"  {item_id}: {error_rate(group):.0%} of words misheard: {said!r}")
    return "\n".join(lines)


def broken_voices(stretches: Sequence[Heard]) -> list[str]:
    """Voices whose words are mostly not understood."""
    groups = by("voice", stretches)
    return [voice for voice, group in groups.items() if error_rate(group) > VOICE_RATE]


def _stretches(
    path: Path, row: Mapping[Any, Any]
) -> Iterator[tuple[str, str, float, float | None]]:
    sidecar = path.with_suffix(".turns.json")
    if not sidecar.exists():
        lines = [_SPEAKER.sub("", line) for line in str(row["transcript"]).splitlines()]
        yield str(row.get("voice") or row.get("voices")), " ".join(lines), 0.0, None
        return
    for turn in json.loads(sidecar.read_text(encoding="utf-8"))["turns"]:
        yield turn["voice"], turn["text"], turn["start_s"], turn["end_s"]
