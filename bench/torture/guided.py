"""Inputs guided by coverage (atheris, libFuzzer), in a process of their own for each reader.

    python -m bench.torture.guided READER SECONDS SEED CORPUS RESULT OUT

Runs where atheris is installed. CORPUS is libFuzzer's folder, RESULT a JSON file that is written
again and again: libFuzzer ends the process itself.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

import atheris

EVERY_SECONDS = 1.0


def main(name: str, seconds: float, seed: int, *paths: Path) -> None:
    """`paths` are CORPUS, RESULT and OUT."""
    corpus, result, out = paths
    with atheris.instrument_imports(include=["gpuplan"], enable_loader_override=False):
        from bench.torture.mutate import LARGEST, mutated  # noqa: PLC0415 - counted from here
        from bench.torture.readers import seeds  # noqa: PLC0415
        from bench.torture.trial import Trials  # noqa: PLC0415

        trials, good = Trials(name, out), seeds(name)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(good):
        (corpus / f"seed-{number:03d}").write_bytes(text)
    written = 0.0

    def attempt(content: bytes) -> None:
        nonlocal written
        trials.attempt(content)
        if time.monotonic() - written > EVERY_SECONDS:
            written = time.monotonic()
            tried = {"inputs": trials.count, "good": trials.read}
            tried |= {"seconds": round(time.process_time()), "failures": dict(trials.failures)}
            result.write_text(json.dumps(tried), encoding="utf-8")

    def mutator(content: bytes, most: int, number: int) -> bytes:
        return mutated(content, good, random.Random(number))[:most]

    settings = (f"-max_total_time={seconds:.0f}", f"-seed={seed}", f"-max_len={LARGEST}")
    quiet = (
        "-verbosity=0",
        "-rss_limit_mb=0",
        "-timeout=0",
        "-close_fd_mask=3",
        f"-artifact_prefix={corpus}/",
    )
    arguments = [sys.argv[0], *settings, *quiet, str(corpus)]
    atheris.Setup(arguments, attempt, custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0], float(given[1]), int(given[2]), *map(Path, given[3:]))
