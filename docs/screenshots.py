"""Pictures of the MLflow UI for the documentation, taken in headless Chromium.

    python docs/screenshots.py            evaluates both models that come along, then takes them
    python docs/screenshots.py sqlite:///mlflow.db outputs    takes them of runs that are there

Writes docs/screenshots/*.png. Needs chromium and chromedriver, and the test extra.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from experiments import view

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "screenshots"
EXPERIMENT = "distress/demo-distress"
RUN = "baseline"
# The page of `browse`: a turn, and a dialogue with the quotes of those who found manipulation.
BROWSED = (
    ("browse", "distress", "&order=error"),
    ("browse_manipulation", "manipulation", "&item=demo_02"),
)
WIDTH, HEIGHT = 1500, 950
# The UI draws its charts a while after it has loaded them.
SETTLE_S = 4.0
# No window, and nothing asked of any other machine.
QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


def main() -> None:
    """Take every picture."""
    FOLDER.mkdir(exist_ok=True)
    if len(sys.argv) == 3:
        take(sys.argv[1], Path(sys.argv[2]))
        return
    with TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/mlflow.db"
        evaluate_all(Path(folder), store)
        take(store, Path(folder) / "outputs")


def evaluate_all(folder: Path, store: str) -> None:
    """Both models that come along on both tasks."""
    environment = os.environ | {"MLFLOW_TRACKING_URI": store, "PYTHONPATH": str(ROOT)}
    for task in ("distress", "manipulation"):
        for model in ("null", "baseline"):
            words = ["--model", model, "--task", task]
            command = [sys.executable, "-m", "experiments.evaluate", *words]
            subprocess.run(command, cwd=folder, env=environment, check=True)


def take(store: str, output: Path) -> None:
    """Open each page of the UI, and the page of `browse`, and save what it shows."""
    with browser() as chromium:
        with browse(output) as address:
            for name, task, words in BROWSED:
                chromium.get(f"{address}&set={task}-{demo_hash(task)[:8]}{words}")
                wait_for_text(chromium, "What the models said")
                save(chromium, name)
        with server(store) as address:
            for name, page, clicks in pages(store):
                # Pages differ only after the #: without another between, nothing is loaded anew.
                chromium.get("about:blank")
                chromium.get(f"{address}/{page}")
                time.sleep(SETTLE_S)
                close_assistant(chromium)
                for text in clicks:
                    click(chromium, text)
                save(chromium, name)


def demo_hash(task: str) -> str:
    """Of the demo set that comes along."""
    about = json.loads((ROOT / "demo" / task / "dataset.json").read_bytes())
    return str(about["hash"])


def save(chromium: Any, name: str) -> None:
    """What the browser shows, as docs/screenshots/<name>.png."""
    time.sleep(SETTLE_S)
    chromium.save_screenshot(str(FOLDER / f"{name}.png"))
    print(FOLDER / f"{name}.png")


@contextmanager
def browse(output: Path) -> Iterator[str]:
    """The page of `browse` on a free port; gives its address with its key, to which words add."""
    command = [sys.executable, "-m", "experiments.browse", "--port", "0", "--output", str(output)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        said = iter(process.stdout.readline, "") if process.stdout else iter(())
        yield next(line.split()[1] for line in said if line.startswith("listen: "))
    finally:
        process.terminate()
        process.wait(60)


def pages(store: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Name of each picture, its address, and the words to click on, in order."""
    import mlflow

    client = mlflow.MlflowClient(store)
    (experiment,) = (e.experiment_id for e in client.search_experiments() if e.name == EXPERIMENT)
    (run, *_) = client.search_runs([experiment], f"tags.model = '{RUN}'")
    both = [run.info.run_id for run in client.search_runs([experiment], max_results=2)]
    mode = "workflowType=machine_learning"
    of_both = {"runs": json.dumps(both), "experiments": json.dumps([experiment])}
    compared = f"#/compare-runs?{urlencode(of_both)}&{mode}"
    runs = f"#/experiments/{experiment}/runs"
    of_run = f"{runs}/{run.info.run_id}"
    return [
        ("runs", f"{runs}?{view.ADDRESS}", ()),
        ("charts", f"{runs}?{view.ADDRESS}&compareRunsMode=CHART", ()),
        ("evaluation", f"{runs}?{view.ADDRESS}&compareRunsMode=ARTIFACT", ()),
        ("compare", compared, ()),
        ("run", f"{of_run}?{mode}", ()),
        ("metrics", f"{of_run}/model-metrics?{mode}", ()),
        ("forest", f"{of_run}/artifacts?{mode}", ("figures", "1_forest.png")),
        ("confusion", f"{of_run}/artifacts?{mode}", ("figures", "2_confusion.png")),
        ("figure", f"{of_run}/artifacts?{mode}", ("figures", "1_forest.html")),
        ("worst", f"{of_run}/artifacts?{mode}", ("worst.html",)),
        ("items", f"{of_run}/artifacts?{mode}", ("items", "AT.json")),
        ("prompt", f"{of_run}/artifacts?{mode}", ("prompts", "distress", "at.txt")),
    ]


@contextmanager
def server(store: str) -> Iterator[str]:
    """The MLflow UI on a free port; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["server", "--backend-store-uri", store, "--port", str(port), "--workers", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mlflow", *words],
        env=os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(address)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def wait_for(address: str) -> None:
    """Return when the server answers. Raises TimeoutError after ten minutes."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            with urlopen(f"{address}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    raise TimeoutError(f"{address}: no MLflow server after ten minutes.")


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window; a profile of its own, so that nothing is remembered."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    with TemporaryDirectory(prefix="undertone-chromium-") as profile:
        for argument in (*QUIET, f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        try:
            yield driver
        finally:
            driver.quit()


def close_assistant(chromium: Any) -> None:
    """Close the panel for chatting that the UI opens by itself."""
    from selenium.webdriver.common.by import By

    for button in chromium.find_elements(
        By.XPATH, "//button[@data-component-id='mlflow.assistant.chat_panel.close']"
    ):
        button.click()
        time.sleep(1)


def click(chromium: Any, text: str) -> None:
    """Click on the element that says exactly this."""
    wait_for_text(chromium, text).click()
    time.sleep(SETTLE_S / 2)


def wait_for_text(chromium: Any, text: str) -> Any:
    """The last element that says exactly this, once there is one."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    path = f"//*[normalize-space(text())='{text}']"
    found = WebDriverWait(chromium, 30).until(lambda c: c.find_elements(By.XPATH, path))
    return found[-1]


if __name__ == "__main__":
    main()
