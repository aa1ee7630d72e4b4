"""The command line: picks a verb, imports only that verb, maps problems to exit codes."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence

from gpuplan import __version__

VERBS = {
    "init": "write a first manifest, from answers or from a config.json",
    "compile": "size the workloads of manifests and write their stacks",
    "explain": "say why a stack is what it is: any number down to its sources",
    "cost": "say what a stack costs: an hour, a month, a request, a million tokens, a run",
    "compare": "compare clouds, owned and rented machines over years: cost, break-even, risk",
    "capacity": "say what machines can serve: requests per second, or the largest model",
    "replay": "run a stack's settings under its load: rates, percentiles, what waits",
    "pack": "pack many workloads on one fleet: least cost, proven bound, what stands where",
    "lock": "say which digests and revisions are known; with --online ask for the others",
    "preview": "show the resources a stack's program would create, without a cloud or a cluster",
    "simulate": "bind a stack's pods by the real scheduler, on nodes that exist on paper",
    "check": "judge stacks by the policies: too little, too much, unsafe, edited",
    "diff": "compare two stacks: GPUs, nodes, money, memory, findings",
    "accuracy": "hold predictions against measurements",
    "schema": "print the JSON Schema of a document",
    "catalog": "list GPUs, nodes, prices, engines and models, with their sources",
    "inventory": "read what tools say of real machines into an inventory, and draw them",
    "completion": "print a shell completion script",
}
FOLDERS = {"cost": "money.", "compare": "money."}  # of verbs whose module is in one
DESCRIPTION = "From a workload manifest to sized, reviewable GPU infrastructure."
EPILOG = """\
a first stack:
  gpuplan init -o chat.yaml            answer a few questions
  gpuplan compile chat.yaml -o stacks  writes stacks/<name>/
  gpuplan explain stacks/<name>        why this GPU, and what it was chosen over
  gpuplan preview stacks/<name>        what `pulumi up` would create
  gpuplan check stacks/<name>          what a policy gate in CI says

exit codes:
  0  clean
  1  findings at or above --fail-on, or differences with --exit-code or --check
  2  the input is wrong: every problem is listed with its line and a remedy
  3  a mistake in gpuplan itself: the line to report is printed

`gpuplan VERB --help` explains a verb and gives examples.
"""


def verb_module(name: str) -> object:
    return importlib.import_module(f"gpuplan.cli.{FOLDERS.get(name, '')}{name}")


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser; of the verb `only` alone, where it is one."""
    parser = argparse.ArgumentParser(
        prog="gpuplan",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gpuplan {__version__}")
    # with the name of the program, since argparse writes a usage to learn it
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, prog="gpuplan")
    for name in VERBS if only not in VERBS else (only,):
        summary = VERBS[name]
        child = verbs.add_parser(
            name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if only in (None, name):
            module = verb_module(name)
            child.description = summary[0].upper() + summary[1:] + "."
            child.epilog = getattr(module, "EPILOG", None)
            module.configure(child)  # type: ignore[attr-defined]
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "≤" still gets the answer
    given = list(sys.argv[1:] if arguments is None else arguments)
    chosen = given[0] if given else ""
    options = build_parser(only=chosen).parse_args(given)
    try:
        code: int = verb_module(options.verb).run(options)  # type: ignore[attr-defined]
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as problem:
        reason = (problem.strerror or f"{problem}" or type(problem).__name__).lower()
        if problem.filename is not None:  # one that the verb did not expect
            return _said(f"error: cannot use {problem.filename!s}: {reason}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _said(f"error: cannot write the answer: {reason}")
    return code


def _said(message: str) -> int:
    """The exit code of wrong input, with its message where somebody can read one."""
    with contextlib.suppress(OSError, ValueError):
        print(message, file=sys.stderr, flush=True)
    return 2
