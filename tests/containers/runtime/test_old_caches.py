"""Caches of the older transformers that some vendors' code is pinned to."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.models


class ListCache:
    """`DynamicCache` before transformers 4.54: two lists of tensors, one entry a layer."""

    def __init__(self) -> None:
        self.key_cache: list = []
        self.value_cache: list = []
        self._seen_tokens = 0

    def get_seq_length(self) -> int:
        return self.key_cache[0].shape[-2] if self.key_cache else 0


@pytest.fixture
def past(monkeypatch):
    import torch

    from containers.runtime import prefix
    from containers.runtime.language_model import Past

    monkeypatch.setattr(prefix, "DynamicCache", ListCache)
    cache = ListCache()
    # Two layers; two rows of one head, three slots, two features.
    cache.key_cache = [torch.arange(12.0).reshape(2, 1, 3, 2) + 100 * layer for layer in (0, 1)]
    cache.value_cache = [-keys for keys in cache.key_cache]
    cache._seen_tokens = 3
    slots = torch.arange(3).expand(2, 3)
    return Past(cache, slots >= 0, slots, torch.tensor([3, 3]))


def test_rows_are_copied_in_any_order_and_the_original_stays(past):
    from containers.runtime.prefix import select

    chosen = select(past, [1, 0, 1]).cache
    assert chosen.key_cache[1][:, 0, 0, 0].tolist() == [106, 100, 106]
    assert chosen.value_cache[0][:, 0, 0, 0].tolist() == [-6, 0, -6]
    chosen.key_cache[0] += 1000
    assert past.cache.key_cache[0][0, 0, 0, 0] == 0


def test_a_shorter_beginning_counts_its_own_length(past):
    from containers.runtime.prefix import _cropped

    cropped = _cropped(past, 2).cache
    assert cropped.get_seq_length() == cropped._seen_tokens == 2
    assert past.cache.get_seq_length() == 3
