import pandas as pd

from core.datasets.cutting import Finding
from core.datasets.turns_card import said, turns_card

ITEMS = pd.DataFrame(
    {
        "session_id": ["001", "001", "001", "002"],
        "seconds": [2.0, 4.0, 6.0, 24.0],
        "label": [1, 3, 3, 5],
    }
)
FINDINGS = [
    Finding(None, "003", "private", "the video is private", 5, kept=False),
    Finding("002_002", "002", "past_the_end", "60 to 70 s", 1, kept=False),
    Finding("001_002", "001", "overlapping", "0.50 s", 1, kept=True),
]


def test_a_card_counts_what_is_there_and_what_was_lost():
    card = turns_card("cbt", ITEMS, 10, 3, FINDINGS)

    # 36 s of clips: 0.01 h, 9 s on average, 5 s in the median.
    assert (card.turns, card.hours, card.mean_s, card.median_s) == (4, 0.01, 9.0, 5.0)
    assert card.per_session == (1, 2.0, 3)
    assert card.labels == {1: 1, 2: 0, 3: 2, 4: 0, 5: 1}
    assert [(loss.kind, loss.turns, loss.recordings) for loss in card.losses] == [
        ("private", 5, 1),
        ("past_the_end", 1, 1),
    ]
    assert card.turns + sum(loss.turns for loss in card.losses) == card.released


def test_a_card_says_n_of_n_and_every_reason():
    text = said(turns_card("cbt", ITEMS, 10, 3, FINDINGS, meanings={"private": "it is private"}))

    assert text.startswith("cbt: 4 of 10 turns, 2 of 3 recordings\n")
    assert "3: 2 (50.0%)" in text
    assert "5 turns of 1 recording, private: it is private" in text
    assert "kept, and worth a look: overlapping 1" in text
