import re
from xml.etree import ElementTree

import pandas as pd
import pytest

from experiments.comparison import drawing, mosaics, plots
from experiments.comparison.document import (
    Cell,
    Exhibit,
    Head,
    Layout,
    Section,
    best,
    interval,
    p_value,
    percent,
)
from experiments.comparison.writing import html, latex, markdown, write_report

HOSTILE = '<script>alert(1)</script> $\\frac$ & "quoted" | {x}_100% \'a'
LAYOUT = Layout(
    ((Head(""), Head("MAE ↓", 2)), (Head("Model"), Head("AO"), Head("AT"))),
    ((Cell(HOSTILE, mark="*"), Cell("0.90"), Cell("0.72", bold=True, underline=True)),),
)
NUMBERS = pd.DataFrame({"model": [HOSTILE], "mae": [0.72]})
TABLE = Exhibit("table_2", f"Table of {HOSTILE}", HOSTILE, NUMBERS, layout=LAYOUT)


def dots_of(name):
    frame = pd.DataFrame(
        {"row": [name], "panel": name, "series": name, "value": 1.0, "low": 0.5, "high": 2.0}
    )
    return drawing.dots(frame.assign(panel="MAE"), "levels")


def test_no_text_from_outside_becomes_a_tag():
    drawn = Exhibit("dots", HOSTILE, HOSTILE, NUMBERS, svg=dots_of(HOSTILE))
    page = html([Section("a", HOSTILE, (HOSTILE,), [TABLE, drawn], [HOSTILE])], HOSTILE, [HOSTILE])

    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 5


def test_the_page_asks_for_nothing_outside_and_forbids_it():
    page = html([Section("a", "A", exhibits=[TABLE])], "Report", ["one line"])

    assert "default-src 'none'" in page
    outside = re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import|https?://', page)
    assert outside == []


def test_latex_keeps_marks_and_escapes_the_rest():
    said = latex(TABLE)

    assert r"\underline{0.72}" in said
    assert r"\multicolumn{2}{c}{MAE $\downarrow$}" in said
    assert r"\cmidrule(lr){2-3}" in said
    row = next(line for line in said.splitlines() if "0.90" in line)
    assert r"\textless{}script\textgreater{}" in row
    assert r"\$\textbackslash{}frac\$ \&" in row
    assert row.count(" & ") == 2
    assert row.endswith(r"\\")


def test_markdown_is_one_row_a_line_whatever_a_name_holds():
    said = markdown(Exhibit("t", "T", "", NUMBERS, layout=LAYOUT))

    lines = [line for line in said.splitlines() if line.startswith("|")]
    assert len(lines) == 3
    assert lines[0] == "|  Model | MAE ↓ AO | MAE ↓ AT |".replace("|  M", "| M")
    assert "\\<script>" in lines[2]
    assert lines[2].endswith("**<u>0.72</u>** |")


def test_every_exhibit_has_its_numbers_as_csv_beside_it(tmp_path):
    drawn = Exhibit("dots", "Dots", "", NUMBERS, svg=dots_of("gemma4"))
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "of an earlier report.svg").write_text("")

    page = write_report([Section("a", "A", exhibits=[TABLE, drawn])], "T", ["line"], tmp_path)

    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    assert names == [
        *("figures/dots.csv", "figures/dots.svg", "report.html"),
        *("tables/table_2.csv", "tables/table_2.md", "tables/table_2.tex"),
    ]
    assert page.read_text().count("data:text/csv;base64,") == 2
    assert pd.read_csv(tmp_path / "tables" / "table_2.csv")["model"][0] == HOSTILE


@pytest.mark.parametrize("name", [HOSTILE, "$x_", "a\nb", "😀 модель", "x" * 300, ""])
def test_a_figure_is_xml_whatever_a_model_is_called(name):
    confusion = pd.DataFrame(
        {
            "model": name,
            "condition": "AO",
            "gold": ["YES", "YES", "NO", "NO"],
            "predicted": ["YES", "NO", "YES", "NO"],
            "count": [3, 1, 0, 0],
            "share": [0.75, 0.25, float("nan"), float("nan")],
        }
    )
    bins = pd.DataFrame({"model": [name], "condition": "AO", "confidence": 0.6, "observed": 0.5})
    point = pd.DataFrame({"row": [name, name], "series": ["AO", "AT"], "x": [1, 20], "y": [0, 1]})
    shares = pd.DataFrame({"row": [name], "panel": "AO", "part": "refused", "share": 0.1})
    for drawn in (
        dots_of(name),
        mosaics.confusions(confusion, ("YES", "NO")),
        mosaics.reliability_diagrams(bins, "confidence", "observed"),
        plots.plane(point, "x", "y", log_x=True),
        plots.stacked(shares, ["refused"], "share", ["#E69F00"], ["//"]),
    ):
        root = ElementTree.fromstring(drawn)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_equal_figures_are_equal_files():
    assert dots_of("gemma4") == dots_of("gemma4")


def test_the_best_is_marked_by_the_printed_decimals_and_ties_share_it():
    assert best([0.7204, 0.7201, 0.9], smaller=True) == {0, 1}
    assert best([float("nan"), 0.2], smaller=False) == {1}
    assert best([float("nan")], smaller=True) == set()


def test_figures_never_claim_more_than_they_are():
    assert p_value(0.0) == "<0.001"
    assert percent(1801 / 1802) == "99.9 %"
    assert percent(99_999 / 100_000) == ">99.9 %"
    assert interval(0.5, float("nan"), float("nan")) == "0.50"
    assert interval(float("nan"), 0, 1) == "–"
