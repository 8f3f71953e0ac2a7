import sys
from types import SimpleNamespace

from containers.runtime.footprint import footprint

GIB = 2**30


def with_torch(monkeypatch, reserved):
    cuda = SimpleNamespace(
        is_available=lambda: bool(reserved),
        device_count=lambda: len(reserved),
        max_memory_reserved=lambda number: reserved[number],
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))


def test_a_model_without_torch_takes_the_memory_of_its_process(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    taken = footprint()

    # An interpreter alone takes some ten megabytes; this machine has no terabyte.
    assert 10 * 2**20 < taken["peak_memory_bytes"] < 2**40
    assert taken["gpus"] == 0


def test_what_torch_reserved_is_added_over_the_gpus_that_hold_something(monkeypatch):
    with_torch(monkeypatch, [3 * GIB, 0, 5 * GIB])

    assert footprint() == {"peak_memory_bytes": 8 * GIB, "gpus": 2}


def test_torch_on_the_cpu_uses_no_gpu(monkeypatch):
    with_torch(monkeypatch, [])

    assert footprint()["gpus"] == 0
