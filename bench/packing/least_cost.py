"""How near to the least cost generated fleets are packed, in what time.

    python -m bench.packing.least_cost [SIZE …] [--mix MIX …] [--changed PART …] [--same]

Each answer is checked item by item (tests/support/packing_check.py). The gap is the cost over the
proven lower bound. --changed also replaces parts of the items and packs again with what stands
kept;
--same packs in two processes with different hash seeds and compares the bytes.
Goals, CPU seconds: 10,000 items ≤ 0.7 % in < 10; 1,000 ≤ 1.5 % in < 6; 100 optimal or one host in
< 3; 50,000 ≤ 0.5 % in < 30; 1 % changed ≤ 1 % above a fresh answer with ≤ 40 moves.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import replace

from bench.packing.fleets import MIXES, UNSEEN, fleet, replaced
from gpuplan.fleet.problem import Problem, Result
from gpuplan.fleet.solver import pack
from gpuplan.report.machines.pack import gap, gap_hosts
from tests.support.packing_check import faults

MOVE_COST = 1_000_000
HEAD = (
    f"{'fleet':<28}{'gap':>8}{'hosts':>7}{'over':>6}{'USD/h over':>12}{'refused':>9}"
    f"{'s':>8}{'CPU s':>8}{'moves':>7}{'MiB':>6}"
)


def main() -> int:
    options = _options()
    if options.digest:
        print(_digest(pack(fleet(options.mix[0], options.size[0], options.seeds))))
        return 0
    print(HEAD)
    wrong = [text for size in options.size for text in _size(options, size)]
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--mix", nargs="*", choices=(*MIXES, *UNSEEN), default=list(MIXES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--changed", type=float, nargs="*", default=[])
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--digest", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _size(options: argparse.Namespace, size: int) -> Iterator[str]:
    for mix in options.mix:
        for seed in range(options.first, options.first + options.seeds):
            name, problem = f"{mix} {size:,} #{seed}", fleet(mix, size, seed)
            result = yield from _packed(name, problem)
            for part in options.changed:
                changed = replaced(problem, result, part, mix, seed)
                yield from _packed(f"  {part:.0%} changed", _priced(changed))
        if options.same:
            yield from _same(mix, size)


def _priced(problem: Problem) -> Problem:
    return replace(problem, move_cost=MOVE_COST)


def _packed(name: str, problem: Problem) -> Generator[str, None, Result]:
    started, worked = time.perf_counter(), time.process_time()
    result = pack(problem)
    seconds, work = time.perf_counter() - started, time.process_time() - worked
    hosts, mean = sum(n for _, n in result.hosts), gap_hosts(result)
    over = result.cost - result.bound
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    refused = sum(len(r.numbers) for r in result.refused)
    late = f"  cut short: {', '.join(result.cut_short)}" if result.cut_short else ""
    print(
        f"{name:<28}{gap(result):>8.2%}{hosts:>7,}{mean:>6.1f}{over / 1e6:>12,.2f}"
        f"{refused:>9,}{seconds:>8.2f}{work:>8.2f}{len(result.moved):>7,}{peak:>6}{late}",
        flush=True,
    )
    yield from (f"{name}: {text}" for text in faults(problem, result))
    return result


def _digest(result: Result) -> str:
    return hashlib.sha256(repr(result).encode()).hexdigest()


def _same(mix: str, size: int) -> Iterator[str]:
    """The same bytes in two processes."""
    outputs = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "bench.packing.least_cost", str(size), "--digest"]
        command += ["--mix", mix, "--seeds", "1"]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.add(done.stdout)
    if len(outputs) > 1:
        yield f"{mix} {size:,}: two processes, two answers"


if __name__ == "__main__":
    sys.exit(main())
