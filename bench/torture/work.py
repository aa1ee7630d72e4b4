"""One reader, tried by strategies and then by inputs that coverage guides."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.torture.mutate import mutated
from bench.torture.readers import ROOT, folder_of, seeds
from bench.torture.trial import Trials

OUT = ROOT / "out" / "torture"


def reader(
    share: float, inputs: int, python: str, which: tuple[str, int]
) -> tuple[str, dict[str, Any]]:
    """`which` is a name and a seed. Of each way the inputs, the good ones, seconds of work; and
    failures by their place."""
    name, seed = which
    failures = OUT / "failures" / folder_of(name)
    ways = {"strategies": _strategies(share, inputs, seed, failures, name)}
    if python:
        ways["guided"] = _guided(share, seed, python, failures, name)
    total: Counter[str] = Counter()
    for way in ways.values():
        total.update(way.pop("failures"))
    print(f"{name}: {sum(w['inputs'] for w in ways.values()):,} inputs, {dict(total)}", flush=True)
    return name, {**ways, "failures": dict(sorted(total.items()))}


def _strategies(share: float, inputs: int, seed: int, out: Path, name: str) -> dict[str, Any]:
    trials, good, chance = Trials(name, out), seeds(name), random.Random(seed)
    begun = time.process_time()
    for text in good:
        trials.attempt(text)
    while trials.count < inputs if inputs else time.process_time() - begun < share:
        trials.attempt(mutated(chance.choice(good), good, chance))
    spent = round(time.process_time() - begun)
    tried = {"inputs": trials.count, "good": trials.read, "seconds": spent}
    return tried | {"failures": dict(trials.failures)}


def _guided(share: float, seed: int, python: str, out: Path, name: str) -> dict[str, Any]:
    corpus, result = OUT / "corpus" / folder_of(name), OUT / f"{folder_of(name)}.json"
    result.unlink(missing_ok=True)
    words = [python, "-m", "bench.torture.guided", name, str(share), str(seed)]
    paths = [str(corpus), str(result), str(out)]
    done = subprocess.run([*words, *paths], cwd=ROOT, capture_output=True, text=True, check=False)
    if not result.exists():
        last = done.stderr.strip().splitlines()[-1:]
        return {"inputs": 0, "good": 0, "seconds": 0, "failures": {f"not started: {last}": 1}}
    tried: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return tried
