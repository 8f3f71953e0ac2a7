import pytest

from validation.table import UnreadableTableError, read_table


def written(tmp_path, content: str | bytes):
    path = tmp_path / "ratings.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encodings_of_spreadsheets_read_alike(tmp_path, encoding):
    table = read_table(written(tmp_path, "ID,A,note\n1,0,naïve – “yes”\n".encode(encoding)))
    assert table.header == ("ID", "A", "note")
    assert table.rows[0]["note"] == "naïve – “yes”"


def test_half_a_utf_16_file_is_refused(tmp_path):
    with pytest.raises(UnreadableTableError, match="begins like UTF-16 and is not"):
        read_table(written(tmp_path, "ID,A\n".encode("utf-16")[:-1]))


def test_a_cell_may_be_a_million_characters_long(tmp_path):
    table = read_table(written(tmp_path, b"ID,A\nx," + b"y" * 1_000_000 + b"\n"))
    assert len(table.rows[0]["A"]) == 1_000_000


def test_reading_as_cp1252_is_stated(tmp_path):
    table = read_table(written(tmp_path, "ID,A\nnaïve,0\n".encode("cp1252")))
    assert table.notes == ("ratings.csv is not UTF-8 and was read as cp1252.",)


def test_crlf_outside_and_line_breaks_inside_quotes_keep_one_row(tmp_path):
    table = read_table(written(tmp_path, 'ID,A,text\r\n7,1,"one\ntwo, ""three"""\r\n8,0,x\r\n'))
    assert [row["ID"] for row in table.rows] == ["7", "8"]
    assert table.rows[0]["text"] == 'one\ntwo, "three"'


def test_a_row_is_numbered_as_a_spreadsheet_shows_it(tmp_path):
    table = read_table(written(tmp_path, 'ID,text\n7,"a\nb\nc"\n\n8,x\n'))
    assert [row.number for row in table.rows] == [2, 4]


def test_semicolons_are_understood_and_stated(tmp_path):
    table = read_table(written(tmp_path, "ID;A;B\n7;1;0\n"))
    assert table.rows[0]["B"] == "0"
    assert "separated by ';'" in table.notes[0]


def test_surplus_empty_cells_are_no_fault_but_surplus_text_is(tmp_path):
    assert len(read_table(written(tmp_path, "ID,A,,\n7,1,,\n")).rows) == 1
    with pytest.raises(
        UnreadableTableError, match=r"ratings\.csv, row 3: expected 2 cells, found 3"
    ):
        read_table(written(tmp_path, "ID,A\n7,1\n8,1,0\n"))


def test_a_short_row_is_refused(tmp_path):
    with pytest.raises(UnreadableTableError, match="row 2: expected 3 cells, found 2"):
        read_table(written(tmp_path, "ID,A,B\n7,1\n"))


@pytest.mark.parametrize("content", ["", "\n\n", "ID,A\n", "ID,A\n,\n"])
def test_a_table_without_rows_is_refused(tmp_path, content):
    with pytest.raises(UnreadableTableError, match="expected a header and rows"):
        read_table(written(tmp_path, content))


def test_two_columns_of_one_name_are_refused(tmp_path):
    with pytest.raises(UnreadableTableError, match="columns named twice: 'A'"):
        read_table(written(tmp_path, "ID,A,A\n7,1,0\n"))


def test_an_open_quote_is_refused(tmp_path):
    with pytest.raises(UnreadableTableError, match="not a CSV table"):
        read_table(written(tmp_path, 'ID,A\n7,"1\n'))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UnreadableTableError, match=r"none\.csv: no such file"):
        read_table(tmp_path / "none.csv")
