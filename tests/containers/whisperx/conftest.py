"""A folder of weights that is only names, and stand-ins for the packages of the image."""

import json
from hashlib import sha1

import pytest

from containers.runtime.card import read_card
from experiments.settings import card_file

CONFIG = """\
version: 3.1.0
pipeline:
  name: pyannote.audio.pipelines.SpeakerDiarization
  params:
    clustering: AgglomerativeClustering
    embedding: pyannote/wespeaker-voxceleb-resnet34-LM
    segmentation: pyannote/segmentation-3.0
params:
  clustering: {method: centroid, threshold: 0.7}
"""
FILES = {
    "whisper": "model.bin",
    "aligner": "config.json",
    "pyannote-pipeline": "config.yaml",
    "pyannote-segmentation": "pytorch_model.bin",
    "pyannote-embedding": "pytorch_model.bin",
    "pyannote-community": "plda/plda.npz",
}


def write_weights(folder):
    """As `-e weights -P model=whisperx` leaves them."""
    for repo in read_card(card_file("whisperx")).repos:
        name = FILES[repo.folder]
        place = folder / "whisperx" / repo.folder
        content = CONFIG.encode() if name.endswith(".yaml") else b"weights"
        (place / name).parent.mkdir(parents=True)
        (place / name).write_bytes(content)
        digest = sha1(b"blob %d\0" % len(content) + content).hexdigest()
        files = {name: [len(content), digest]}
        record = {"repo": repo.id, "revision": repo.revision, "files": files}
        (place / "weights.json").write_text(json.dumps(record))
    return folder


@pytest.fixture
def weights(tmp_path):
    return write_weights(tmp_path / "weights")
