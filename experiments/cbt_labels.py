"""Entry point `cbt_labels`: descriptions of patients' turns to labels 1-5, and a dataset.

Reads a table of descriptions (item_id, run, description; cbt_describe writes one), embeds
them and Table 1's anchors, and votes over the runs. Leaves similarities.csv and labels.csv,
and with `--turns FOLDER` (of cbt_turns) a dataset folder. `--scores FILE` (item_id, run,
score) sets numbers that were asked for directly beside them.

Source: CBT-Audio, section 3.1 and appendix B.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.embedding import BGE_M3_REVISION
from experiments.options import (
    TRACK,
    TRACK_CHOICES,
    OptionError,
    existing_file,
    existing_folder,
    one_of,
    read_options,
    truth,
)

OPTIONS = {
    "descriptions": ("", "table of item_id, run and description, .csv or .parquet"),
    "embedder": ("offline", "offline (MiniLM, here) or bge-m3 (the study's; from the hub once)"),
    "revision": (BGE_M3_REVISION, "of bge-m3: a commit of its hub repository"),
    "scores": ("", "table of item_id, run and score 1-5 asked for directly, to compare with"),
    "turns": ("", "folder of cbt_turns; given, its clips become a dataset with these labels"),
    "output": ("outputs/cbt-labels", "folder to write; the dataset with turns given"),
    "name": ("cbt-own", "the dataset's name"),
    "licence": ("of the recordings' owners; not ours to redistribute", "of the dataset"),
    "synthetic": ("false", "true where the recordings are nobody's voices"),
    **TRACK,
}


TURNS = "unlabelled.parquet"


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    descriptions: Path
    embedder: str
    revision: str
    scores: Path | None
    turns: Path | None
    output: Path
    name: str
    licence: str
    synthetic: bool
    track: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Label; 2 for a value or table that is wrong, 1 where the embedding model is not here."""
    try:
        asked = asked_from(read_options(OPTIONS, arguments, "cbt_labels", __doc__))
    except OptionError as error:
        return _sorry(2, error)
    from core.dataset import DatasetError
    from core.embedding import EmbeddingError
    from experiments.labelling import label
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one
    from experiments.tracking import TrackingError
    from validation.schemas import TableError

    try:
        with only_one(asked.output, "cbt_labels"):
            print(label(asked))
            if asked.track != "false":
                _tracked(asked)
    except (OptionError, DatasetError, TableError) as error:
        return _sorry(2, error)
    except (EmbeddingError, FolderInUseError, TrackingError) as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, asked.output))
    return 0


def asked_from(said: Mapping[str, str]) -> Asked:
    """The options, checked, folders of earlier stages last; OptionError for the first wrong one."""
    for name in ("name", "licence"):
        if not said[name]:
            raise OptionError(f"{name}: expected words, found nothing.")
    asked = Asked(
        descriptions=Path(said["descriptions"]).expanduser(),
        embedder=one_of("embedder", said["embedder"], ("offline", "bge-m3")),
        revision=_revision(said["revision"]),
        scores=existing_file("scores", said["scores"]) if said["scores"] else None,
        turns=Path(said["turns"]).expanduser() if said["turns"] else None,
        output=Path(said["output"]).expanduser(),
        name=said["name"],
        licence=said["licence"],
        synthetic=truth("synthetic", said["synthetic"]),
        track=one_of("track", said["track"], TRACK_CHOICES),
    )
    existing_file("descriptions", said["descriptions"])
    if said["turns"] and not (existing_folder("turns", said["turns"]) / TURNS).is_file():
        raise OptionError(f"turns: {said['turns']!r} has no {TURNS}; run cbt_turns.")
    return asked


def _revision(said: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", said):
        raise OptionError(
            f"revision: expected a whole commit, 40 letters of 0-9 and a-f, found {said!r}; a "
            "branch names other weights tomorrow."
        )
    return said


def _tracked(asked: Asked) -> None:
    from experiments.stages import labels_stage
    from experiments.track_build import track_stages

    print(track_stages([labels_stage(asked.output)], "cbt_labels", asked.track))


def _sorry(code: int, why: object) -> int:
    print(f"cbt_labels: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
