"""Reference convergence of MLPerf Training → gpuplan/accuracy/data/references.py.

    python -m bench.published.references CHECKOUT

`CHECKOUT` is a clone (bare or not) of mlcommons/logging. Before each round its working groups train
the reference implementation some twenty times at each of several batches, and no submission may
converge faster: samples to the target that are known without any submission. A mean leaves the
slowest and the fastest run out, as the rules' checker does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from statistics import mean

from bench.fitting.fit import table, write

COMMIT = "7bbf792686936919201796120b970dd820331099"
READ = "2026-11-27"
ROUNDS = ("4.0", "4.1", "5.0", "5.1")
# Benchmark → name of its file, and how many of its units make a sample.
FILES = {
    "bert": ("bert", 1.0),
    "flux": ("flux1", 1.0),
    "sd": ("stable_diffusion", 1.0),
    "gpt3": ("gpt3", 2048.0),
    "llama2-70b": ("llama2_70b_lora", 1.0),
    "llama3.1-8b": ("llama31_8b", 1.0),
    "llama3.1-405b": ("llama31_405b", 1.0),
}
ABOUT = """Samples to the target of MLPerf Training's references

By benchmark and round, from where on it holds: the global batch and the mean samples of runs of
the reference implementation.
"""
Means = tuple[tuple[int, int], ...]


def means(checkout: str, name: str, unit: float, of_round: str) -> Means:
    """Batch and mean, ascending; none where the round has not the benchmark. Raises
    `CalledProcessError` where the checkout lacks the commit."""
    path = f"mlperf_logging/rcp_checker/training_{of_round}.0/rcps_{name}.json"
    git = ("git", "-C", checkout)
    listed = subprocess.check_output([*git, "ls-tree", "--name-only", COMMIT, path], text=True)
    shown = (
        subprocess.check_output([*git, "show", f"{COMMIT}:{path}"], text=True) if listed else "{}"
    )
    points = json.loads(shown).values()
    return tuple(sorted((int(p["BS"]), round(mean(_runs(p)) / unit)) for p in points))


def _runs(point: dict[str, list[float]]) -> list[float]:
    units = ("Epochs to converge", "samples to converge")
    runs = sorted(next(point[unit] for unit in units if unit in point))
    return runs[1:-1]


def references(checkout: str) -> Iterator[tuple[str, dict[str, Means]]]:
    for benchmark, (name, unit) in FILES.items():
        rounds: dict[str, Means] = {}
        for of_round in ROUNDS:
            of = means(checkout, name, unit, of_round)
            if of and of != next(reversed(rounds.values()), ()):
                rounds[of_round] = of
        yield benchmark, rounds


def main(checkout: str) -> None:
    lines = [
        f"SOURCE = 'mlcommons/logging mlperf_logging/rcp_checker at {COMMIT[:12]} ({READ})'",
        *table(
            "REFERENCES: dict[str, dict[str, tuple[tuple[int, int], ...]]]",
            dict(references(checkout)),
        ),
    ]
    write("accuracy/data/references.py", ABOUT, lines)


if __name__ == "__main__":
    main(sys.argv[1])
