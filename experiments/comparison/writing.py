"""A report as files: one HTML page that needs nothing else, and each exhibit as CSV, LaTeX,
Markdown and SVG.

Every text is escaped for where it goes: names of models, reasons and answers come from outside.
The page runs no script and asks for nothing, and its own policy forbids both.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Sequence
from pathlib import Path

from experiments.comparison.document import Cell, Exhibit, Layout, Section

TEMPLATE = "report.html"
FIGURES, TABLES, PAGE = "figures", "tables", "report.html"


def write_report(
    sections: Sequence[Section], title: str, lines: Sequence[str], folder: Path
) -> Path:
    """Fill a folder with the report, replacing one that was there; gives the page's path.

    Args:
        lines: under the title: what was compared, and what a reader must know first.
    """
    for name in (FIGURES, TABLES):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    for section in sections:
        for exhibit in section.exhibits:
            _write_files(exhibit, folder)
    page = folder / PAGE
    page.write_text(html(sections, title, lines), encoding="utf-8")
    return page


def _write_files(exhibit: Exhibit, folder: Path) -> None:
    place = folder / (FIGURES if exhibit.svg else TABLES)
    exhibit.numbers.to_csv(place / f"{exhibit.name}.csv", index=False)
    if exhibit.svg:
        (place / f"{exhibit.name}.svg").write_text(exhibit.svg, encoding="utf-8")
    if exhibit.layout:
        (place / f"{exhibit.name}.md").write_text(markdown(exhibit), encoding="utf-8")
        (place / f"{exhibit.name}.tex").write_text(latex(exhibit), encoding="utf-8")


def html(sections: Sequence[Section], title: str, lines: Sequence[str]) -> str:
    """The page, figures and their numbers inside."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    return environment.get_template(TEMPLATE).render(
        title=title, lines=lines, sections=[s for s in sections if s.exhibits or s.notes]
    )


def _data_uri(exhibit: Exhibit, kind: str) -> str:
    content = exhibit.svg if kind == "image/svg+xml" else exhibit.numbers.to_csv(index=False)
    return f"data:{kind};base64,{base64.b64encode(content.encode()).decode()}"


def markdown(exhibit: Exhibit) -> str:
    """A table with its title and caption; two lines of heads become one."""
    assert exhibit.layout
    heads = _one_line(exhibit.layout)
    lines = [f"**{exhibit.title}**", "", "| " + " | ".join(map(_plain, heads)) + " |"]
    lines.append("|" + " --- |" * len(heads))
    lines += ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in exhibit.layout.rows]
    return "\n".join([*lines, "", exhibit.caption, ""])


def _one_line(layout: Layout) -> list[str]:
    upper = [head.text for head in layout.heads[0] for _ in range(head.span)]
    if len(layout.heads) == 1:
        return upper
    lower = [head.text for head in layout.heads[1] for _ in range(head.span)]
    return [" ".join(filter(None, pair)) for pair in zip(upper, lower, strict=True)]


def _plain(text: str) -> str:
    # Backslash first, or the others' would be doubled; <, as Markdown passes tags through.
    for sign in "\\|*_`<[":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _markdown_cell(cell: Cell) -> str:
    text = _plain(cell.text)
    if cell.underline and text:
        text = f"<u>{text}</u>"
    if cell.bold and text:
        text = f"**{text}**"
    return text + _plain(cell.mark)


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "ρ": r"$\rho$",
    "χ": r"$\chi$",
    "²": r"\textsuperscript{2}",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "\N{NO-BREAK SPACE}": "~",
    "“": "``",
    "”": "''",
    "·": r"\textperiodcentered{}",
}


def latex(exhibit: Exhibit) -> str:
    """A table environment for a document that loads booktabs, and for many rows graphicx."""
    assert exhibit.layout
    layout = exhibit.layout
    width = sum(head.span for head in layout.heads[0])
    columns = "l" * layout.words + "r" * (width - layout.words)
    lines = [
        r"\begin{table}[ht]",
        r"\centering\small",
        rf"\caption{{\textbf{{{_tex(exhibit.title)}.}} {_tex(exhibit.caption)}}}",
        rf"\label{{tab:{exhibit.name.replace('_', '-')}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    for number, heads in enumerate(layout.heads):
        lines.append(" & ".join(map(_tex_head, ((h.text, h.span) for h in heads))) + r" \\")
        if number == 0 and len(layout.heads) > 1:
            lines.append(_rules(layout))
    lines.append(r"\midrule")
    lines += [" & ".join(map(_tex_cell, row)) + r" \\" for row in layout.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _rules(layout: Layout) -> str:
    rules, column = [], 1
    for head in layout.heads[0]:
        if head.span > 1 and head.text:
            rules.append(rf"\cmidrule(lr){{{column}-{column + head.span - 1}}}")
        column += head.span
    return "".join(rules)


def _tex(text: str) -> str:
    escaped = "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split(" ")))
    return " ".join(escaped.split("\n"))


def _tex_head(head: tuple[str, int]) -> str:
    text, span = head
    return _tex(text) if span == 1 else rf"\multicolumn{{{span}}}{{c}}{{{_tex(text)}}}"


def _tex_cell(cell: Cell) -> str:
    text = _tex(cell.text)
    if cell.underline and text:
        text = rf"\underline{{{text}}}"
    if cell.bold and text:
        text = rf"\textbf{{{text}}}"
    return text + (rf"\textsuperscript{{{_tex(cell.mark)}}}" if cell.mark else "")
