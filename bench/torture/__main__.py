"""Try to break every reader, every property and every write, for as long as there is time.

    python -m bench.torture [READER …] [--seconds N] [--inputs N] [--jobs N] [--seed N]
                            [--manifests N] [--trials N] [--without-atheris] [--keep]

Each reader gets its part of `--seconds`: half for strategies, half for inputs guided by coverage
(atheris, in an environment of its own), or `--inputs` of each. Inputs that fail lie in
out/torture/failures. --keep adds what was tried to bench/torture/results.json, which
docs/reliability.md is made from. Exit code 1 where a reader or a write failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import sys
import time
from collections import Counter
from functools import partial
from typing import Any

from bench.torture import disks, properties, results
from bench.torture.environment import guided_python
from bench.torture.readers import READERS
from bench.torture.trial import MOST_BYTES, MOST_SECONDS
from bench.torture.work import OUT, reader

MANIFESTS_SEED = 20  # runs draw the numbers that were not drawn before


def main() -> int:
    options = _options()
    names = options.readers or list(READERS)
    python = "" if options.without_atheris else guided_python(OUT / "venv")
    share = options.seconds / len(names) / (2 if python else 1)
    kept = results.kept() if options.keep else {}
    readers = kept.get("readers", {})
    seeds = {name: results.unused_seed(readers, name, options.seed) for name in names}
    work = partial(reader, share, options.inputs, python)
    now = {"python": platform.python_version(), "commit": results.commit()}
    results_of: dict[str, Any] = {}
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=1) as pool:
        for name, tried in pool.imap_unordered(work, seeds.items()):
            results_of[name] = {**tried, **now, "seed": seeds[name]}
            added = results.reader_added(readers.get(name, {}), results_of[name])
            _keep(options, "readers", {name: added})
    broken = [
        f"{n}: {f}: {c}" for n, each in results_of.items() for f, c in each["failures"].items()
    ]
    if options.trials:
        writes = _disks(options.trials, options.seed)
        old = {**kept.get("disks", {}), "failures": {}}  # mended, or found again
        _keep(options, "disks", results.tree_added(old, writes))
        broken += [f"{f}: {c}" for f, c in writes["failures"].items()]
    if options.manifests:
        old = kept.get("properties", {})
        begin = old.get("asked", {}).get("manifests", 0)
        answers = _properties(range(begin, begin + options.manifests))
        _keep(options, "properties", results.tree_added(old, answers))
    print("\n".join(broken) or "nothing broke", file=sys.stderr)
    return 1 if broken else 0


def _keep(options: argparse.Namespace, part: str, values: dict[str, Any]) -> None:
    """Written at once: a run that is ended early counts."""
    if options.keep:
        kept = results.kept()
        kept[part] = {**kept.get(part, {}), **values}
        kept["limits"] = {"seconds": MOST_SECONDS, "bytes": MOST_BYTES}
        results.write(kept)


def _properties(numbers: range) -> dict[str, Any]:
    asked: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    examples: dict[str, int] = {}
    begun = time.process_time()
    for number in numbers:
        more, broken = properties.tried(number, MANIFESTS_SEED)
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
    counts = disks.run(count, seed)
    kinds = {"trials": counts.counts, "failures": counts.failures, "absent": counts.absent}
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
