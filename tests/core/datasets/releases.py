"""Releases as CBT-Audio's, small, of turns that are made up, and recordings that are tones."""

import csv

import numpy as np
import soundfile

from tests.core.speech.tones import RATE_HZ, tone

TURNS = [
    "global_id",
    "video_id",
    "turn_id",
    "reference_label",
    "patient_transcript",
    "context",
    "start_time_sec",
    "end_time_sec",
]


def turn(video="001", number=1, start=1.0, end=4.0, label=3, text="I could not sleep.", context=""):
    return [f"{video}_{number:03d}", video, number, label, text, context, start, end]


def write_release(folder, turns, videos=("001",), urls=None):
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    recordings = [
        [video, (urls or {}).get(video, f"https://youtu.be/{video * 3}ab"), "A role-play"]
        for video in videos
    ]
    for name, header, rows in (
        ("labeled_patient_turns.csv", TURNS, turns),
        ("source_recordings.csv", ["video_id", "youtube_url", "original_title"], recordings),
    ):
        with (data / name).open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([header, *rows])
    return folder


def write_recording(path, seconds=10.0, rate_hz=RATE_HZ, amplitude=0.1):
    """Louder by the second, so that a clip tells where it was cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = tone(seconds, amplitude, rate_hz)
    samples *= np.repeat(np.linspace(0.5, 1, int(np.ceil(seconds))), rate_hz)[: len(samples)]
    soundfile.write(path, samples.astype(np.float32), rate_hz)
    return path
