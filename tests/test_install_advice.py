from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "containers", "core", "docs", "experiments", "tests", "validation")


def test_no_message_names_a_package_that_no_registry_has():
    # In two parts, or this file would be found as well.
    wrong = "pip install '" + "undertone"
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]

    assert len(files) > 100
    assert not [str(path) for path in files if wrong in path.read_text(encoding="utf-8")]
