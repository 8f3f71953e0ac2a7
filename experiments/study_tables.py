"""The study's own tables as files: CSV for a program, Markdown for a reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.replacing import replace_text
from experiments.table import frame_grid, markdown

if TYPE_CHECKING:
    from core.tasks import Table


def write_tables(tables: Sequence[Table], folder: Path) -> None:
    """Make the folder hold these tables and no others: `<name>.csv` and `<name>.md` of each."""
    texts = {
        name: text
        for table in tables
        for name, text in (
            (f"{table.name}.csv", table.frame.to_csv(index=False)),
            (f"{table.name}.md", f"{table.title}\n\n{markdown(frame_grid(table.frame))}\n"),
        )
    }
    if texts:
        folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        replace_text(folder / name, text)
    # After the new ones are there: a run ended in between leaves no table missing.
    for path in folder.glob("*"):
        if path.is_file() and path.name not in texts:
            path.unlink()
