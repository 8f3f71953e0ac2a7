"""What stands beside the code: licences, citation, the workflow, the compose file."""

import re
import shutil
import subprocess

import pytest
import yaml

from containers.runtime.card import read_card
from experiments.settings import ROOT, models

WORKFLOW = ROOT / ".github" / "workflows" / "checks.yaml"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def licence_rows():
    for name in models():
        card = read_card(ROOT / "containers" / name / "model.toml")
        parts = "; ".join(
            f"[{r.id}](https://huggingface.co/{r.id}): {r.licence}" for r in card.repos
        )
        yield f"| `{name}` | {card.licence} | {parts or 'none'} |"


def test_the_table_of_licences_is_that_of_the_cards():
    table = "\n".join(["| model | licence | weights |", "|---|---|---|", *licence_rows()])

    assert table in (ROOT / "docs" / "licences.md").read_text(), f"docs/licences.md lacks:\n{table}"


def test_every_card_has_a_licence_and_every_repository_too():
    cards = [read_card(ROOT / "containers" / name / "model.toml") for name in models()]

    assert all(card.licence for card in cards)
    assert all(repo.licence for card in cards for repo in card.repos)


def test_the_citation_names_this_version_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = (ROOT / "pyproject.toml").read_text()

    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{citation["license"]}"' in project
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_workflow_runs_every_part_of_check_on_every_python():
    flow = yaml.safe_load(WORKFLOW.read_text())
    (job,) = flow["jobs"].values()
    run = [step["run"] for step in job["steps"] if "run" in step]
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    # YAML 1.1 reads `on` as true.
    assert set(flow[True]) == {"push", "pull_request"}
    assert flow["permissions"] == {"contents": "read"}
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    parts = re.search(r"parts=\(([\w ]+)\)", (ROOT / "check").read_text())[1].split()
    assert [line for line in run if line.startswith("./check")] == [f"./check {p}" for p in parts]
    assert all(re.fullmatch(r"actions/[\w-]+@(v\d+|[0-9a-f]{40})", name) for name in used)
    # Words of a pull request in a script would be run.
    assert not any("${{" in line for line in run)


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_service_has_no_more_rights_than_it_needs(name):
    service = COMPOSE["services"][name]

    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert not any("docker.sock" in volume for volume in service["volumes"])
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_the_database_is_reached_by_the_server_alone():
    services = COMPOSE["services"]

    assert services["postgres"]["networks"] == ["store"]
    assert "ports" not in services["postgres"]
    assert COMPOSE["networks"]["store"] == {"internal": True}
    assert [name for name, one in services.items() if "store" in one["networks"]] == [
        "postgres",
        "mlflow",
    ]


def test_no_secret_has_a_default():
    asked = re.findall(r"\$\{(\w*(?:PASSWORD|KEY)\w*)(:?[-?][^}]*)?\}", str(COMPOSE))
    example = (ROOT / ".env.example").read_text()

    assert asked
    assert all(rule.startswith(":?") or rule == ":-" for _, rule in asked)
    assert all(re.search(rf"(?m)^{name}=$", example) for name, _ in asked)


@pytest.mark.parametrize("missing", ["POSTGRES_PASSWORD", "MLFLOW_AUTH_ADMIN_PASSWORD"])
@pytest.mark.parametrize("value", ["", "short"])
def test_the_server_does_not_start_on_an_empty_or_short_secret(missing, value):
    secrets = ("POSTGRES_PASSWORD", "MLFLOW_AUTH_ADMIN_PASSWORD", "MLFLOW_FLASK_SERVER_SECRET_KEY")
    said = dict.fromkeys(secrets, "long enough to be one") | {
        missing: value,
        "PATH": "/bin:/usr/bin",
    }

    ended = subprocess.run(
        [ROOT / "deploy" / "mlflow" / "start.sh"], env=said, capture_output=True, text=True
    )

    assert ended.returncode == 2
    assert f"{missing} is missing or shorter than 12 characters" in ended.stderr


def test_compose_itself_finds_nothing_wrong(tmp_path):
    plugin = (
        bool(shutil.which("docker"))
        and not subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    )
    # Debian's package is the command alone.
    compose = ["docker", "compose"] if plugin else ["docker-compose"]
    if not shutil.which(compose[0]):
        pytest.skip("neither docker compose nor docker-compose is installed")
    filled = re.sub(
        r"(?m)(PASSWORD|KEY)=$", r"\1=long-enough-to-be-one", (ROOT / ".env.example").read_text()
    )
    (tmp_path / "env").write_text(filled)
    command = [*compose, "--env-file", str(tmp_path / "env"), "--profile", "vllm"]

    ended = subprocess.run([*command, "config", "-q"], cwd=ROOT, capture_output=True, text=True)

    assert ended.returncode == 0, ended.stderr


def test_the_servers_image_is_as_hadolint_wants_it():
    assert shutil.which("hadolint")
    ended = subprocess.run(
        ["hadolint", ROOT / "deploy/mlflow/Dockerfile"], capture_output=True, text=True
    )

    assert ended.returncode == 0, ended.stdout
