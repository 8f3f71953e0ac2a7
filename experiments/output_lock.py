"""One process at a time in an output folder, and what is said where its disk is in the way."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.replacing import sweep
from experiments.processes import as_words, from_words, this_process

LOCK = ".lock"


class FolderInUseError(RuntimeError):
    """Another process writes the folder; the message names it."""


@contextmanager
def only_one(folder: Path, command: str) -> Iterator[None]:
    """Keep every other process that writes the folder out while this block runs.

    The lock is the kernel's, so it ends with the process, however that ends; the
    file stays, since removing it would let two processes lock two files. What a killed
    process left half written in the folder is swept away.

    Args:
        folder: made where it is not there.
        command: what is run, for the message.

    Raises:
        FolderInUseError: at once, where another process holds it.
        OSError: it cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # To append: opening must not empty what the holder wrote of itself.
    with (folder / LOCK).open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            raise FolderInUseError(
                f"Another process ({_holder(stream.read())}) is using {folder}; {command} would "
                "write into it too. Wait for it, end it, or give another output."
            ) from error
        stream.truncate(0)
        stream.write(as_words(this_process()))
        stream.flush()
        sweep(folder)
        yield


def _holder(said: str) -> str:
    process = from_words(said)
    return process.said() if process else "unknown"


def disk_sentence(error: OSError, output: Path) -> str:
    """A full disk, a folder that is gone or read-only: of which file, and what to do.

    Args:
        output: taken to be the place where the system names none.
    """
    # A write that fails does not say where; most that is written is output.
    about = error.filename or f"output {output}"
    return (
        f"{about}: {error.strerror or error}.{_advice(error, output)} What was done is kept: once "
        "this is put right, the same command goes on where it stopped."
    )


def _advice(error: OSError, output: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return " Make room there, or give an output on another disk."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return " Allow this user to write there, or give another output."
    if error.errno in (errno.ESTALE, errno.EIO, errno.ENOTCONN, errno.ENODEV):
        return " The disk it is on does not answer: is it still mounted?"
    if error.errno == errno.ENOENT and not output.exists():
        return f" {output} is gone: was it moved, or its disk unmounted?"
    return ""
