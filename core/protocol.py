"""The contract with a model: one request and one response, each a line of JSON.

Every container, every runner and every task speaks these two records and
nothing else. Standard library only, Python 3.10+, because this file is the one
module of ours that is imported inside every model's container.

A request carries no gold label, no path that could give one away and no session
title: its id is a digest and its audio files are named by content.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

SCHEMA = 1
# A sum of probabilities may come out this much above 1.
ROUNDING = 1e-3

Status = Literal["ok", "refused", "unparsed", "truncated", "audio_error", "model_error", "timeout"]
STATUSES: tuple[str, ...] = get_args(Status)
# An answer that a second try would not change. The others may be due to the machine (memory, a
# missing file since restored), so a later run tries them again.
FINAL = ("ok", "refused", "unparsed", "truncated")


class ProtocolError(ValueError):
    """A line that is not a request or a response of this schema."""


class Part(TypedDict, total=False):
    """One piece of the user turn: exactly one of `text` and `audio`.

    `text` parts are joined with nothing between them. `slot` names the blank of
    the prompt template the text was put into (`context`, `transcript`, ...): a
    model is never shown it, a reader and the baseline use it. `audio` is the
    name of a file in the mounted audio folder.
    """

    text: str
    audio: str
    slot: str


@dataclass(frozen=True)
class Request:
    """What a model is asked, once.

    Attributes:
        id: digest of everything that decides the answer (see `request_id`).
        system: system prompt, or None.
        parts: the user turn in order.
        choices: label -> surface forms, or None for free text. The runtime gives
            the exact log-probability of each label at the first answer position.
        max_new_tokens: upper bound of the generated text, >= 1.
        temperature: 0 for greedy.
        top_p: in (0, 1].
        seed: of this request alone; two votes are two requests.
        prefix_parts: how many leading parts are shared exemplars; a planning
            hint that lets the runtime prefill them once, never a change of meaning.
    """

    id: str
    system: str | None
    parts: tuple[Part, ...]
    choices: dict[str, tuple[str, ...]] | None
    max_new_tokens: int = 8
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    prefix_parts: int = 0
    schema: int = SCHEMA


@dataclass(frozen=True)
class Response:
    """What came back, once. A failure is a status and a reason, never a number.

    Attributes:
        id: the request's id.
        status: see `Status`; a runtime writes ok, truncated, audio_error,
            model_error or timeout, and leaves refused and unparsed to the parser
            (a server that blocks a prompt writes refused itself).
        reason: why, where status is not ok.
        text: the decoded answer; "" where there is none.
        finish_reason: stop, length, choice or error.
        choice_logprobs: label -> log p at the first answer position, natural log.
        choice_mass: total probability of all labels, in [0, 1].
        prompt_tokens: positions of the whole prompt, audio included.
        audio_seconds: given, all clips of the prompt together.
        audio_seconds_used: what reached the encoder.
        latency_s: wall time of this item; its share of the batch's.
        card: digest of the model's card.
        image: digest of the container image, or "process".
        precision: what the weights were computed in.
        fallbacks: planned departures from the request, by name.
    """

    id: str
    status: Status
    text: str = ""
    reason: str | None = None
    finish_reason: str | None = None
    choice_logprobs: dict[str, float] | None = None
    choice_mass: float | None = None
    prompt_tokens: int | None = None
    audio_seconds: float | None = None
    audio_seconds_used: float | None = None
    latency_s: float | None = None
    card: str | None = None
    image: str | None = None
    precision: str | None = None
    fallbacks: tuple[str, ...] = field(default=())
    schema: int = SCHEMA


def request_id(item_id: str, request: Request, model: str) -> str:
    """Digest under which an answer may be used again: equal digests, equal answers.

    Args:
        item_id: the item asked about; two items with equal words and equal audio
            stay two rows.
        request: its `id` is ignored. Audio is named by content, so a replaced
            file is another request. The seed is in, so five votes are five
            answers. `prefix_parts` is out: it only plans the work.
        model: digest of the model as it will run (card, revision, image, precision).

    Batch size is left out on purpose: batches equal singles, which is tested.
    """
    decides: dict[str, Any] = {**vars(request), "parts": request.parts[request.prefix_parts :]}
    for planning in ("id", "prefix_parts"):
        decides.pop(planning)
    text = _CANONICAL.encode({"item": item_id, "model": model, "request": decides})
    # The last one: what follows it in the order of the keys is numbers and an escaped text.
    before, parts, own = text.rpartition(_PARTS)
    return _digest_of(f"{before}{parts}{_canonical_shared(request, own)}{own}")


def digest(value: Any) -> str:
    """First 32 hex digits of the sha256 of a value's canonical JSON."""
    return _digest_of(_CANONICAL.encode(value))


def _digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


class _SharedParts:
    """JSON of the parts a request begins with, to be put before that of its own.

    Requests about one dialogue after another begin with the same exemplars, which are most
    of their parts; what the last request began with is not encoded again.
    """

    def __init__(self, encoder: json.JSONEncoder) -> None:
        self._encoder = encoder
        self._last: tuple[tuple[dict[str, Any], ...], str] = ((), "")

    def __call__(self, request: Request, own: str) -> str:
        """Args:
        own: begins with the JSON of the request's other parts, or with the list's end.
        """
        shared = request.parts[: request.prefix_parts]
        if not shared:
            return ""
        known, text = self._last
        if shared != known:
            text = self._encoder.encode(shared)[1:-1]
            # Copies: a part that was changed in place since is another part.
            self._last = (tuple(dict(part) for part in shared), text)
        return text if own.startswith("]") else f"{text},"


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))
# ensure_ascii keeps U+2028 and lone surrogates from splitting or breaking a line.
_LINE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)
# A text that holds this has its quotes escaped.
_PARTS = '"parts":['
_canonical_shared = _SharedParts(_CANONICAL)


def read_requests(path: Path) -> list[Request]:
    """All requests of a file, in order.

    Raises:
        ProtocolError: naming file and line, for a line that is not a request of
            this schema or repeats an id.
    """
    with path.open("rb") as stream:
        return [request for request, _ in requests_in(stream, path)]


def requests_in(lines: Iterable[bytes], path: Path) -> Iterator[tuple[Request, int]]:
    """Each request of an open file with the length of its line; see `read_requests`."""
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        request = request_of(line, where)
        if request.id in seen:
            raise ProtocolError(f"{where}: id {request.id} appears twice.")
        seen.add(request.id)
        yield request, len(line)


def write_requests(path: Path, requests: Iterable[Request]) -> None:
    """Replace a file by these requests: written whole beside it, then renamed."""
    # By the host alone: the images of the models hold this module and no other of core.
    from core.replacing import replacing

    shared_of = _SharedParts(_LINE)
    with replacing(path) as stream:
        for request in requests:
            own_parts = request.parts[request.prefix_parts :]
            # The first one: what stands before it is escaped texts.
            before, parts, own = _line({**vars(request), "parts": own_parts}).partition(_PARTS)
            stream.write(f"{before}{parts}{shared_of(request, own)}{own}".encode())


def response_line(response: Response) -> str:
    """The line an answer is kept as, its end included; ValueError for a number that is none."""
    return _line(vars(response))


def _line(record: dict[str, Any]) -> str:
    return _LINE.encode(record) + "\n"


def _json_object(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{where}: not text ({error.reason}).") from error
    # Brackets without end are beyond what the parser can nest.
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{where}: not JSON ({error}).") from error
    if not isinstance(record, dict):
        raise ProtocolError(f"{where}: expected an object, found {line.decode()[:40]!r}.")
    if record.get("schema") != SCHEMA:
        raise ProtocolError(
            f"{where}: expected schema {SCHEMA}, found {record.get('schema')!r}. "
            "It was written by another version; start a new output folder."
        )
    return record


def request_of(line: bytes, where: str) -> Request:
    """The request of a line; `where` is its file and line, for a ProtocolError."""
    record = _json_object(line, where)
    parts = record.get("parts")
    if not isinstance(parts, list) or not all(_is_part(part) for part in parts):
        raise ProtocolError(f"{where}: parts must be a list of {{text}} or {{audio}} objects.")
    choices = record.get("choices")
    if choices is not None:
        if not isinstance(choices, dict) or not all(map(_is_forms, choices.values())):
            raise ProtocolError(f"{where}: choices needs a label, each with a surface form.")
        choices = {label: tuple(forms) for label, forms in choices.items()}
        if not choices:
            raise ProtocolError(f"{where}: choices needs a label, each with a surface form.")
    _check_fields(record, _ASKED, where)
    try:
        request = Request(**{**record, "parts": tuple(parts), "choices": choices})
    except TypeError as error:
        raise ProtocolError(f"{where}: {error}.") from error
    if request.max_new_tokens < 1 or not 0 < request.top_p <= 1 or request.temperature < 0:
        raise ProtocolError(
            f"{where}: expected max_new_tokens >= 1, 0 < top_p <= 1, temperature >= 0; found "
            f"{request.max_new_tokens}, {request.top_p}, {request.temperature}."
        )
    return request


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict) or ("text" in part) == ("audio" in part):
        return False
    if not set(part) <= {"text", "audio", "slot"} or not all(map(_is_text, part.values())):
        return False
    # Only a bare file name: nothing a request says may lead out of the mounted folder.
    name = part.get("audio", "a file")
    return bool(name) and Path(name).name == name and name != ".." and "\0" not in name


def _is_forms(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    # JSON's whole numbers have no largest; ours are to fit a float.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_logprob(value: Any) -> bool:
    return _is_number(value) and value <= ROUNDING


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_nothing_or(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


# What an image of another version, or a hand, may have written is found here and not in a figure.
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("id", "text"), ("text", _is_text)),
    **dict.fromkeys(
        ("reason", "finish_reason", "card", "image", "precision"),
        ("text or null", _is_nothing_or(_is_text)),
    ),
    **dict.fromkeys(
        ("prompt_tokens", "audio_seconds", "audio_seconds_used", "latency_s"),
        ("a finite number from 0 on, or null", _is_nothing_or(_is_amount)),
    ),
    "choice_mass": (
        "a number from 0 to 1, or null",
        _is_nothing_or(lambda value: _is_amount(value) and value <= 1),
    ),
    "choice_logprobs": (
        "labels with finite numbers up to 0, or null",
        _is_nothing_or(
            lambda value: isinstance(value, dict) and all(map(_is_logprob, value.values()))
        ),
    ),
    "fallbacks": (
        "a list of texts",
        lambda value: isinstance(value, list) and all(map(_is_text, value)),
    ),
}
_ASKED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "id": ("text", _is_text),
    "system": ("text or null", _is_nothing_or(_is_text)),
    **dict.fromkeys(("temperature", "top_p"), ("a finite number", _is_number)),
    **dict.fromkeys(("max_new_tokens", "seed", "prefix_parts"), ("a whole number", _is_whole)),
}
# Of these types whatever the value.
_AT_ONCE: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "text"), (str,)),
    **dict.fromkeys(
        ("system", "reason", "finish_reason", "card", "image", "precision"), (str, type(None))
    ),
    **dict.fromkeys(("choice_logprobs", "choice_mass", "prompt_tokens"), (type(None),)),
    **dict.fromkeys(("max_new_tokens", "seed", "prefix_parts"), (int,)),
}
_ANYTHING: tuple[str, Callable[[Any], bool]] = ("anything", lambda value: True)


def _check_fields(
    record: dict[str, Any], known: dict[str, tuple[str, Callable[[Any], bool]]], where: str
) -> None:
    for name, value in record.items():
        # Most are, and to ask each by its rule takes as long as to parse the line.
        if type(value) in _AT_ONCE.get(name, ()):
            continue
        expected, holds = known.get(name, _ANYTHING)
        if not holds(value):
            raise ProtocolError(f"{where}: expected {name} to be {expected}, found {value!r:.60}.")


def response_of(line: bytes, where: str) -> Response:
    """The response of a line; `where` is its file and line, for a ProtocolError."""
    try:
        return _response(_json_object(line, where), where)
    except ProtocolError as error:
        raise ProtocolError(f"{error} Without that line its request is asked again.") from error


def _response(record: dict[str, Any], where: str) -> Response:
    if record.get("status") not in STATUSES:
        raise ProtocolError(f"{where}: expected a status of {STATUSES}.")
    _check_fields(record, _FIELDS, where)
    if "id" not in record or not record.keys() <= Response.__dataclass_fields__.keys():
        known = ", ".join(Response.__dataclass_fields__)
        raise ProtocolError(f"{where}: expected an id and fields of {known}, found {list(record)}.")
    return Response(**{**record, "fallbacks": tuple(record.get("fallbacks", ()))})
