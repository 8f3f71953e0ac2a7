"""What a shard is given on a node, by the model's card and what the nodes say of themselves."""

import pytest

from containers.runtime.card import read_card
from experiments.parent import Stopped
from experiments.runners import RunnerError, Site
from experiments.runners._cluster import (
    Ask,
    _one_image,
    ask_of,
    connected,
    signals_as_sent,
    too_small,
)
from experiments.runners._node import Facts, facts
from experiments.settings import ROOT

# 75 GB in bf16.
QWEN3 = read_card(ROOT / "containers" / "qwen3_omni" / "model.toml")
NULL = read_card(ROOT / "containers" / "null" / "model.toml")


def node(*gpus_gb, **told):
    return Facts("node", "card", "code", gpus_gb=gpus_gb, **told)


@pytest.mark.parametrize(
    ("sizes_gb", "device_map", "gpus", "given"),
    [
        ((80.0, 80.0), "auto", "auto", 1),
        ((48.0, 48.0), "auto", "auto", 2),
        ((24.0, 80.0), "auto", "auto", 1),
        ((24.0,) * 8, "auto", "auto", 4),
        ((24.0,) * 8, "cuda", "auto", 1),
        ((80.0, 80.0), "auto", "count:2", 2),
        ((), "auto", "auto", 1),
    ],
)
def test_a_shard_gets_as_many_gpus_as_its_model_fills(sizes_gb, device_map, gpus, given):
    assert ask_of(QWEN3, "bf16", device_map, gpus, [node(*sizes_gb)]).gpus == given


def test_on_the_processor_its_memory_is_the_nodes():
    assert ask_of(QWEN3, "bf16", "cpu", "auto", []) == Ask(cpus=1, gpus=0, memory=75_000_000_000)
    assert ask_of(NULL, "none", "auto", "auto", [node(80.0)]) == Ask()


def test_nodes_with_smaller_gpus_are_left_out():
    nodes = {"big": node(80.0), "small": node(24.0, 24.0), "untold": node()}

    assert too_small(Ask(gpus=1), QWEN3, "bf16", nodes) == {
        "small": "1 of its GPUs hold 24 GB of the 75 needed."
    }


@pytest.mark.parametrize(
    ("resources", "fit"),
    [
        ({"CPU": 8, "GPU": 4}, 2),
        ({"CPU": 1, "GPU": 8}, 1),
        ({"CPU": 8}, 0),
        ({}, 0),
    ],
)
def test_room_is_what_all_resources_allow(resources, fit):
    assert Ask(cpus=1, gpus=2).fits(resources) == fit


def test_a_node_with_other_code_is_not_asked():
    here = facts("null", runners=())

    assert facts("null", ("process",)).why_not("process", here.card, here.code) is None
    assert "bring both to one commit" in str(node().why_not("process", here.card, here.code))


def test_different_images_on_the_nodes_are_different_models():
    nodes = {"a": node(image="sha256:one"), "b": node(image="sha256:two")}

    with pytest.raises(RunnerError, match=r"sha256:one on node; sha256:two on node.*docker save"):
        _one_image("docker", nodes)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_is_not_there_is_told_at_once(address):
    with pytest.raises(RunnerError, match=rf"No Ray cluster answers at {address}: start one with"):
        connected(Site(address=address))


def inside_ray(sent):
    """What Ray's waiting calls make of what a signal's handler raises."""
    raise SystemError("returned a result with an exception set") from sent


def test_a_signal_ends_a_wait_in_its_own_shape():
    with pytest.raises(Stopped), signals_as_sent():
        inside_ray(Stopped())
    with pytest.raises(SystemError), signals_as_sent():
        inside_ray(None)


def test_offline_no_cluster_beyond_this_machine_is_joined():
    with pytest.raises(RunnerError, match=r"offline=true: .* -P address=local"):
        connected(Site(offline=True, address="10.0.0.1:6379"))
