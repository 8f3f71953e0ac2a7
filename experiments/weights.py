"""`mlflow run . -e weights -P model=voxtral`: the pinned revision's files, fetched and verified.

Downloads go on where they stopped. Every file is checked against the size and
digest that the hub gives for the revision; `weights.json` beside them records
both, so that `-e models` and the runners can tell without a network.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from hashlib import sha1, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers.runtime.card import Card, Repo, read_card
from core.replacing import replace_text
from experiments.options import OptionError, one_of, read_options
from experiments.settings import ROOT, card_file, models, recognisers

if TYPE_CHECKING:
    from huggingface_hub import HfApi

OPTIONS: dict[str, tuple[str, str]] = {
    "model": ("", "a folder of containers/: a model, or whisperx"),
    "folder": ("", "where weights go; empty for UNDERTONE_WEIGHTS or weights/ of this clone"),
    "verify": ("download", "download what is missing and verify, or only to verify what is there"),
}
RECORD = "weights.json"
_CHUNK = 1 << 24


class WeightsError(RuntimeError):
    """Weights that cannot be had or are not what was pinned; one sentence says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch and verify; 2 for a value that is wrong, 1 where the hub or a file is."""
    try:
        words = read_options(
            OPTIONS, arguments, "python -m experiments.weights", __doc__.partition("\n")[0]
        )
        card = _card(words["model"])
        verify = one_of("verify", words["verify"], ("download", "only"))
    except OptionError as error:
        print(f"weights: {error}", file=sys.stderr)
        return 2
    if not card.repos:
        print(f"{card.name} needs no weights.")
        return 0
    folder = Path(words["folder"]).expanduser() if words["folder"] else weights_folder()
    try:
        for repo in card.repos:
            if verify == "download":
                fetch(card, repo, folder)
            size = check(card, repo, folder)
            place = place_of(card, repo, folder)
            print(f"{repo.id} at {repo.revision}: {size / 1e9:.2f} GB verified in {place}")
    except WeightsError as error:
        print(f"weights: {error}", file=sys.stderr)
        return 1
    return 0


def weights_folder() -> Path:
    """Where weights are: UNDERTONE_WEIGHTS, or weights/ of this clone."""
    return Path(os.environ.get("UNDERTONE_WEIGHTS") or ROOT / "weights")


def place_of(card: Card, repo: Repo, folder: Path) -> Path:
    """Where one repository of a model goes under the folder of all weights."""
    return folder / card.name / repo.folder


def fetch(card: Card, repo: Repo, folder: Path) -> None:
    """Download a repository's pinned files and record what they must be.

    Raises:
        WeightsError: no package, no permission, no such revision, no room, no connection.
    """
    try:
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import (
            GatedRepoError,
            OfflineModeIsEnabled,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
    except ModuleNotFoundError as error:
        raise WeightsError(
            "huggingface_hub is not installed (pip install -e '.[docker]')."
        ) from error
    place = place_of(card, repo, folder)
    place.mkdir(parents=True, exist_ok=True)
    hub = os.environ.get("HF_ENDPOINT") or None
    try:
        wanted = _wanted(HfApi(endpoint=hub), repo)
        _make_room(wanted, place)
        snapshot_download(
            repo.id,
            revision=repo.revision,
            local_dir=place,
            allow_patterns=list(repo.files) or None,
            endpoint=hub,
        )
    except WeightsError:
        raise
    except GatedRepoError as error:
        raise WeightsError(
            f"{repo.id} is gated: accept its terms at {_page(repo)} with your account, then set "
            "HF_TOKEN to a read token of that account and run the same command."
        ) from error
    except RevisionNotFoundError as error:
        raise WeightsError(
            f"{repo.id} has no revision {repo.revision}; the card's pin is wrong or was removed."
        ) from error
    except RepositoryNotFoundError as error:
        raise WeightsError(
            f"There is no repository {repo.id}, or it is private: see {_page(repo)}; a token goes "
            "in HF_TOKEN."
        ) from error
    except OfflineModeIsEnabled as error:
        raise WeightsError(
            "HF_HUB_OFFLINE is set, so nothing can be fetched; unset it for this command."
        ) from error
    # The hub's client lets its HTTP library's own errors through, and has changed that library.
    except Exception as error:
        raise WeightsError(
            f"{repo.id} could not be fetched ({type(error).__name__}: {_line(error)}); what came "
            "is kept, the same command goes on from there."
        ) from error
    replace_text(
        place / RECORD,
        json.dumps({"repo": repo.id, "revision": repo.revision, "files": wanted}, indent=1),
    )


def check(card: Card, repo: Repo, folder: Path, *, deep: bool = True) -> int:
    """Compare what is there with its record; gives its bytes.

    Args:
        deep: read every byte and compare digests too, not the sizes alone.

    Raises:
        WeightsError: naming the first file that is missing or different.
    """
    place = place_of(card, repo, folder)
    again = f"fetch it again with: mlflow run . -e weights -P model={card.name}"
    total = 0
    for name, (size, digest) in _record(repo, place, again)["files"].items():
        path = place / name
        found = path.stat().st_size if path.is_file() else None
        if found != size:
            raise WeightsError(
                f"{path}: expected {size} bytes, found {'no file' if found is None else found}; "
                f"{again}"
            )
        if deep and _digest(path, size, digest) != digest:
            raise WeightsError(
                f"{path}: its content is not that of {repo.revision}; delete it and {again}"
            )
        total += size
    return total


def present(card: Card, folder: Path) -> bool:
    """Whether all of a model's weights are there, by size."""
    try:
        for repo in card.repos:
            check(card, repo, folder, deep=False)
    except WeightsError:
        return False
    return True


def _card(said: str) -> Card:
    return read_card(card_file(one_of("model", said, [*models(), *recognisers()])))


def _wanted(api: HfApi, repo: Repo) -> dict[str, tuple[int, str]]:
    from validation.rules import PATH

    info = api.model_info(repo.id, revision=repo.revision, files_metadata=True)
    # A mirror's list is not ours: what it names is removed and written under our folder.
    for file in info.siblings or []:
        if not PATH.holds(file.rfilename):
            raise WeightsError(f"{repo.id} lists a file outside its folder: {file.rfilename!r}.")
    return {
        file.rfilename: (int(file.size or 0), str(file.lfs.sha256 if file.lfs else file.blob_id))
        for file in info.siblings or []
        if not repo.files or any(fnmatch(file.rfilename, pattern) for pattern in repo.files)
    }


def _make_room(wanted: Mapping[str, tuple[int, str]], place: Path) -> None:
    """Remove files of the wrong size, which the hub's client would take for done, and see
    that the missing ones fit on the disk."""
    missing = 0
    for name, (size, _) in wanted.items():
        path = place / name
        if path.is_file() and path.stat().st_size != size:
            path.unlink()
        if not path.is_file():
            missing += size
    partial = sum(path.stat().st_size for path in place.rglob("*.incomplete"))
    room = shutil.disk_usage(place).free
    if missing - partial > room:
        raise WeightsError(
            f"{place}: {(missing - partial) / 1e9:.1f} GB to fetch and {room / 1e9:.1f} GB free; "
            "make room, or give another folder with -P folder=..."
        )


def _record(repo: Repo, place: Path, again: str) -> dict[str, Any]:
    from validation.rules import PATH

    try:
        record: dict[str, Any] = json.loads((place / RECORD).read_text())
        revision, files = record["revision"], record["files"]
        if not all(map(PATH.holds, files)):
            raise ValueError(f"a file outside {place}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WeightsError(f"{place} holds no weights of {repo.id}; {again}") from error
    if revision != repo.revision:
        raise WeightsError(
            f"{place}: expected revision {repo.revision} of {repo.id}, found "
            f"{record['revision']}; {again}"
        )
    return record


def _digest(path: Path, size: int, like: str) -> str:
    # Large files are named by their sha256, small ones by git's object id.
    total = sha256() if len(like) == sha256().digest_size * 2 else sha1(b"blob %d\0" % size)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _page(repo: Repo) -> str:
    return f"https://huggingface.co/{repo.id}"


if __name__ == "__main__":
    sys.exit(main())
