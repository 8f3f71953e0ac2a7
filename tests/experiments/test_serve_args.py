"""The command that serves a model with vLLM, and the reasons where there is none."""

import json
import shlex

import pytest

from containers.runtime.card import read_card
from experiments import serve_args
from experiments.settings import ROOT, models

CARDS = {name: read_card(ROOT / "containers" / name / "model.toml") for name in models()}
SERVED = [name for name, card in CARDS.items() if serve_args.why_not_served(card) is None]


def printed(capsys, *arguments):
    code = serve_args.main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("model", SERVED)
def test_each_served_model_has_a_command_that_a_shell_reads_as_meant(capsys, model):
    code, out, err = printed(capsys, "--model", model, "--gpus", "0,1", "--port", "8123")
    words = shlex.split(out)
    card = CARDS[model]

    assert (code, out.count("\n")) == (0, 1)
    assert words[:2] == ["docker", "run"]
    assert words[words.index("--gpus") + 1] == '"device=0,1"'
    assert words[words.index("--publish") + 1] == "127.0.0.1:8123:8000"
    assert words[words.index("--served-model-name") + 1] == card.repos[0].id
    clips = json.loads(words[words.index("--limit-mm-per-prompt") + 1])
    assert 1 <= clips["audio"] <= card.capabilities.clips_per_prompt
    assert set(card.vllm) <= set(words)
    assert "-P endpoint=http://localhost:8123/v1" in err


def test_a_model_of_one_repository_is_served_from_its_folder_without_the_hub(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.setenv("UNDERTONE_WEIGHTS", str(tmp_path))
    _, out, err = printed(capsys, "--model", "voxtral")

    assert f"--volume {tmp_path}/voxtral:/weights:ro" in out
    assert "HF_HUB_OFFLINE=1" in out
    assert "Fetch its weights first: mlflow run . -e weights -P model=voxtral" in err
    # The same words for compose.yaml, whose shell reads them.
    assert f"  VLLM_WEIGHTS={tmp_path}/voxtral\n" in err
    (line,) = [line for line in err.splitlines() if "VLLM_ARGUMENTS=" in line]
    of_compose = shlex.split(line.partition("=")[2])
    assert of_compose == shlex.split(out.partition(" serve /weights ")[2])
    assert of_compose[0] == "--served-model-name"


def test_a_model_of_several_repositories_is_pinned_and_says_what_is_gated(capsys):
    _, out, err = printed(capsys, "--model", "ultravox")

    assert f"--revision {CARDS['ultravox'].repos[0].revision}" in out
    assert "set HF_TOKEN first" in err


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("salmonn", "vLLM has no SALMONN"),
        ("kimi_audio", "speech recognition alone"),
        ("baseline", "no weights to serve"),
    ],
)
def test_a_model_vllm_does_not_serve_faithfully_says_why(capsys, model, said):
    code, out, err = printed(capsys, "--model", model)

    assert (code, out) == (1, "")
    assert said in err
    assert "-P runner=" in err


@pytest.mark.parametrize(
    ("option", "value"), [("model", "gpt"), ("port", "0"), ("gpus", "all of them"), ("length", "x")]
)
def test_a_wrong_value_is_code_2_and_one_sentence(capsys, option, value):
    code, out, err = printed(capsys, "--model", "voxtral", f"--{option}", value)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert value in err
