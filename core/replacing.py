"""Files that are whole or not there: written beside their name, synced, then renamed.

Every file that is final goes this way, whatever writes it: a reader, or a run that goes on
after a kill or a power cut, finds the old content or the new one and never half of either.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Hidden, so that no listing of clips or tables takes one for a file of its own.
_PART = ".{}.part"
# What file systems say that cannot sync a folder; their renames are as safe as they get.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file when the block ends; nothing does if it raises.

    Each writer has a name of its own to write to, so two that write one file at once leave
    one of the two contents.

    Args:
        path: in a folder that exists.
        durable: on the disk before the name is; False for what a reader can check by itself.

    Raises:
        OSError: the disk is full, or the folder is gone or read-only.
    """
    part = path.with_name(_PART.format(secrets.token_hex(8)))
    try:
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def replace_text(path: Path, text: str) -> None:
    """Make a file hold this text, as UTF-8 and with its line ends as they are."""
    with replacing(path) as stream:
        stream.write(text.encode())


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk: a rename alone may be lost with the power."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(number)


def sweep(folder: Path, *, older_than_s: float = 0.0) -> int:
    """Remove what killed writers left in a folder; gives how many files that was.

    Args:
        older_than_s: spares younger ones, where another process may be writing.
    """
    newest, removed = time.time() - older_than_s, 0
    for part in folder.glob(_PART.format("*")):
        with suppress(OSError):
            if part.stat().st_mtime <= newest:
                part.unlink()
                removed += 1
    return removed
