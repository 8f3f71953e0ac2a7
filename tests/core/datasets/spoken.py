"""Words of a recording as a recogniser would give them, from lines that are said."""

from core.words import as_table


def said(*lines):
    """(speaker, start, end, text) -> a table of words, a segment a line, evenly spread."""
    rows = []
    for segment, (speaker, start, end, text) in enumerate(lines):
        words = text.split()
        length = (end - start) / len(words)
        for n, one in enumerate(words):
            rows.append(
                {
                    "segment": segment,
                    "segment_start_s": start,
                    "segment_end_s": end,
                    "segment_speaker": speaker,
                    "word": one,
                    "start_s": start + n * length,
                    "end_s": end if n == len(words) - 1 else start + (n + 1) * length,
                    "speaker": speaker,
                    "probability": 0.5,
                }
            )
    return as_table(rows)
