"""`gpuplan replay`: a stack's settings under its load, request by request."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import add_json, print_json, report_problems, write_text

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.replay.run import Load

EPILOG = """\
examples:
  gpuplan replay stacks/chat                   the load that it is sized for
  gpuplan replay stacks/chat --load limit      the most that it is said to serve
  gpuplan replay stacks/chat --load 12.5       requests/s of all replicas
  gpuplan replay stacks/chat --trace day.csv   requests as they were recorded
  gpuplan replay stacks/chat --html chat.html  curves over time and percentiles
  gpuplan replay stacks/chat --exit-code       1 where settings do not deliver

A replay plays the scheduler of vLLM or SGLang with the plan's settings: places,
the budget of tokens, the blocks of cache that memory leaves. Steps take the
seconds that the plan's formulas say, as they are expected. A trace has the
columns arrival_seconds, input_tokens and output_tokens.
"""
LOADS = ("peak", "mean", "limit")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", type=Path, help="a generated stack, or its plan.yaml")
    parser.add_argument("workload", nargs="?", help="replay this workload only")
    load = parser.add_mutually_exclusive_group()
    load.add_argument(
        "--load",
        type=_load,
        default="peak",
        metavar="LOAD",
        help="peak (as sized, with growth), mean, limit, or requests per second (peak)",
    )
    load.add_argument("--trace", type=Path, help="a CSV file of requests")
    parser.add_argument(
        "--requests", type=_count, default=4000, help="how many requests are measured (4000)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="another order of arrivals and lengths (1)"
    )
    parser.add_argument("--exit-code", action="store_true", help="1 where a load is not served")
    parser.add_argument("--html", default="", metavar="FILE", help="write a page of plots")
    add_json(parser)


def _load(text: str) -> str | float:
    if text in LOADS:
        return text
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(LOADS)}, and no rate")
    return rate


def _count(text: str) -> int:
    if not text.isdecimal() or not 100 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 100 to 1000000")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.plan.serialize import to_tree
    from gpuplan.policy.reading import read_stacks
    from gpuplan.replay.run import replay
    from gpuplan.report import replay as report

    try:
        load = _asked(options)
        plans = [stack.plan for stack in read_stacks(options.stack)]
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, as_json=options.json)
    try:
        replayed = [
            outcome
            for plan in plans
            for workload in plan.workloads
            if options.workload in (None, workload.name)
            and (outcome := replay(workload, plan.evidence, load)) is not None
        ]
    except (ArithmeticError, LookupError, NameError, ValueError) as fault:
        return report_problems([_unsound(options.stack, fault)], as_json=options.json)
    if not replayed:
        works = [w for p in plans for w in p.workloads if w.serving]
        engines = sorted({w.engine.name for w in works})
        pools = sorted(w.name for w in works if w.disaggregation)
        return report_problems([_nothing(options, engines, pools)], as_json=options.json)
    if options.html:
        from gpuplan.report.replaypage import page

        if problem := write_text(page(replayed), options.html):
            return report_problems([problem], as_json=options.json)
    if options.json:
        print_json({"workloads": [to_tree(r) | {"delivers": r.delivers} for r in replayed]})
    else:
        print("\n".join(report.text(r) for r in replayed), end="")
    return 1 if options.exit_code and not all(r.delivers for r in replayed) else 0


def _asked(options: argparse.Namespace) -> Load:
    """Raises `Rejected`."""
    from gpuplan.replay.run import Load
    from gpuplan.replay.trace import parsed

    named = isinstance(options.load, str)
    return Load(
        name=options.load if named else "peak",
        per_second=None if named else options.load,
        trace=() if options.trace is None else parsed(_read(options.trace), str(options.trace)),
        requests=options.requests,
        seed=options.seed,
    )


def _read(path: Path) -> str:
    """Raises `Rejected`."""
    from gpuplan.errors import Rejected
    from gpuplan.manifest.load import read_text

    text = read_text(path)
    if not isinstance(text, str):
        raise Rejected([text])
    return text


def _nothing(options: argparse.Namespace, engines: list[str], pools: list[str]) -> Diagnostic:
    from gpuplan.diagnostics import error
    from gpuplan.replay.run import ENGINES

    name = f" '{options.workload}'" if options.workload else ""
    played = ", ".join(ENGINES)
    message = f"{options.stack} has no workload{name} that serves a language model by {played}"
    if pools:
        message += f"; replicas that only prefill or decode are not played ({', '.join(pools)})"
    elif engines:
        message += f"; it has {', '.join(engines)}, or a command of its own"
    return error(
        "GP006", message, help="these schedulers are played; `gpuplan explain` names the workloads"
    )


def _unsound(stack: Path, problem: Exception) -> Diagnostic:
    from gpuplan.diagnostics import AGAIN, error
    from gpuplan.replay.steps import Lacking

    fault = f"nothing can be computed from its numbers ({problem})"
    if isinstance(problem, Lacking):
        fault = f"its evidence has no '{problem}' that can be computed"
    return error(
        "GP009",
        f"{stack} cannot be replayed: {fault}",
        help=AGAIN,
    )
