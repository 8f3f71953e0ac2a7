"""Whether a run's files stay on this machine: what may not be handed on must not be sent away."""

from __future__ import annotations

from urllib.parse import urlsplit

from experiments.offline import is_this_machine

# The one artifact of a run that holds voices.
WITH_SOUND = "worst.html"
_OF_A_HOST = ("http", "https", "mlflow-artifacts", "postgresql", "mysql", "mssql", "file", "")


def stays_here(tracking_uri: str, artifact_uri: str) -> bool:
    """Whether artifacts written there are files of this machine.

    Args:
        tracking_uri: of the store, e.g. sqlite:///mlflow.db or http://host:5000.
        artifact_uri: of the run, e.g. /path/artifacts, mlflow-artifacts:/1/..., s3://bucket.
    """
    through_the_server = artifact_uri.startswith("mlflow-artifacts:")
    if through_the_server and not urlsplit(artifact_uri).hostname:
        return is_here(tracking_uri)
    return is_here(artifact_uri)


def is_here(address: str) -> bool:
    """Whether a store or a place of artifacts is on this machine; a bucket never is."""
    if address == "databricks":
        return False
    parts = urlsplit(address)
    # A dialect may name its driver: postgresql+psycopg2.
    scheme = parts.scheme.partition("+")[0]
    if scheme == "sqlite":
        return True
    return scheme in _OF_A_HOST and is_this_machine(parts.hostname or "")
