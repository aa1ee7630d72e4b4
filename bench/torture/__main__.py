"""Try to break every reader, every property and every write, for as long as there is time.

    python -m bench.torture [READER …] [--seconds N] [--inputs N] [--jobs N] [--seed N]
                            [--manifests N] [--trials N] [--without-atheris] [--keep]

Each reader gets its part of `--seconds`: half for strategies, half for inputs guided by coverage
(atheris, in an environment of its own), or `--inputs` of each. Inputs that fail lie in
out/torture/failures. --keep writes bench/torture/results.json, which docs/reliability.md is made
from: of each reader, of writes and of manifests the last run. Exit code 1 where a reader or a write
failed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from bench.torture import disks, properties
from bench.torture.environment import guided_python
from bench.torture.readers import READERS
from bench.torture.trial import MOST_BYTES, MOST_SECONDS
from bench.torture.work import OUT, reader

RESULTS = Path(__file__).with_name("results.json")


def main() -> int:
    options = _options()
    names = options.readers or list(READERS)
    python = "" if options.without_atheris else guided_python(OUT / "venv")
    share = options.seconds / len(names) / (2 if python else 1)
    work = partial(reader, share, options.inputs, options.seed, python)
    results = _kept() if options.keep else {}
    found: dict[str, Any] = {}
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=1) as pool:
        for name, tried in pool.imap_unordered(work, names):
            found[name] = {**tried, "python": platform.python_version(), "seed": options.seed}
            _keep(options, results, "readers", results.get("readers", {}) | found)
    if options.trials:
        _keep(options, results, "disks", _disks(options.trials, options.seed))
    if options.manifests:
        _keep(options, results, "properties", _properties(options.manifests, options.seed))
    broken = [f"{n}: {f}: {c}" for n, each in found.items() for f, c in each["failures"].items()]
    if options.trials:
        broken += [f"{f}: {c}" for f, c in results["disks"]["failures"].items()]
    print("\n".join(broken) or "nothing broke", file=sys.stderr)
    return 1 if broken else 0


def _kept() -> dict[str, Any]:
    """What the last run of each part found."""
    kept: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return kept


def _keep(options: argparse.Namespace, results: dict[str, Any], part: str, found: Any) -> None:
    results[part] = found
    results["limits"] = {"seconds": MOST_SECONDS, "bytes": MOST_BYTES}
    if options.keep:
        text = json.dumps(dict(sorted(results.items())), indent=1, ensure_ascii=False)
        RESULTS.write_text(text + "\n", "utf-8")


def _properties(count: int, seed: int) -> dict[str, Any]:
    asked: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    examples: dict[str, int] = {}
    begun = time.process_time()
    for number in range(count):
        more, broken = properties.tried(number, seed)
        asked += more
        wrong.update(broken)
        for name in broken:
            print(f"manifest {number}: {name}", flush=True)
            examples.setdefault(name, number)
    return {
        "seconds": round(time.process_time() - begun),
        "asked": dict(sorted(asked.items())),
        "broken": dict(sorted(wrong.items())),
        "first": dict(sorted(examples.items())),
        "parsers": ["ast", "ruamel.yaml", "json", "expat", *properties.programs()],
    }


def _disks(count: int, seed: int) -> dict[str, Any]:
    found = disks.run(count, seed)
    kinds = {"trials": found.counts, "failures": found.failures, "absent": found.absent}
    return {name: dict(sorted(each.items())) for name, each in kinds.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("readers", nargs="*", choices=[*READERS, []], default=[])
    parser.add_argument("--seconds", type=float, default=600, help="of work on readers (600)")
    parser.add_argument("--inputs", type=int, default=0, help="of each reader, instead of seconds")
    parser.add_argument("--manifests", type=int, default=100, help="random manifests (100)")
    parser.add_argument("--trials", type=int, default=40, help="of writes (40)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-atheris", action="store_true")
    parser.add_argument("--keep", action="store_true", help="write bench/torture/results.json")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
