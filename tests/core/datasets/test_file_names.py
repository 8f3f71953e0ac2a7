import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.datasets.file_names import file_name


@pytest.mark.parametrize("item_id", ["85514414", "001_003", "Panic role-play [dQw4w9WgXcQ]_2", "é"])
def test_an_id_that_is_a_name_is_kept(item_id):
    assert file_name(item_id) == item_id


@pytest.mark.parametrize("item_id", ["../../x", "/etc/passwd", "a/b", "a\\b", "..", "", "-rf", "~"])
def test_no_id_leads_to_another_folder(item_id, tmp_path):
    name = file_name(item_id)

    assert (tmp_path / f"{name}.flac").resolve().parent == tmp_path
    assert name[0] not in ".-~"


@given(st.text(max_size=300))
def test_any_text_has_a_name_a_file_system_takes(item_id):
    name = file_name(item_id)

    assert 0 < len(name.encode()) <= 150
    assert not set(name) & set("/\\\0\n")


def test_no_id_can_be_made_up_to_take_anothers_file():
    taken = file_name("../a")

    assert file_name(taken) != taken
    assert file_name("a/b") != file_name("a_b") != file_name("a?b")
