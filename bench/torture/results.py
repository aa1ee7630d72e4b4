"""bench/torture/results.json: what the runs so far found, each part added to what was there.

A run's seed is never one that the part had before, so that no input is counted twice; `since` and
`until` are the commits between which the inputs were tried. `failures` are the last run's: a run
begins with the kept corpus, in which each input that failed once is.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from bench.torture.readers import ROOT

RESULTS = Path(__file__).with_name("results.json")
WAYS = ("strategies", "guided")
Counts = dict[str, Any]


def kept() -> Counts:
    kept_results: Counts = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return kept_results


def write(results: Counts) -> None:
    text = json.dumps(dict(sorted(results.items())), indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", "utf-8")


def unused_seed(readers: Counts, name: str, seed: int) -> int:
    """`seed`, or the next that this reader was not tried with."""
    used = readers.get(name, {}).get("seeds", [])
    while seed in used:
        seed += 1
    return seed


def reader_added(before: Counts, now: Counts) -> Counts:
    """Of one reader. Faults of earlier runs that are no longer found were mended."""
    ways = {
        way: _sum(before.get(way, {}), now.get(way, {})) for way in WAYS if way in {**before, **now}
    }
    gone = {f: n for f, n in before.get("failures", {}).items() if f not in now["failures"]}
    mended = Counter(before.get("mended", {})) + Counter(gone)
    return {
        **ways,
        "failures": now["failures"],
        "mended": dict(sorted(mended.items())),
        "python": now["python"],
        "seeds": [*before.get("seeds", []), now["seed"]],
        "since": before.get("since", now["commit"]),
        "until": now["commit"],
    }


def tree_added(before: Counts, now: Counts) -> Counts:
    """Counters, and counters in them, added; of anything else what is now."""
    out = dict(before)
    for name, value in now.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            out[name] = tree_added(old, value)
        elif isinstance(value, int | float) and isinstance(old, int | float):
            out[name] = old + value
        else:
            out[name] = value
    return out


def commit() -> str:
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _sum(before: Counts, now: Counts) -> Counts:
    return {key: before.get(key, 0) + now.get(key, 0) for key in ("inputs", "good", "seconds")}
