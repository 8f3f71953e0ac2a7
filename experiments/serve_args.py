"""`mlflow run . -e serve_args -P model=voxtral`: the command that serves a model with vLLM.

Prints it and nothing else on stdout, so that it can be piped to a shell; how to
evaluate what it serves comes on stderr. For a model that vLLM does not serve
faithfully it says why, and which runner takes it.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from containers.runtime.card import Card, read_card
from experiments.options import OptionError, one_of, read_options, whole
from experiments.settings import ROOT, models
from experiments.weights import weights_folder

OPTIONS: dict[str, tuple[str, str]] = {
    "model": ("", "a folder of containers/"),
    "port": ("8000", "port of this machine it listens on, for this machine alone"),
    "gpus": ("auto", "auto for all, count:2, or indices such as 0,1"),
    "length": ("16384", "longest prompt with its answer, in tokens"),
}
IMAGE = "vllm/vllm-openai:v0.33.0"
# Labels are read by token id; servers refuse to list more than this at once.
MOST_LOGPROBS = 64
NOT_SERVED = {
    "salmonn": "vLLM has no SALMONN: its window-level Q-Former is only in our own implementation.",
    "kimi_audio": (
        "vLLM's class for Kimi-Audio is made for speech recognition alone and drops half of the "
        "model's input; its answers would not be the model's."
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the command; 2 for a value that is wrong, 1 for a model vLLM does not serve."""
    try:
        words = read_options(
            OPTIONS, arguments, "python -m experiments.serve_args", __doc__.partition("\n")[0]
        )
        card = _card(words["model"])
        port, length = whole("port", words["port"]), whole("length", words["length"])
        if not 0 < port < 65536:
            raise OptionError(f"port: expected 1 to 65535, found {port}.")
        gpus = docker_gpus(words["gpus"])
    except OptionError as error:
        print(f"serve_args: {error}", file=sys.stderr)
        return 2
    if reason := why_not_served(card):
        print(f"serve_args: {reason}", file=sys.stderr)
        return 1
    weights = weights_folder() / card.name
    said = command(card, port=port, gpus=gpus, length=length, weights=weights)
    print(shlex.join(said))
    print(_next_step(card, port, weights), file=sys.stderr)
    if is_local(card):
        print("Or, in .env for the server of compose.yaml:", file=sys.stderr)
        print(f"  VLLM_WEIGHTS={weights / card.repos[0].folder}", file=sys.stderr)
        print(f"  VLLM_ARGUMENTS={shlex.join(arguments_of(said))}", file=sys.stderr)
    return 0


def command(card: Card, *, port: int, gpus: str, length: int, weights: Path) -> list[str]:
    """The words of `docker run ... vllm serve` for a model.

    A model of one repository is served from its verified folder, without the hub; one
    of several lets vLLM fetch them, since it takes the others by their names.

    Args:
        gpus: as `docker run --gpus` takes it.
        length: tokens of the longest prompt and its answer.
        weights: the model's folder of weights.
    """
    repo = card.repos[0]
    run = ["docker", "run", "--rm", "--gpus", gpus, "--ipc", "host"]
    # This machine alone: a server without a key is nobody else's business.
    run += ["--publish", f"127.0.0.1:{port}:8000"]
    if is_local(card):
        run += ["--volume", f"{weights}:/weights:ro", "--env", "HF_HUB_OFFLINE=1"]
        serve = [str(PurePosixPath("/weights") / repo.folder)]
    else:
        run += ["--volume", "undertone-vllm:/root/.cache/huggingface", "--env", "HF_TOKEN"]
        serve = [repo.id, "--revision", repo.revision, "--tokenizer-revision", repo.revision]
    run += ["--entrypoint", "vllm", IMAGE, "serve"]
    serve += ["--served-model-name", repo.id, "--max-model-len", str(length)]
    # Else vLLM samples by the release's own defaults (top-k, repetition penalties).
    serve += ["--generation-config", "vllm"]
    serve += ["--max-logprobs", str(MOST_LOGPROBS), *(card.vllm or ())]
    if "--limit-mm-per-prompt" not in serve:
        clips = json.dumps({"audio": card.capabilities.clips_per_prompt})
        serve += ["--limit-mm-per-prompt", clips]
    return [*run, *serve]


def arguments_of(said: Sequence[str]) -> list[str]:
    """The words of `command` behind the model: what compose.yaml leaves to .env."""
    return list(said[said.index("serve") + 2 :])


def is_local(card: Card) -> bool:
    """Whether all that vLLM loads is in one folder of ours."""
    return len(card.repos) == 1


def why_not_served(card: Card) -> str | None:
    """Why vLLM is not to be used for a model, as a sentence; None where it is fine."""
    if not card.repos:
        return f"{card.name} has no weights to serve; it runs here with -P runner=process."
    if card.vllm is not None:
        return None
    reason = NOT_SERVED.get(card.name, "its card names no vLLM arguments that serve it faithfully.")
    return f"{card.name}: {reason} Use -P runner=docker."


def docker_gpus(said: str) -> str:
    """`auto`, "count:2" or "0,1" in the words of `docker run --gpus`.

    Raises:
        OptionError: for anything else.
    """
    if said == "auto":
        return "all"
    kind, _, number = said.partition(":")
    if kind == "count" and number.isdigit() and int(number):
        return number
    if all(word.isdigit() for word in said.split(",")):
        # Quoted once more: the flag is read as CSV, where a comma ends a field.
        return f'"device={said}"'
    raise OptionError(f"gpus: expected auto, count:2 or indices such as 0,1, found {said!r}.")


def _card(said: str) -> Card:
    return read_card(ROOT / "containers" / one_of("model", said, models()) / "model.toml")


def _next_step(card: Card, port: int, weights: Path) -> str:
    lines = []
    if is_local(card) and not weights.is_dir():
        lines.append(f"Fetch its weights first: mlflow run . -e weights -P model={card.name}")
    if not is_local(card) and any(repo.gated for repo in card.repos):
        lines.append("One of its repositories is gated: set HF_TOKEN first.")
    lines += [
        "Once it says that it is up:",
        f"  mlflow run . -e evaluate -P model={card.name} -P runner=server "
        f"-P endpoint=http://localhost:{port}/v1",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
