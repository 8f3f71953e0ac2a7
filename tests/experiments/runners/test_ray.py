"""A cluster of several nodes on this machine: same answers as one process, whatever dies."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from containers.runtime.card import read_card
from experiments.runners import HERE, RunnerError, Site, ray, runner
from experiments.settings import ROOT
from tests.experiments.runners.ray_jobs import CARD, answered, answers, by_process, job_of, keepers

QUICK_S, SLOW_S = "0.02", "0.3"
BYTES = 80 << 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes with a place each, on which an answer takes 20 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("UNDERTONE_NULL_LATENCY_S", QUICK_S)
        patch.setenv("OMP_NUM_THREADS", "1")
        # Workers before they are wanted cost more here than all the answers.
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        patch.setenv("RAY_enable_worker_prestart", "0")
        import ray as package
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "object_store_memory": BYTES, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=head)
        made.add_node(num_cpus=1, object_store_memory=BYTES)
        yield made
        package.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def slow_node(cluster):
    """A third node, on which an answer takes fifteen times as long; the last test removes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_NULL_LATENCY_S", SLOW_S)
        node = cluster.add_node(num_cpus=1, object_store_memory=BYTES)
    ray._places.clear()
    return node


def summary(job):
    return json.loads(job.responses.with_name("work.json").read_bytes())["summary"]


def meanwhile(job, least, act):
    """Run the job, and act once it has so many answers."""
    acting = threading.Thread(target=lambda: (answered(job, least), act()))
    acting.start()
    ray.run(job)
    acting.join()


def test_answers_and_ids_are_those_of_the_process_runner(cluster, tmp_path):
    job = job_of(tmp_path, cluster.address, 20, clips=8)
    # A clip that is gone is a status with a reason, from either runner.
    next(tmp_path.glob("*.wav")).unlink()

    ray.run(job)

    assert ray.why_not(job.card, job.site) is None
    assert ray.image(job.card, job.site) == "process"
    assert answers(job) == by_process(job)
    assert summary(job)["counts"] == {"ok": 19, "audio_error": 1}
    assert summary(job)["hearing"]["speech"] == "the run's own"


def test_what_a_killed_worker_had_not_answered_is_answered_by_another(cluster, tmp_path):
    job = job_of(tmp_path, cluster.address, 60)

    meanwhile(job, 6, lambda: os.kill(keepers(job)[0], signal.SIGKILL))

    assert summary(job)["shards"]["lost"] == 1
    assert answers(job) == by_process(job)


def test_a_killed_driver_goes_on_where_it_stopped(cluster, tmp_path):
    words = [sys.executable, "-m", "tests.experiments.runners.ray_jobs", str(tmp_path)]
    driver = subprocess.Popen([*words, cluster.address, "60"], cwd=ROOT)
    job = job_of(tmp_path, cluster.address, 60)
    answered(job, 6)
    driver.kill()
    driver.wait()
    kept = len(job.responses.read_bytes().splitlines())

    ray.run(job)

    assert kept < 60
    assert summary(job)["answered"] == 60 - kept
    assert answers(job) == by_process(job)


def test_a_shard_that_fails_everywhere_ends_the_run_with_its_last_words(cluster, tmp_path):
    job = dataclasses.replace(job_of(tmp_path, cluster.address, 4), precision="fp7")

    with pytest.raises(RunnerError, match=r"null on .*was given a card or requests it cannot read"):
        ray.run(job)
    assert "no precision 'fp7'" in job.log.read_text()


def test_gpus_named_by_number_are_refused(cluster, tmp_path):
    job = dataclasses.replace(job_of(tmp_path, cluster.address, 8), gpus="0,1")

    with pytest.raises(RunnerError, match=r"gpus=0,1: Ray hands out GPUs itself; .* count:2"):
        ray.run(job)


def test_a_runner_no_node_has_is_refused_with_each_nodes_reason(cluster):
    site = Site(address=cluster.address, node_runner="docker")

    with pytest.raises(RunnerError, match=r"None of the 2 nodes .* null\. .*no image of its own"):
        runner("ray", read_card(CARD), site)


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    ray._places.clear()

    assert "pip install -e '.[ray]'" in ray.why_not(read_card(CARD), HERE)


def test_the_last_part_of_a_slow_node_is_answered_by_one_that_is_done(cluster, slow_node, tmp_path):
    job = job_of(tmp_path, cluster.address, 60)

    ray.run(job)

    assert summary(job)["shards"]["split"] >= 1
    assert answers(job) == by_process(job)


def test_a_removed_node_takes_no_answer_with_it(cluster, slow_node, tmp_path):
    job = job_of(tmp_path, cluster.address, 60)

    meanwhile(job, 12, lambda: cluster.remove_node(slow_node))

    assert summary(job)["shards"]["lost"] >= 1
    assert answers(job) == by_process(job)
