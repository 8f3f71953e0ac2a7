"""Voices and words go to a store only where that is this machine."""

import pytest

from experiments.store_place import is_here, stays_here


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("sqlite:////tmp/mlflow.db", True),
        ("sqlite+pysqlcipher:///x.db", True),
        ("/data/mlruns", True),
        ("file:///data/mlruns", True),
        ("file://nas.example/mlruns", False),
        ("http://127.0.0.1:5000", True),
        ("http://127.0.0.2:5000", True),
        ("http://[::1]:5000", True),
        ("https://mlflow.example.org", False),
        ("postgresql://user:key@localhost/mlflow", True),
        ("postgresql+psycopg2://user:key@db.example.org/mlflow", False),
        ("s3://bucket/artifacts", False),
        ("s3://localhost/artifacts", False),
        ("databricks", False),
        ("databricks://profile", False),
    ],
)
def test_where_a_store_is(address, here):
    assert is_here(address) is here


@pytest.mark.parametrize(
    ("store", "artifacts", "here"),
    [
        ("sqlite:///mlflow.db", "/home/a/mlruns/1/2/artifacts", True),
        ("sqlite:///mlflow.db", "file:///home/a/mlruns", True),
        ("sqlite:///mlflow.db", "s3://bucket/1/2", False),
        ("http://127.0.0.1:5000", "mlflow-artifacts:/1/2/artifacts", True),
        ("http://localhost:5000", "mlflow-artifacts:/1/2/artifacts", True),
        ("http://lab.example:5000", "mlflow-artifacts:/1/2/artifacts", False),
        ("http://localhost:5000", "mlflow-artifacts://lab.example/1/2", False),
    ],
)
def test_where_artifacts_stay(store, artifacts, here):
    assert stays_here(store, artifacts) is here
