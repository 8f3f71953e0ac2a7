"""WhisperX 3.8.6 as its callers see it: the published signatures, and one conversation for all.

What was called is appended to $FAKE_CALLS; a recording under half a second fails,
one under a quarter for want of memory.
"""

import json
import os
from pathlib import Path

LINES = [(0.2, 2.0, "How was the week in 2014?"), (2.5, 4.0, "Long.")]


def note(name, **arguments):
    if path := os.environ.get("FAKE_CALLS"):
        with Path(path).open("a") as stream:
            stream.write(json.dumps({"name": name, **arguments}) + "\n")


class Recogniser:
    def transcribe(
        self,
        audio,
        batch_size=None,
        num_workers=0,
        language=None,
        task=None,
        chunk_size=30,
        print_progress=False,
        combined_progress=False,
        verbose=False,
        progress_callback=None,
    ):
        if len(audio) < 4_000:
            raise RuntimeError("CUDA out of memory")
        if len(audio) < 8_000:
            raise RuntimeError("CUDA error: too short")
        note("transcribe", samples=len(audio), batch_size=batch_size, language=language)
        segments = [
            {"start": start, "end": end, "text": text, "avg_logprob": -0.2}
            for start, end, text in LINES
        ]
        return {"segments": segments, "language": language}


def load_model(
    whisper_arch,
    device,
    device_index=0,
    compute_type="default",
    asr_options=None,
    language=None,
    vad_model=None,
    vad_method="pyannote",
    vad_options=None,
    model=None,
    task="transcribe",
    download_root=None,
    local_files_only=False,
    threads=4,
    use_auth_token=None,
):
    offline, reports = os.environ["HF_HUB_OFFLINE"], os.environ["PYANNOTE_METRICS_ENABLED"]
    silent = os.environ["ORT_DISABLE_TELEMETRY"]
    token = os.environ.get("HF_TOKEN")
    note(
        "load_model",
        arch=whisper_arch,
        device=device,
        compute_type=compute_type,
        local=local_files_only,
        offline=offline,
        reports=reports,
        silent=silent,
        token=token,
    )
    return Recogniser()


def load_align_model(
    language_code, device, model_name=None, model_dir=None, model_cache_only=False
):
    note("load_align_model", model=model_name, cached=model_cache_only)
    return "aligner", {"language": language_code, "dictionary": {}, "type": "huggingface"}


def align(
    transcript,
    model,
    align_model_metadata,
    audio,
    device,
    interpolate_method="nearest",
    return_char_alignments=False,
    print_progress=False,
    combined_progress=False,
    progress_callback=None,
):
    aligned = []
    for segment in transcript:
        words, at = [], segment["start"]
        for word in segment["text"].split():
            timed = {"start": at, "end": at + 0.2, "score": 0.9}
            words.append({"word": word, **({} if "2014" in word else timed)})
            at += 0.3
        aligned.append({**segment, "words": words})
    return {"segments": aligned, "word_segments": [w for s in aligned for w in s["words"]]}


def assign_word_speakers(
    diarize_df, transcript_result, speaker_embeddings=None, fill_nearest=False
):
    assert list(diarize_df.columns) == ["start", "end", "speaker"]
    for segment in transcript_result["segments"]:
        for word in segment["words"]:
            inside = diarize_df[
                (diarize_df["start"] < word.get("end", -1))
                & (diarize_df["end"] > word.get("start", 1e9))
            ]
            if len(inside):
                word["speaker"] = segment["speaker"] = inside["speaker"].iloc[0]
    return transcript_result
