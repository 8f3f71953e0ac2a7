"""No page that a run or a report leaves runs what a transcript or a name holds, in a browser."""

import subprocess
import sys

import pytest

from tests.experiments.chromium import needs_chromium, screenshots
from tests.hostile.hostile_run import planted

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def pages(run):
    """Every HTML file of the run and of a report on it."""
    environment = planted(MLFLOW_TRACKING_URI=f"sqlite:///{run}/mlflow.db")
    command = [sys.executable, "-m", "experiments.compare", "--resamples", "20", "--output", "out"]
    ended = subprocess.run(command, cwd=run, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return sorted(run.rglob("*.html"))


def test_no_page_runs_what_it_shows(pages):
    assert {path.name for path in pages} >= {"report.html", "1_forest.html", "worst.html"}
    with screenshots().browser() as chromium:
        for path in pages:
            chromium.get(path.as_uri())
            asked = "return [document.readyState, !!window.ran, document.body.innerText.length]"
            ready, ran, length = chromium.execute_script(asked)
            handled = chromium.execute_script("return document.querySelectorAll('[onload]').length")

            assert (ready, ran, handled) == ("complete", False, 0), path
            assert length > 0


def test_what_is_shown_is_there_as_words(pages):
    text = "".join(path.read_text() for path in pages)

    assert "<svg onload" not in text
    assert "svg onload" in text
