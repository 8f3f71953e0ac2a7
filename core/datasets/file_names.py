"""What the file of an item is called: ids come from tables of others and may hold anything."""

from __future__ import annotations

import re
from hashlib import sha256

LONGEST_BYTES = 150
_DIGITS = 12
# A safe id that ends like one of ours is treated as unsafe, so that no id can be made up to
# take another one's file.
_OURS = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}")


def file_name(item_id: str) -> str:
    """A file name without its suffix: the id itself where that is one, else what can be kept of
    it and a digest. Different ids have different names, and none leads to another folder."""
    safe = item_id.isprintable() and not re.search(r"[/\\]", item_id) and item_id[:1] not in ".~-"
    if safe and 0 < len(item_id.encode()) <= LONGEST_BYTES and not _OURS.search(item_id[-13:]):
        return item_id
    kept = re.sub(r"[^A-Za-z0-9_-]+", "_", item_id).strip("_-")[:40]
    digest = sha256(item_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{kept or 'item'}-{digest}"
