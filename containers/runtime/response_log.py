"""Answers as they come, kept so that a kill at any moment costs no whole one, and read back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from core.protocol import FINAL, ProtocolError, Response, response_line, response_of

_BLOCK = 1 << 16


class ResponseLog:
    """An open response file: each append is on the disk before it returns.

    Opening repairs the one damage a kill can leave, a last line without its end,
    by cutting it off; `repaired` says how many bytes went.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.repaired = _cut_unfinished_line(path)
        is_new = not path.exists()
        self._stream = path.open("ab")
        if is_new:
            _sync_folder(path.parent)

    def append(self, responses: Sequence[Response]) -> None:
        """Write a batch of answers with one fsync."""
        lines = "".join(map(response_line, responses))
        self._stream.write(lines.encode())
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> ResponseLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sync_folder(folder: Path) -> None:
    # Without it a new file's answers may be on the disk and its name not. A file system that
    # cannot do it says so, and is as safe as it gets.
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _cut_unfinished_line(path: Path) -> int:
    if not path.exists() or path.stat().st_size == 0:
        return 0
    with path.open("rb+") as stream:
        end = size = stream.seek(0, os.SEEK_END)
        # From the end on: the file may hold more than fits into memory.
        while end:
            start = max(0, end - _BLOCK)
            stream.seek(start)
            newline = stream.read(end - start).rfind(b"\n")
            end = start + newline + 1
            if newline >= 0:
                break
        stream.truncate(end)
        os.fsync(stream.fileno())
    return size - end


def read_responses(path: Path) -> dict[str, Response]:
    """Answers by id; a missing file holds none.

    The last line of an id wins, so an item tried again replaces its failure. A
    last line without its newline was cut by a crash and is left out.

    Raises:
        ProtocolError: naming file and line, for any other line that is not a
            response of this schema, or contradicts an answer before it.
    """
    if not path.exists():
        return {}
    answers: dict[str, Response] = {}
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            # An unfinished last line may hold anything, and is nobody's answer.
            if line.endswith(b"\n"):
                response = response_of(line, where := f"{path}, line {number}")
                assert_agrees(answers.get(response.id), response, where)
                answers[response.id] = response
    return answers


def assert_agrees(before: Response | None, now: Response, where: str) -> None:
    """Raise ProtocolError for a second answer under one id that is another one."""
    if before is None or before.status not in FINAL or now.status not in FINAL:
        return
    for name in ("status", "text", "choice_logprobs"):
        one, other = getattr(before, name), getattr(now, name)
        if one != other:
            raise ProtocolError(
                f"{where}: expected the {name} that {now.id} has in a line before, {one!r:.60}, "
                f"found {other!r:.60}. Take out the line that is wrong, or both to ask again."
            )
