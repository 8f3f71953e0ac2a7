"""Turns to a model's descriptions or scores, through any runner. See `experiments.cbt_describe`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from containers.runtime.card import Card, read_card
from containers.runtime.loop import FAILURES
from containers.runtime.response_log import read_responses
from core import describing
from core.audio import AudioError, prepare_clips
from core.dataset import check_inside
from core.prompts import template
from core.protocol import Request, Response, digest, write_requests
from core.replacing import replacing
from experiments import gpt_audio
from experiments.answer_file import repaired
from experiments.answer_stamps import assert_made_by
from experiments.evaluation import precision_of
from experiments.gpt_audio import is_gpt_audio
from experiments.options import OptionError
from experiments.runners import Job, RunnerError, Site, runner
from experiments.runners._endpoint import Endpoint
from experiments.settings import ROOT, SettingsError
from experiments.spoken_files import read_table, write_table
from experiments.weights import weights_folder
from validation import spoken
from validation.schemas import validated

if TYPE_CHECKING:
    from experiments.cbt_describe import Asked


def ask(asked: Asked, run: Callable[[Job], None] | None = None) -> str:
    """Ask what was not asked yet and write the table; returns what to print.

    Raises:
        OptionError: a remote endpoint would be sent more than max_requests allows.
        RunnerError: the model did not get through; its answers so far are kept.
    """
    table = asked.turns / "unlabelled.parquet"
    items = validated(read_table(table), spoken.unlabelled(), str(table))
    items = items.head(asked.limit or len(items))
    asked.output.mkdir(parents=True, exist_ok=True)
    way = way_to(asked, run)
    clips, silent = _clips(items, asked)
    planned = describing.plan(
        items,
        clips,
        kind=asked.kind,
        runs=asked.runs,
        temperature=asked.temperature,
        top_p=asked.top_p,
        seed=asked.seed,
        model_digest=way.digest,
    )
    if told := repaired(_responses(asked)):
        _note(told)
    todo = _todo(planned, read_responses(_responses(asked)))
    said = _amount(items, planned, todo, asked)
    if way.host:
        said += f"\nClips and contexts would leave this machine for {way.host}."
    if asked.dry_run:
        return f"{said}\nNothing was asked (dry_run=true)."
    _allow(asked, way.host, todo, said)
    print(said)
    write_requests(_requests(asked), [one.request for one in planned])
    if todo:
        way.run([one.request for one in todo])
    responses = read_responses(_responses(asked))
    mine = (responses[one.request.id] for one in planned if one.request.id in responses)
    assert_made_by(mine, way.stamps, _responses(asked))
    said = _written(asked, planned, responses, silent)
    _note_down(asked, way, items, planned, todo, responses)
    return said


def _note_down(
    asked: Asked,
    way: Way,
    items: pd.DataFrame,
    planned: Sequence[describing.Run],
    todo: Sequence[describing.Run],
    responses: dict[str, Response],
) -> None:
    """Beside the table: what a label made of it has to say of where it comes from."""
    prompt = template(describing.PROMPTS[asked.kind])
    answers = [responses[one.request.id] for one in planned if one.request.id in responses]
    minutes = _minutes(items, todo)
    about = {
        "model": asked.served_model or asked.model,
        "host": way.host or "this machine",
        "decides": way.digest,
        "images": sorted({one.image for one in answers if one.image}),
        "runs": asked.runs,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "seed": asked.seed,
        "prompt": prompt.id,
        "prompt_sha256": prompt.sha256,
        "turns": len(items),
        "requests": len(planned),
        "asked": len(todo),
        "minutes": round(minutes, 2),
        "dollars": round(minutes * asked.price, 4),
        "prompt_tokens": sum(one.prompt_tokens or 0 for one in answers),
        "answers": dict(sorted(Counter(one.status for one in answers).items())),
    }
    with replacing(asked.output / f"{asked.kind}.json") as stream:
        stream.write((json.dumps(about, indent=1) + "\n").encode())


@dataclass(frozen=True)
class Way:
    """How requests get to a model.

    Attributes:
        digest: what decides an answer beside the request.
        stamps: what its answers say of who gave them, by the fields' names.
        host: where clips and contexts are sent; "" for this machine.
        run: answers the requests given, in the file of answers.
    """

    digest: str
    stamps: Mapping[str, str]
    host: str
    run: Callable[[Sequence[Request]], None]


def way_to(asked: Asked, run: Callable[[Job], None] | None = None) -> Way:
    """How the model asked for is reached; RunnerError where nothing here can."""
    return _to_openai(asked) if is_gpt_audio(asked.model) else _to_a_model(asked, run)


def _to_openai(asked: Asked) -> Way:
    found = gpt_audio.service(asked.model, offline=asked.offline)

    def run(requests: Sequence[Request]) -> None:
        gpt_audio.ask(found, requests, _audio(asked), _responses(asked), _note)

    return Way(found.digest, {}, found.host, run)


def _to_a_model(asked: Asked, given: Callable[[Job], None] | None) -> Way:
    card = read_card(ROOT / "containers" / asked.model / "model.toml")
    if given is None and not card.capabilities.writes:
        raise OptionError(
            f"model: {card.name} writes no text and cannot say what it hears; give one that does, "
            "such as voxtral, or null to try the road."
        )
    site = Site(asked.endpoint, asked.served_model, asked.offline)
    try:
        precision = precision_of(asked.precision, card)
    except SettingsError as error:
        raise OptionError(str(error)) from error
    image, run = "given", given
    if run is None:
        try:
            _, module = runner(asked.runner, card, site)
            run, image = module.run, module.image(card, site)
        except RunnerError as error:
            if not asked.dry_run:
                raise
            # How much there is to ask can be told where nothing can ask it.
            _note(str(error))
            run, image = (lambda job: None), "none"
    job, carry_out = _job(asked, card, precision, site), run
    host = ""
    if asked.endpoint:
        endpoint = Endpoint(site)
        host = "" if endpoint.is_here else endpoint.host
    decides = digest({"card": card.digest, "image": image, "precision": precision})
    # A runner reads the requests' file and leaves out what is answered.
    stamps = {"card": card.digest} | ({} if given else {"image": image})
    return Way(decides, stamps, host, lambda requests: carry_out(job))


def _note(line: str) -> None:
    print(line, file=sys.stderr)


def _job(asked: Asked, card: Card, precision: str, site: Site) -> Job:
    weights = weights_folder() / card.name
    return Job(
        card=card,
        card_path=ROOT / "containers" / asked.model / "model.toml",
        weights=weights,
        requests=_requests(asked),
        responses=_responses(asked),
        audio=_audio(asked),
        precision=precision,
        device_map=asked.device_map,
        offline=asked.offline,
        gpus=asked.gpus,
        site=site,
    )


def _requests(asked: Asked) -> Path:
    return (asked.output / f"{asked.kind}-requests.jsonl").resolve()


def _responses(asked: Asked) -> Path:
    return (asked.output / f"{asked.kind}-responses.jsonl").resolve()


def _audio(asked: Asked) -> Path:
    return (asked.output / "audio").resolve()


def _clips(items: pd.DataFrame, asked: Asked) -> tuple[dict[str, str], dict[str, str]]:
    """Item id -> clip name, and item id -> why there is none."""
    _audio(asked).mkdir(parents=True, exist_ok=True)
    check_inside(asked.turns / "unlabelled.parquet", list(items["audio"]))
    prepared = prepare_clips([asked.turns / name for name in items["audio"]], _audio(asked))
    pairs = list(zip(items["item_id"], prepared, strict=True))
    clips = {str(name): one.name for name, one in pairs if not isinstance(one, AudioError)}
    return clips, {str(name): str(one) for name, one in pairs if isinstance(one, AudioError)}


def _todo(planned: Sequence[describing.Run], known: dict[str, Response]) -> list[describing.Run]:
    answered = {name for name, answer in known.items() if answer.status not in FAILURES}
    return [one for one in planned if one.request.id not in answered]


def _amount(
    items: pd.DataFrame,
    planned: Sequence[describing.Run],
    todo: Sequence[describing.Run],
    asked: Asked,
) -> str:
    minutes = _minutes(items, todo)
    said = (
        f"{len(items):,} turns, {len(planned):,} requests, {len(todo):,} of them to be asked "
        f"({minutes:.1f} minutes of audio"
    )
    if asked.price:
        said += f", about {minutes * asked.price:.2f} dollars"
    return said + ")."


def _minutes(items: pd.DataFrame, asked_about: Sequence[describing.Run]) -> float:
    seconds = dict(zip(items["item_id"], items["seconds"], strict=True))
    return float(sum(seconds[one.item_id] for one in asked_about) / 60)


def _allow(asked: Asked, host: str, todo: Sequence[describing.Run], said: str) -> None:
    if host and len(todo) > asked.max_requests:
        raise OptionError(
            f"max_requests: {' '.join(said.split())} Allow it with max_requests={len(todo)}, or "
            "let a model of containers/ hear them here."
        )


def _written(
    asked: Asked,
    planned: Sequence[describing.Run],
    responses: dict[str, Response],
    silent: dict[str, str],
) -> str:
    path = asked.output / f"{asked.kind}.csv"
    if asked.kind == describing.SCORES:
        made = describing.scores(planned, responses)
        there = made["score"].notna()
        write_table(path, validated(made, spoken.scores(), str(path)))
        what = f"{int(there.sum()):,} of {len(made):,} answers are a level from 1 to 5"
    else:
        model = asked.served_model or asked.model
        made = describing.descriptions(planned, responses, model)
        write_table(path, validated(made, spoken.descriptions(), str(path)))
        counts = Counter(made["status"])
        what = ", ".join(f"{status} {n:,}" for status, n in sorted(counts.items()))
    lines = [f"{path}: {what}"]
    tokens = [one.prompt_tokens for one in responses.values() if one.prompt_tokens]
    if tokens and is_gpt_audio(asked.model):
        lines.append(f"  tokens read by {asked.model}: {sum(tokens):,}")
    lines += [f"  no clip: {name}: {reason}" for name, reason in silent.items()]
    return "\n".join(lines)
