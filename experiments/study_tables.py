"""The study's own tables as files: CSV for a program, Markdown for a reader."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.table import frame_grid, markdown

if TYPE_CHECKING:
    from core.tasks import Table


def write_tables(tables: Sequence[Table], folder: Path) -> None:
    """Make the folder hold these tables and no others: `<name>.csv` and `<name>.md` of each."""
    shutil.rmtree(folder, ignore_errors=True)
    if tables:
        folder.mkdir()
    for table in tables:
        table.frame.to_csv(folder / f"{table.name}.csv", index=False)
        said = f"{table.title}\n\n{markdown(frame_grid(table.frame))}\n"
        (folder / f"{table.name}.md").write_text(said, encoding="utf-8")
