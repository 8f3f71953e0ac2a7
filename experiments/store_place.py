"""Whether a run's files stay on this machine: what may not be handed on must not be sent away."""

from __future__ import annotations

from urllib.parse import urlsplit

# The one artifact of a run that holds voices.
WITH_SOUND = "worst.html"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def stays_here(tracking_uri: str, artifact_uri: str) -> bool:
    """Whether artifacts written there are files of this machine.

    Args:
        tracking_uri: of the store, e.g. sqlite:///mlflow.db or http://host:5000.
        artifact_uri: of the run, e.g. /path/artifacts, mlflow-artifacts:/1/..., s3://bucket.
    """
    place = urlsplit(artifact_uri)
    if place.scheme in ("", "file"):
        return True
    if place.scheme in ("mlflow-artifacts", "http", "https"):
        # Through the tracking server, unless the address names a host of its own.
        return (place.hostname or urlsplit(tracking_uri).hostname) in _LOOPBACK
    return False
