"""Rules that hold in every module: how others' bytes become objects, and what none may call."""

import ast
import subprocess
from functools import cache

from experiments.settings import ROOT

FOLDERS = ("core", "containers", "experiments", "validation")
# Files that come along, or that the same command has just written or read through a reader.
OWN = {
    "containers/runtime/answers.py",
    "containers/runtime/card.py",
    "containers/salmonn/speech.py",
    "containers/ultravox/adapter.py",
    "experiments/comparison/reading.py",
    "experiments/export_inspect.py",
    "experiments/listening.py",
    "experiments/runners/_node.py",
    "experiments/runners/_shard.py",
    "experiments/runners/_store.py",
    "experiments/speakers.py",
    "experiments/tracking.py",
    "core/published/__init__.py",
    "core/speech/kokoro.py",
    "core/speech/voices/__init__.py",
    "core/ssr.py",
    "containers/baseline/adapter.py",
    "experiments/smoke.py",
}
LISTED = subprocess.check_output(["git", "ls-files", "*.py"], cwd=ROOT, text=True).split()
MODULES = [name for name in LISTED if name.startswith(FOLDERS)]
# Rules over no files would all hold.
assert MODULES


@cache
def calls(tree):
    """(call, its dotted name, the try blocks around it) of a module."""

    def walk(node, around):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func), around
        for child in ast.iter_child_nodes(node):
            inside = isinstance(node, ast.Try) and child in node.body
            yield from walk(child, (*around, node) if inside else around)

    return list(walk(tree, ()))


@cache
def parsed():
    return [(name, ast.parse((ROOT / name).read_text(encoding="utf-8"))) for name in MODULES]


def test_brackets_without_end_are_expected_wherever_json_or_toml_is_read():
    bare = [
        f"{name}:{call.lineno}"
        for name, tree in parsed()
        if name not in OWN
        for call, function, around in calls(tree)
        if function in ("json.load", "json.loads", "tomllib.load", "tomllib.loads", "toml.load")
        if not any("RecursionError" in ast.unparse(h) for t in around for h in t.handlers)
    ]

    assert bare == []


# Reads back what it wrote itself, into a file without a name.
PICKLES = "experiments/planned_file.py"


def test_nothing_that_runs_what_it_reads_is_called():
    running = ("pickle", "marshal", "shelve", "yaml", "dill", "joblib", "cloudpickle", "jsonpickle")
    plain = ("eval", "exec", "compile", "__import__", "os.system", "numpy.load", "np.load")
    found = [
        f"{name}:{call.lineno} {function}"
        for name, tree in parsed()
        for call, function, _ in calls(tree)
        if function != "yaml.safe_load"
        if name != PICKLES
        if function in plain
        or (function.split(".")[0] in running and function.count("."))
        or any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in call.keywords)
    ]

    assert found == []


def test_weights_are_read_as_tensors_alone():
    loads = [
        ({key.arg: ast.unparse(key.value) for key in call.keywords}, f"{name}:{call.lineno}")
        for name, tree in parsed()
        for call, function, _ in calls(tree)
        if function == "torch.load"
    ]

    assert loads
    assert [where for words, where in loads if words.get("weights_only") != "True"] == []


def test_no_code_of_a_hub_is_run_outside_the_images_made_for_it():
    trusting = {
        name
        for name, tree in parsed()
        for call, _, _ in calls(tree)
        for key in call.keywords
        if key.arg == "trust_remote_code" and ast.unparse(key.value) == "True"
    }

    assert trusting
    assert all(name.startswith("containers/") for name in trusting)


def test_every_http_call_has_a_time_limit():
    asking = {f"requests.{verb}" for verb in ("get", "post", "put", "head", "request")}
    endless = [
        f"{name}:{call.lineno}"
        for name, tree in parsed()
        for call, function, _ in calls(tree)
        if (function in asking or function.rpartition(".")[2] == "urlopen")
        and not any(key.arg == "timeout" for key in call.keywords)
    ]

    assert endless == []
