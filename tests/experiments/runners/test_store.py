"""Clips and weights for nodes that share no folder with the driver."""

import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from containers.runtime.card import Repo, read_card
from core.audio import write_clip
from experiments import weights
from experiments.runners import _shard
from experiments.runners._store import StoreError, fetch_clips, fetch_weights, push_clips
from experiments.settings import ROOT


@pytest.fixture
def clip(tmp_path):
    """Name of a clip in the driver's folder."""
    return write_clip(tmp_path / "driver", np.linspace(-0.5, 0.5, 8_000, dtype=np.float32)).name


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERTONE_CACHE", str(tmp_path / "node"))
    return f"file://{tmp_path}/store"


def test_a_clip_goes_to_the_store_once_and_to_a_node_unchanged(tmp_path, store, clip):
    assert push_clips(store, tmp_path / "driver", [clip]) == 1
    assert push_clips(store, tmp_path / "driver", [clip]) == 0

    folder = fetch_clips(store, [clip])

    assert (folder / clip).read_bytes() == (tmp_path / "driver" / clip).read_bytes()
    assert fetch_clips("file:///nowhere", [clip]) == folder


def test_another_clip_under_its_name_is_refused(tmp_path, store, clip):
    push_clips(store, tmp_path / "driver", [clip])
    other = write_clip(tmp_path / "driver", np.zeros(8_000, np.float32))
    (tmp_path / "store" / "audio" / clip).write_bytes(other.read_bytes())

    with pytest.raises(StoreError, match=f"expected clip {clip}, found content of {other.name}"):
        fetch_clips(store, [clip])
    assert not list((tmp_path / "node").rglob("*.wav"))


def test_a_node_that_sees_the_drivers_folder_fetches_nothing(tmp_path, clip):
    order = {"audio": str(tmp_path / "driver"), "clips": [clip], "store": "file:///nowhere"}

    assert _shard._audio(order) == tmp_path / "driver"


def test_a_node_that_sees_neither_folder_nor_store_says_what_to_do(tmp_path, clip):
    order = {"audio": str(tmp_path / "elsewhere"), "clips": [clip], "store": ""}

    with pytest.raises(_shard.UnfitError, match=f"1 of 1 clips .*{clip} first.* -P store="):
        _shard._audio(order)


def test_a_kind_of_store_whose_package_is_missing_is_told(tmp_path, clip):
    with pytest.raises(StoreError, match="gone://bucket"):
        push_clips("gone://bucket/folder", tmp_path / "driver", [clip])


def model_with_weights():
    card = read_card(ROOT / "containers" / "null" / "model.toml")
    return replace(card, repos=(Repo("some/model", "a" * 40),))


def stored_weights(folder, content=b"weights"):
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    digest = sha256(content).hexdigest()
    record = {
        "repo": "some/model",
        "revision": "a" * 40,
        "files": {"model.safetensors": [7, digest]},
    }
    (folder / weights.RECORD).write_text(json.dumps(record))


def test_weights_are_fetched_and_verified(tmp_path, store):
    stored_weights(tmp_path / "store" / "weights" / "null")

    fetch_weights(store, model_with_weights(), tmp_path / "node")

    assert weights.present(model_with_weights(), tmp_path / "node")


def test_weights_of_other_content_than_recorded_are_refused(tmp_path, store):
    stored_weights(tmp_path / "store" / "weights" / "null", content=b"others!")

    with pytest.raises(StoreError, match="its content is not that of aaaa"):
        fetch_weights(store, model_with_weights(), tmp_path / "node")


def test_a_store_without_the_weights_says_what_belongs_there(tmp_path, store):
    with pytest.raises(StoreError, match=r"weights/null .*copy the folder there"):
        fetch_weights(store, model_with_weights(), tmp_path / "node")
