"""A store that all nodes of a cluster reach, by any URL fsspec knows: clips and weights.

    <store>/audio/<name>.wav                  put there by the driver, named by content
    <store>/weights/<model>/...               put there by whoever has them

What is fetched is checked before it is used: a clip against its name, which is the digest
of its samples, weights against their record. Access comes from the environment, as each
store's package reads it; a URL that carries a key is refused where it is typed.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from containers.runtime.card import Card
from experiments.weights import RECORD, WeightsError, check, place_of

TRIES = 3
AT_ONCE = 64


class StoreError(RuntimeError):
    """Something is not in the store, is not what it should be, or the store does not answer."""


def push_clips(store: str, folder: Path, names: Sequence[str]) -> int:
    """Put the clips a store lacks there; gives how many it lacked.

    Raises:
        StoreError: the store does not take them.
    """
    files, root = _opened(store)
    place = f"{root}/audio"
    try:
        files.makedirs(place, exist_ok=True)
        files.invalidate_cache()
        there = {
            str(entry["name"]).rpartition("/")[2]: entry["size"]
            for entry in files.ls(place, detail=True)
        }
        lacking = [n for n in names if there.get(n) != (folder / n).stat().st_size]
        for at in range(0, len(lacking), AT_ONCE):
            some = lacking[at : at + AT_ONCE]
            files.put([str(folder / name) for name in some], [f"{place}/{name}" for name in some])
    # Each store's package has errors of its own.
    except Exception as error:
        raise StoreError(f"{store} does not take the clips ({_line(error)}).") from error
    return len(lacking)


def fetch_clips(store: str, names: Sequence[str]) -> Path:
    """A folder of this machine with all these clips, fetched where they are not in it yet.

    Raises:
        StoreError: naming the clip that is missing or whose content is not its name's.
    """
    files, root = _opened(store)
    folder = _own_folder("clips")
    for name in names:
        if not (folder / name).is_file():
            _fetch_clip(files, f"{root}/audio/{name}", folder / name, store)
    return folder


def fetch_weights(store: str, card: Card, folder: Path) -> None:
    """Fetch a model's weights from a store and verify every byte.

    Raises:
        StoreError: naming what is missing or different.
    """
    import json

    files, root = _opened(store)
    with _alone(folder / f".{card.name}.lock"):
        for repo in card.repos:
            place = place_of(card, repo, folder)
            source = f"{root}/weights/{card.name}/{repo.folder}".removesuffix("/.")
            try:
                record = json.loads(files.cat_file(f"{source}/{RECORD}"))
                for name in record["files"]:
                    if not (place / name).is_file():
                        _fetch(files, f"{source}/{name}", place / name)
                (place / RECORD).write_text(json.dumps(record))
                check(card, repo, folder)
            except WeightsError as error:
                raise StoreError(str(error)) from error
            except Exception as error:
                raise StoreError(
                    f"{store} gives no weights of {card.name} under weights/{card.name} "
                    f"({_line(error)}); copy the folder there that mlflow run . -e weights "
                    "left, weights.json with it."
                ) from error


def _fetch_clip(files: Any, source: str, target: Path, store: str) -> None:
    import soundfile

    from core.audio import clip_name

    found = "nothing"
    for _ in range(TRIES):
        try:
            with _beside(target) as part:
                files.get_file(source, str(part))
                samples, _ = soundfile.read(str(part), dtype="float32")
                if clip_name(samples) == target.name:
                    part.chmod(0o644)
                    part.replace(target)
                    return
                found = f"content of {clip_name(samples)}"
        # Half a file, where the driver is still putting it there, is no sound file either.
        except Exception as error:
            found = _line(error)
    raise StoreError(
        f"{store}: expected clip {target.name}, found {found}. Remove it there; the next run "
        "puts it there again."
    )


def _fetch(files: Any, source: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _beside(target) as part:
        files.get_file(source, str(part))
        part.chmod(0o644)
        part.replace(target)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    number, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=target.parent)
    os.close(number)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One shard of a node fetches, the others wait for it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _own_folder(kind: str) -> Path:
    """A folder that shards of one user share on a machine; UNDERTONE_CACHE is what it is under."""
    under = os.environ.get("UNDERTONE_CACHE") or Path(tempfile.gettempdir())
    folder = Path(under) / f"undertone-{kind}-{os.getuid()}"
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.is_symlink():
        raise StoreError(f"{folder} is another user's; set UNDERTONE_CACHE to a folder of yours.")
    return folder


def _opened(store: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        files, root = url_to_fs(store)
    except ImportError as error:
        raise StoreError(f"{store}: {_line(error)} (pip install -e '.[ray]').") from error
    except Exception as error:
        raise StoreError(f"{store} cannot be opened ({_line(error)}).") from error
    return files, str(root).rstrip("/")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
