import json
import math
import re

import pytest

from core.metrics.estimate import Estimate
from experiments.interactive import save_confusion_page, save_forest_page
from experiments.worst import save_worst
from tests.experiments.chromium import complaints, needs_chromium, screenshots
from tests.experiments.kept_runs import answers, turns

SCRIPT = "</script><script>document.title='caught'</script><img src=x onerror=alert(1)>'\""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The three pages of a run whose every word is hostile."""
    folder = tmp_path_factory.mktemp("pages")
    dataset = turns(folder / "data", {f"a/{SCRIPT}": SCRIPT, "b": "x" * 100_000}, SCRIPT)
    predictions = answers(dataset, "AO", 1, text=SCRIPT)
    estimates = [
        Estimate("mae", "AO", 1.0, 0.5, 1.5, 2, 3),
        Estimate("mae", "TO", math.nan, math.nan, math.nan, 0, 3, SCRIPT),
        Estimate("mae", "AO-TO", -0.1, -0.4, 0.2, 2, 3),
        Estimate("wilcoxon_p", "AO-TO", 0.03, math.nan, math.nan, 2, 3),
    ]
    about = {"folder": dataset.folder, "licence": SCRIPT}
    save_worst(predictions, dataset.items, SCRIPT, folder / "worst.html", **about)
    save_confusion_page(predictions, SCRIPT, folder / "confusion.html")
    save_forest_page(estimates, ("AO", "TO"), SCRIPT, folder / "forest.html")
    return folder


def test_the_page_has_the_counts_of_the_figure(pages):
    content = (pages / "confusion.html").read_text(encoding="utf-8")
    (held,) = re.findall(r'id="cells">(.*?)</script>', content)
    filled = [(c["gold"], c["said"], c["count"]) for c in json.loads(held) if c["count"]]

    # Labels 1 and 2, each answered with one more.
    assert filled == [("1", "2", 1), ("2", "3", 1)]


def test_a_figure_in_words_has_its_denominator_and_p_values_are_left_out(pages):
    content = (pages / "forest.html").read_text(encoding="utf-8")

    assert "mae, AO: 1.000 [0.500, 1.500], 2 of 3 items" in content
    assert "undefined (&lt;/script&gt;" in content
    assert "wilcoxon" not in content


def test_pages_load_nothing_from_anywhere(pages):
    for path in pages.glob("*.html"):
        assert not re.search(r"(src|href)=\"?(https?:)?//", path.read_text(encoding="utf-8"))


@pytest.mark.slow
@needs_chromium
def test_hostile_words_are_text_in_a_sandboxed_frame_as_mlflow_shows_it(pages):
    with screenshots().browser() as chromium:
        for name in ("worst", "confusion", "forest"):
            chromium.get("about:blank")
            chromium.execute_script(
                "const f = document.createElement('iframe'); f.sandbox = 'allow-scripts';"
                "f.src = URL.createObjectURL(new Blob([arguments[0]], {type: 'text/html'}));"
                "document.body.append(f)",
                (pages / f"{name}.html").read_text(encoding="utf-8"),
            )
            chromium.switch_to.frame(0)
            shown = chromium.execute_script("return document.body.textContent")

            assert chromium.execute_script("return document.querySelectorAll('img').length") == 0
            assert chromium.execute_script("return document.title") != "caught"
            assert SCRIPT in shown
            if name == "worst":
                seconds = chromium.execute_async_script(
                    "const a = document.querySelector('audio'), done = arguments[0];"
                    "a.onloadedmetadata = () => done(a.duration); a.load()"
                )
                assert seconds == pytest.approx(1.0)
            if name == "confusion":
                chromium.find_elements("css selector", ".cell")[1].click()
                listed = chromium.execute_script(
                    "return document.getElementById('ids').textContent"
                )
                assert listed == f"a/{SCRIPT}"
            assert complaints(chromium) == []
