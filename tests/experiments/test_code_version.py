"""Of which commit the code is, and that no edit of it escapes."""

import subprocess

import pytest

from experiments import code_version
from experiments.code_version import code_digest, git_commit


def git(folder, *words):
    name = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    command = ["git", "-C", str(folder), *name, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository that stands for ours."""
    root = tmp_path / "clone"
    for part in ("core", "validation", "experiments", "containers"):
        (root / part).mkdir(parents=True)
        (root / part / "a.py").write_text("A = 1\n")
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    monkeypatch.setattr(code_version, "ROOT", root)
    return root


def test_the_commit_and_whether_files_differ_from_it(clone):
    assert git_commit() == git(clone, "rev-parse", "HEAD")

    (clone / "core" / "a.py").write_text("A = 2\n")
    assert git_commit() == git(clone, "rev-parse", "HEAD") + "+changes"


def test_another_repository_is_not_taken_for_ours(clone, monkeypatch):
    inside = clone / "vendored" / "undertone"
    inside.mkdir(parents=True)
    ours = git_commit()
    monkeypatch.setenv("GIT_DIR", str(inside / "nothing"))
    assert git_commit() == ours

    monkeypatch.setattr(code_version, "ROOT", inside)
    assert git_commit() == ""


@pytest.mark.parametrize("name", ["core/a.py", "core/tasks/mine.py", "containers/mine/model.toml"])
def test_an_edit_in_a_commit_or_in_none_is_another_code(clone, name):
    before = code_digest()
    path = clone / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("A = 3\n")

    assert code_digest() != before
    if name == "core/a.py":
        git(clone, "update-index", "--skip-worktree", name)
        assert "+changes" not in git_commit()
        assert code_digest() != before


def test_what_python_compiled_is_no_edit(clone):
    before = code_digest()
    (clone / "core" / "__pycache__").mkdir()
    (clone / "core" / "__pycache__" / "a.pyc").write_bytes(b"x")

    assert code_digest() == before
