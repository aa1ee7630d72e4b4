"""Constants of writing down audio."""

from __future__ import annotations

# Tokens a sample of MLPerf Inference v5.1 over samples a second: LibriSpeech in windows of 30 s.
WINDOW_TOKENS = 63.5
WINDOW_SOURCE = "read English: MLPerf Inference v5.1, tokens a window of 30 s"
LARGEST_BATCH = 256  # vLLM's default places
# Tokens before the first one that is written: <|startoftranscript|>, language, task, timestamps.
PROMPT_TOKENS = 4
UNMEASURED = (0.5, 2.0)  # interval of the time where no measured point is at hand at all
