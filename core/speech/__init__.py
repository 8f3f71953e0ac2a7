"""Speech from text: an offline engine, level, turns kept on disk, dialogues composed of them."""
