"""One shard on its node: fetch what it lacks, have the model answer, say how it ended.

`python -m experiments.runners._shard FOLDER`, started by the keeper of the shard
(`_node`), ends with a file `ended.json` in that folder. Exit code 3 means that this node
cannot take the shard and that nothing was tried.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from containers.runtime.card import Card, read_card
from core.replacing import replace_text
from experiments.parent import Stopped, end_on_signal, end_with_parent
from experiments.runners import SUMMARY, Job, RunnerError
from experiments.runners._node import ENDED, ORDER, REQUESTS, RESPONSES, UNFIT, facts
from experiments.runners._store import StoreError, fetch_clips, fetch_weights
from experiments.settings import ROOT
from experiments.weights import present, weights_folder


class UnfitError(RuntimeError):
    """This node cannot take the shard; another may."""


def main(folder: Path) -> int:
    """Answer the shard's requests; returns the exit code."""
    keeper = os.getppid()
    end_on_signal()
    end_with_parent()
    try:
        _answer(folder)
    except UnfitError as error:
        return _ended(folder, UNFIT, str(error))
    except (RunnerError, StoreError, OSError) as error:
        return _ended(folder, 1, str(error))
    except Stopped:
        if os.getppid() != keeper:
            shutil.rmtree(folder, ignore_errors=True)
        return 143
    return _ended(folder, 0)


def _answer(folder: Path) -> None:
    order = json.loads((folder / ORDER).read_bytes())
    inner = _inner(order)
    card_path = ROOT / order["card"]
    card = read_card(card_path)
    job = Job(
        card=card,
        card_path=card_path,
        weights=_weights(card, order),
        requests=folder / REQUESTS,
        responses=folder / RESPONSES,
        audio=_audio(order),
        precision=order["precision"],
        device_map=order["device_map"],
        offline=order["offline"],
        gpus=order["gpus"],
    )
    inner.run(job)


def _inner(order: dict[str, Any]) -> Any:
    """The runner of this node, once it is what the driver takes it for."""
    from experiments.runners import docker, process

    name = order["inner"]
    found = facts(order["model"], runners=(name,))
    reason = found.why_not(name, order["card_digest"], order["code"])
    if reason is None and name == "docker" and found.image != order["image"]:
        reason = f"its image is {found.image[:19]}, and the run's is {order['image'][:19]}."
    if reason is not None:
        raise UnfitError(f"{found.host}: {reason}")
    return {"process": process, "docker": docker}[name]


def _audio(order: dict[str, Any]) -> Path:
    """A folder with all clips of the shard: the driver's own where it is seen from here."""
    shared = Path(order["audio"])
    missing = [name for name in order["clips"] if not (shared / name).is_file()]
    if not missing:
        return shared
    if not order["store"]:
        raise UnfitError(
            f"{os.uname().nodename}: {shared} holds {len(missing)} of {len(order['clips'])} clips "
            f"less than needed here, {missing[0]} first. Share that folder with all nodes, or name "
            "a store with -P store=s3://bucket/folder."
        )
    return fetch_clips(order["store"], order["clips"])


def _weights(card: Card, order: dict[str, Any]) -> Path:
    """The model's weights: where the driver has them, where this node has, or fetched."""
    shared = Path(order["weights"])
    if not card.repos or present(card, shared.parent):
        return shared
    here = weights_folder()
    if not present(card, here):
        if not order["store"]:
            raise UnfitError(
                f"{os.uname().nodename}: no weights of {card.name} in {shared} or "
                f"{here / card.name}; fetch them there with mlflow run . -e weights -P "
                f"model={card.name}, or name a store with -P store=s3://bucket/folder."
            )
        fetch_weights(order["store"], card, here)
    return here / card.name


def _ended(folder: Path, code: int, failure: str = "") -> int:
    said: dict[str, Any] = {"failure": failure}
    # A runtime that was killed leaves no summary.
    with suppress(OSError, ValueError):
        said |= json.loads((folder / SUMMARY).read_bytes())
    replace_text(folder / ENDED, json.dumps(said))
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
