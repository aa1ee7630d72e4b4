"""How long the verbs take beside importing what they are built on.

    python -m bench.times.cli [ROUNDS]

Every round starts each command once, in turn, so that a busy machine slows all of them alike; the
ratio is that of the medians. A first round, not counted, writes the bytecode that an installed
program has. A goal is a multiple of the yardstick.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFEST = "examples/assistant-70b.yaml"
STACK = "stacks/assistant-70b"
YARDSTICK = "import pydantic, ruamel.yaml, jinja2"
VERBS = {
    "--help": (["--help"], 1.2),
    "explain STACK": (["explain", STACK], 1.2),
    "explain STACK QUANTITY": (["explain", STACK, "kv_cache_bytes"], 1.2),
    "compile 70B": (["compile", MANIFEST, "-o", "{folder}"], 3.0),
    "check STACK": (["check", STACK], None),
    "cost STACK": (["cost", STACK], None),
    "diff STACK STACK": (["diff", STACK, "stacks/chat"], None),
    "schema": (["schema"], None),
    "catalog list gpus": (["catalog", "list", "gpus"], None),
    "catalog list instances": (["catalog", "list", "instances"], None),
    "preview STACK": (["preview", STACK], None),
}


def seconds(command: list[str]) -> float:
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    elapsed = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return elapsed


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    times: dict[str, list[float]] = {name: [] for name in ("yardstick", *VERBS)}
    for _ in range(rounds + 1):
        times["yardstick"].append(seconds([sys.executable, "-c", YARDSTICK]))
        for name, (arguments, _goal) in VERBS.items():
            with tempfile.TemporaryDirectory() as folder:
                given = [a.format(folder=folder) for a in arguments]
                times[name].append(seconds([sys.executable, "-m", "gpuplan", *given]))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    print(f"{rounds} rounds; medians of whole processes; yardstick: python -c '{YARDSTICK}'")
    for name, median in medians.items():
        goal = VERBS.get(name, ([], None))[1]
        shown = f"   goal ≤ {goal}" if goal else ""
        print(f"{name:<24}{median * 1000:7.0f} ms{median / medians['yardstick']:7.2f} ×{shown}")


if __name__ == "__main__":
    main()
