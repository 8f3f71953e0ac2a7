import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from experiments.trajectory_figure import save_trajectories


def turns(sessions, length=3):
    rows = [
        {
            "session_id": f"s{session}",
            "gold": 1 + turn % 5,
            "AO": np.nan if turn else 3.0,
            "TO": 2.0,
        }
        for session in range(sessions)
        for turn in range(length)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("sessions", "rows"), [(1, 1), (4, 2), (40, 4)])
def test_a_panel_a_session_and_no_more_than_twelve(tmp_path, sessions, rows):
    save_trajectories(turns(sessions), ("AO", "TO"), "null", tmp_path / "t.png")

    picture = matplotlib.image.imread(tmp_path / "t.png")
    assert np.ptp(picture[..., :3]) > 0.5
    assert picture.shape[0] == pytest.approx(110 * (0.9 + 1.9 * rows), abs=2)
