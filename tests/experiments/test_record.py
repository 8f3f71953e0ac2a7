"""What of a long run goes to MLflow as tables a browser opens."""

import pandas as pd

from experiments.record import MOST_ROWS, item_tables


def test_of_many_items_the_first_are_in_the_table_of_each_condition():
    few = pd.DataFrame({"item_id": ["a", "b"], "condition": "TO", "gold": [1, None]})
    many = pd.DataFrame({"item_id": map(str, range(MOST_ROWS + 9)), "condition": "AO", "gold": 3})

    tables = item_tables(pd.concat([few, many]))

    assert list(tables) == ["items/TO.json", "items/AO.json"]
    assert list(tables["items/TO.json"]["gold"]) == [1, None]
    assert len(tables["items/AO.json"]) == MOST_ROWS
    assert tables["items/AO.json"]["item_id"].iloc[-1] == str(MOST_ROWS - 1)
