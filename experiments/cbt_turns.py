"""Entry point `cbt_turns`: words of transcribed recordings to the patient's turns, with clips.

Reads `<session>.parquet` or `.csv` tables of words (entry point cbt_words writes them), or
WhisperX's `<session>.json`, and the recordings they are of. Leaves unlabelled.parquet and
audio/ for cbt_describe and cbt_labels, turns/ with every turn and its role, roles.csv,
rules.csv and data_report.csv.
A recording whose roles cannot be told is left out and named: give them with --roles FILE.
Answers about roles are kept in answers/ and not asked for again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.options import (
    TRACK,
    TRACK_CHOICES,
    OptionError,
    amount,
    existing_file,
    existing_folder,
    one_of,
    read_options,
    whole,
)

if TYPE_CHECKING:
    import pandas as pd

    from core.datasets.cutting import Cut, Finding
    from core.datasets.spoken_session import SpokenSession
    from core.roles import Roles

OPTIONS = {
    "words": ("", "folder with a table of words for each recording, named by session"),
    "recordings": ("", "folder with the recordings, any format, named by session"),
    "roles": (
        "offline",
        "who tells them: offline (cues in the words, on this machine), endpoint (a language model "
        "of yours; on this machine nothing leaves it), claude (every word of the transcripts is "
        "sent to Anthropic), or a CSV of session_id, speaker and role",
    ),
    "roles_model": ("", "the model asked; for claude [claude-sonnet-4-5], the study's"),
    "endpoint": ("", "for roles=endpoint: http://host:8000/v1; its key in UNDERTONE_API_KEY"),
    "max_requests": ("0", "recordings whose transcript may leave this machine in this run"),
    "padding": ("0", "seconds kept before and after each turn, 2 at most"),
    "output": ("outputs/cbt-turns", "folder to write"),
    **TRACK,
}
MOST_PADDING_S = 2.0


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    words: Path
    recordings: Path
    roles: str
    roles_model: str
    endpoint: str
    max_requests: int
    padding_s: float
    output: Path
    track: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Make turns; 2 for a value or table that is wrong, 1 where no turn is left."""
    try:
        asked = asked_from(read_options(OPTIONS, arguments, "cbt_turns", __doc__))
    except OptionError as error:
        return _sorry(2, error)
    from core.manifest import DatasetError
    from experiments.output_lock import FolderInUseError, disk_sentence, only_one
    from experiments.runners import RunnerError
    from validation.schemas import TableError

    try:
        with only_one(asked.output, "cbt_turns"):
            return _made(asked)
    except (OptionError, DatasetError, TableError) as error:
        return _sorry(2, error)
    except (RunnerError, FolderInUseError) as error:
        return _sorry(1, error)
    except OSError as error:
        return _sorry(1, disk_sentence(error, asked.output))


def padding(said: str) -> float:
    """Seconds kept around a turn; raises OptionError for more than a turn may gain."""
    seconds = amount("padding", said)
    if seconds > MOST_PADDING_S:
        raise OptionError(f"padding: expected at most {MOST_PADDING_S:g} seconds, found {said!r}.")
    return seconds


def asked_from(said: Mapping[str, str]) -> Asked:
    """The options, checked, folders of earlier stages last; OptionError for the first wrong one."""
    padding_s = padding(said["padding"])
    services = ("offline", "claude", "endpoint")
    if said["roles"] not in services:
        existing_file("roles", said["roles"])
    if (said["roles"] == "endpoint") != bool(said["endpoint"]):
        raise OptionError("endpoint: roles=endpoint asks one, and no other choice of roles does.")
    asked = Asked(
        words=Path(said["words"]).expanduser(),
        recordings=Path(said["recordings"]).expanduser(),
        roles=said["roles"],
        roles_model=said["roles_model"],
        endpoint=said["endpoint"],
        max_requests=whole("max_requests", said["max_requests"]),
        padding_s=padding_s,
        output=Path(said["output"]).expanduser(),
        track=one_of("track", said["track"], TRACK_CHOICES),
    )
    existing_folder("words", said["words"])
    existing_folder("recordings", said["recordings"])
    return asked


def _made(asked: Asked) -> int:
    import pandas as pd

    from core.datasets.cutting import Finding, cut, without_leaks
    from core.datasets.fetching import Wanted, obtain
    from core.datasets.spoken_session import spoken_session
    from experiments.spoken_files import read_words, write_report, write_sessions

    tables = read_words(asked.words)
    tell = _teller(asked)
    sessions = [spoken_session(name, words, tell(name)) for name, words in tables]
    findings = [finding for session in sessions for finding in session.findings]
    items = pd.concat([session.items for session in sessions], ignore_index=True)
    items, leaks = without_leaks(items)
    wanted = [Wanted(session.session_id, "") for session in sessions]
    obtained = obtain(wanted, [asked.recordings], None)
    for lost in obtained.lost:
        count = int((items["session_id"] == lost.session_id).sum())
        findings.append(Finding(None, lost.session_id, lost.kind, lost.reason, count, kept=False))
    asked.output.mkdir(parents=True, exist_ok=True)
    made = cut(items.assign(label=0), obtained.files, asked.output, padding_s=asked.padding_s)
    findings += [*leaks, *made.findings]
    write_sessions(asked.output, sessions)
    write_report(asked.output, findings)
    print(_said(sessions, findings, made))
    if not made.rows:
        return _sorry(1, f"no turn is left; see {asked.output / 'data_report.csv'}.")
    _write_items(asked.output, items, made)
    if asked.track != "false":
        from experiments.stages import turns_stage
        from experiments.track_build import track_stages

        print(track_stages([turns_stage(asked.output)], "cbt_turns", asked.track))
    return 0


def _teller(asked: Asked) -> Callable[[str], Callable[[pd.DataFrame], Roles]]:
    """Session -> what tells the roles of its turns."""
    from core.roles import Roles, roles

    if asked.roles == "offline":
        return lambda session: roles
    if asked.roles in ("claude", "endpoint"):
        from experiments import roles_service as service

        kept = asked.output / "answers"
        if asked.roles == "claude":
            model = asked.roles_model or service.CLAUDE
            asking = service.claude(model, kept, asked.max_requests)
        else:
            asking = service.endpoint(asked.endpoint, asked.roles_model, kept, asked.max_requests)
        return lambda session: asking.roles
    from experiments.spoken_files import by_hand

    known = by_hand(Path(asked.roles))

    def teller(session: str) -> Callable[[pd.DataFrame], Roles]:
        if session not in known:
            return roles
        return lambda turns: Roles(known[session], 1.0, None, (), {}, "by hand")

    return teller


def _write_items(folder: Path, items: pd.DataFrame, made: Cut) -> None:
    import pandas as pd

    from experiments.spoken_files import write_table
    from validation.schemas import validated
    from validation.spoken import unlabelled

    clips = pd.DataFrame(made.rows)[["item_id", "audio", "seconds"]]
    path = folder / "unlabelled.parquet"
    table = items.merge(clips, on="item_id", validate="one_to_one")
    write_table(path, validated(table, unlabelled(), str(path)))


def _said(sessions: Sequence[SpokenSession], findings: Sequence[Finding], made: Cut) -> str:
    lines = [f"{len(sessions)} recordings, {sum(len(s.turns) for s in sessions):,} turns"]
    for place, rule in enumerate(sessions[0].rules if sessions else ()):
        before = sum(session.rules[place].before for session in sessions)
        after = sum(session.rules[place].after for session in sessions)
        lines.append(f"- {rule.name}: {before:,} -> {after:,}")
    lines.append(f"- with a clip: {len(made.rows):,}")
    lines += [
        f"- left out: {one.session_id}: {one.kind}: {one.found}" for one in findings if not one.kept
    ]
    return "\n".join(lines)


def _sorry(code: int, why: object) -> int:
    print(f"cbt_turns: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
