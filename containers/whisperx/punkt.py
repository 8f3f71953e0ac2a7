"""NLTK's English sentence cutter, fetched once while the image is built: `punkt.py URL FOLDER`."""

from __future__ import annotations

import sys
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

SHA256 = "e57f64187974277726a3417ca6f181ec5403676c717672eef6a748a7b20e0106"
PREFIX = "punkt_tab/english/"


def unpack(content: bytes, folder: Path, expected: str = SHA256) -> int:
    """Write the English tables under folder/tokenizers; returns how many.

    Raises:
        ValueError: the content is not the expected one.
    """
    if (found := sha256(content).hexdigest()) != expected:
        raise ValueError(f"punkt_tab.zip: expected sha256 {expected}, found {found}.")
    count = 0
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for name in archive.namelist():
            if name.startswith(PREFIX) and not name.endswith("/") and ".." not in name:
                target = folder / "tokenizers" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
                count += 1
    return count


if __name__ == "__main__":
    with urlopen(sys.argv[1], timeout=120) as reply:
        unpack(reply.read(), Path(sys.argv[2]))
