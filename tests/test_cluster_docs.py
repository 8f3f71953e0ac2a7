"""The cluster files of docs/ are of the form their readers expect."""

import json
import subprocess
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
import yaml

from experiments.settings import OPTIONS, ROOT

FOLDER = ROOT / "docs" / "cluster"


def test_ray_takes_the_cloud_example():
    package = find_spec("ray")
    assert package
    assert package.origin
    schema = Path(package.origin).with_name("autoscaler") / "ray-schema.json"
    config = yaml.safe_load((FOLDER / "ray_up.yaml").read_text())

    jsonschema.validate(config, json.loads(schema.read_text()))
    assert config["head_node_type"] in config["available_node_types"]
    assert config["available_node_types"]["head"]["resources"]["CPU"] == 0


def test_the_kubernetes_job_gives_its_workers_gpus_and_the_folder_of_its_head():
    job = yaml.safe_load((FOLDER / "rayjob.yaml").read_text())
    cluster = job["spec"]["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    pods = [group["template"]["spec"] for group in (cluster["headGroupSpec"], workers)]

    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert pods[0]["volumes"] == pods[1]["volumes"]
    assert pods[0]["containers"][0]["image"] == pods[1]["containers"][0]["image"]
    assert pods[1]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]


def test_the_slurm_script_is_one_that_bash_reads():
    subprocess.run(["bash", "-n", FOLDER / "slurm.sh"], check=True)


@pytest.mark.parametrize(
    ("file", "some"),
    [
        ("cluster.md", {"runner", "address", "store"}),
        ("cluster/ray_up.yaml", {"store"}),
        ("cluster/rayjob.yaml", {"model", "runner", "node_runner"}),
        ("cluster/slurm.sh", {"model", "runner", "node_runner"}),
    ],
)
def test_every_option_named_is_one_of_evaluate(file, some):
    words = (ROOT / "docs" / file).read_text().split()
    named = {
        word.partition("=")[0].strip("`'\"")
        for before, word in pairwise(words)
        if before.strip("`'\"(") == "-P"
    }

    assert some <= named <= OPTIONS.keys()


def test_every_cluster_file_is_looked_at():
    assert {path.name for path in FOLDER.iterdir()} == {"ray_up.yaml", "rayjob.yaml", "slurm.sh"}
