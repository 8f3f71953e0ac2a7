"""Ultravox v0.5: its layout, and its backbones from local folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from containers.runtime.adapter import LoadError
from containers.runtime.card import read_card

pytestmark = pytest.mark.models

CARD = Path(__file__).parents[2] / "containers" / "ultravox" / "model.toml"


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    from tiny.remote import clips

    return clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture
def adapter():
    from tiny.ultravox import adapter

    return adapter(read_card(CARD))


def test_the_clip_stands_where_the_text_has_its_place(adapter, clips):
    from tiny.remote import ask

    prompt = ask(clips, "Listen: ", "short", " Rate it.", system="You are a rater.")
    rendered = adapter.render(prompt)
    (span,) = rendered.spans
    before, after = (
        adapter.tokenizer.decode(rendered.ids[place])
        for place in (slice(0, span.start), slice(span.stop, None))
    )
    assert before == (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nYou are a rater.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nListen: "
    )
    assert after == " Rate it.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"


def test_a_row_for_each_160_ms_and_end_tokens_in_their_places(adapter, clips):
    from tiny.remote import ask

    rendered = adapter.render(ask(clips, "long", "?"))
    (span,) = rendered.spans
    # 2.9 s are 290 frames of 10 ms; 16 of them make a row.
    assert span.stop - span.start == 19
    assert set(rendered.ids[span.start : span.stop]) == {adapter.tokenizer.eos_token_id}


def test_an_end_token_of_the_template_is_never_taken_for_audio(adapter, clips):
    from tiny.remote import ask

    rendered = adapter.render(ask(clips, "short", "?"))
    (span,) = rendered.spans
    ends = (rendered.ids == adapter.tokenizer.eos_token_id).sum()
    # After the system text and after the user's turn.
    assert ends == span.stop - span.start + 2


@pytest.fixture
def snapshot(tmp_path):
    """A release, its backbones beside it."""
    folders = [tmp_path / name for name in ("ultravox", "whisper-large-v3-turbo", "llama")]
    for folder in folders:
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"weights")
    (folders[0] / "ultravox_model.py").write_text("# the vendor's code\n")
    return folders


def redirect(snapshot, config: dict, into: Path) -> dict:
    from containers.ultravox.adapter import redirected

    (snapshot[0] / "config.json").write_text(json.dumps(config))
    into.mkdir()
    redirected(*snapshot, into)
    return json.loads((into / "config.json").read_text())


def test_hub_names_in_the_config_become_local_folders(snapshot, tmp_path):
    given = {
        "audio_model_id": "openai/whisper-large-v3-turbo",
        "text_model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "stack_factor": 8,
    }
    config = redirect(snapshot, given, tmp_path / "load")
    _, whisper, llama = snapshot
    assert config == {
        "audio_model_id": str(whisper),
        "text_model_id": str(llama),
        "stack_factor": 8,
    }
    assert (tmp_path / "load" / "ultravox_model.py").read_text() == "# the vendor's code\n"
    assert (tmp_path / "load" / "model.safetensors").read_bytes() == b"weights"
    # The snapshot itself stays as it was fetched.
    assert json.loads((snapshot[0] / "config.json").read_text()) == given


def test_a_described_encoder_is_not_fetched_and_its_extractor_is_found_locally(snapshot, tmp_path):
    given = {
        "audio_model_id": None,
        "audio_config": {"model_type": "whisper", "_name_or_path": "openai/whisper-large-v3-turbo"},
        "text_model_id": "meta-llama/Llama-3.1-8B-Instruct",
    }
    config = redirect(snapshot, given, tmp_path / "load")
    assert config["audio_model_id"] is None
    assert config["audio_config"]["_name_or_path"] == str(snapshot[1])


def test_the_encoders_folder_must_be_called_whisper(snapshot, tmp_path):
    from containers.ultravox.adapter import redirected

    folder, _, llama = snapshot
    with pytest.raises(LoadError, match='must have "whisper" in its path'):
        redirected(folder, llama, llama, tmp_path)


def test_the_cards_folders_are_what_the_load_wants():
    repos = {repo.id.split("/")[1]: repo for repo in read_card(CARD).repos}
    assert "whisper" in repos["whisper-large-v3-turbo"].folder
    assert repos["Llama-3.1-8B-Instruct"].gated
    assert next(iter(repos)) == "ultravox-v0_5-llama-3_1-8b"


def test_a_missing_backbone_is_named_with_the_way_to_get_it(snapshot):
    from containers.ultravox.adapter import load

    weights = snapshot[0].parent
    with pytest.raises(LoadError, match=r"llama-3\.1-8b-instruct.*-e weights -P model=ultravox"):
        load(read_card(CARD), weights, precision="bf16", device_map="cpu")
