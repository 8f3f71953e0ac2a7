import os

import pytest

from experiments.credentials import holds_credentials, shown, take_login_out_of_the_store


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://user:secret@host:5000/x", "http://***@host:5000/x"),
        ("postgresql+psycopg2://me:p%40ss@db/mlflow", "postgresql+psycopg2://***@db/mlflow"),
        ("https://secret@host/v1", "https://***@host/v1"),
        ("http://user:se:c@ret@host/v1", "http://***@host/v1"),
        ("http://host/v1?api_key=secret&x=1", "http://host/v1?api_key=***&x=1"),
        ("http://host/v1?X-Amz-Signature=secret", "http://host/v1?X-Amz-Signature=***"),
        ("see http://a:secret@b, then c", "see http://***@b, then c"),
    ],
)
def test_a_login_and_a_key_in_an_address_are_not_shown(address, said):
    assert holds_credentials(address)
    assert shown(address) == said


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8000/v1",
        "sqlite:////tmp/mlflow.db",
        "/data/local-files/?d=audio/",
        "me@example.org",
        "AO,AT",
        "https://youtu.be/watch?v=abc&t=3",
    ],
)
def test_other_words_are_left_alone(text):
    assert not holds_credentials(text)
    assert shown(text) == text


def test_mlflow_gets_the_login_of_its_address_by_its_own_variables(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:p%40ss%3A@host:5000/prefix")
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        # Set first, so that what the function sets is taken back.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    take_login_out_of_the_store()

    assert os.environ["MLFLOW_TRACKING_URI"] == "http://host:5000/prefix"
    assert os.environ["MLFLOW_TRACKING_USERNAME"] == "me"
    assert os.environ["MLFLOW_TRACKING_PASSWORD"] == "p@ss:"


@pytest.mark.parametrize("uri", ["http://host:5000", "postgresql://me:secret@db/x", ""])
def test_other_stores_keep_their_address(monkeypatch, uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    take_login_out_of_the_store()

    assert os.environ["MLFLOW_TRACKING_URI"] == uri
