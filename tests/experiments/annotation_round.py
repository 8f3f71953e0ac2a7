"""A round of annotation: four annotators, twelve dialogues, workbooks filled as asked."""

import csv

from openpyxl import load_workbook

from experiments import annotate_import


def answer(key, code):
    """Everyone says what the dataset says."""
    return {"YES": 1, "NO": 0}[key.reference[key.by_code()[code].item_id]]


def run(folder, *more):
    return annotate_import.main(
        [
            *("--answers", str(folder / "annotators"), "--output", str(folder / "ratings")),
            *("--design", str(folder / "private" / "design.json"), *more),
        ]
    )


def changed(folder, change, tab="Text Only", annotator="annotator_3"):
    path = folder / "annotators" / annotator / f"{annotator}.xlsx"
    book = load_workbook(path)
    change(book[tab])
    book.save(path)


def set_cell(place, value):
    def change(sheet):
        sheet[place] = value

    return change


def rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def faults(folder):
    return [
        f"{r['file']}, {r['place']}: expected {r['expected']}, found {r['found']}"
        for r in rows(folder / "ratings" / "problems.csv")
    ]
