"""`gpuplan lock`: which digests and revisions a stack knows, and asking for the others."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, diagnostic_json, print_json, report_problems, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuplan.diagnostics import Diagnostic
    from gpuplan.plan.model import Plan
    from gpuplan.plan.outside.pins import Pin

EPILOG = """\
examples:
  gpuplan lock stacks/chat
  gpuplan lock stacks/chat --online  # asks registries and the Hub, writes it
  HTTPS_PROXY=http://proxy:3128 gpuplan lock stacks/chat --online

Without --online nothing is asked of a network. With it, what the stack does not
know is asked for by name, without credentials: digests of images at their
registry, of charts at their repository, commits of models at Hugging Face
(HF_ENDPOINT, or --hub). The stack is written again with them: its lock, its
plan and its program. A later `gpuplan compile` keeps them while the names stay.

exit codes: 0; 1 with --exit-code where something stays unknown; 2 where
something that was asked for was not found: the rest is written.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", type=Path, help="a generated stack")
    parser.add_argument("--online", action="store_true", help="ask for what is not known")
    parser.add_argument("--hub", metavar="URL", help="the Hub of models (https://huggingface.co)")
    parser.add_argument(
        "--exit-code", action="store_true", help="exit 1 where something is not known"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.plan.outside.pins import pinned, pins
    from gpuplan.policy.reading import no_stack, read_stacks

    progress = Progress()
    problems: tuple[Diagnostic, ...] = ()
    try:
        stacks = read_stacks(options.stack)
        if len(stacks) != 1 or not stacks[0].files:
            raise Rejected([no_stack(options.stack)])
        stack = stacks[0]
        plan = stack.plan
        if options.online:
            from gpuplan.online.fill import ask
            from gpuplan.online.hub import HUB

            hub = options.hub or os.environ.get("HF_ENDPOINT") or HUB
            values, problems = ask(pins(plan), hub, progress)
            progress.done()
            plan = pinned(plan, values)
            if values:
                problems = (*_write(options.stack, stack.plan, plan), *problems)
    except Rejected as rejected:
        progress.done()
        return report_problems(rejected.diagnostics, as_json=options.json)
    unknown = any(p.value is None for p in pins(plan))
    code = _print(pins(plan), problems, as_json=options.json)
    return code or int(options.exit_code and unknown)


def _write(folder: Path, before: Plan, plan: Plan) -> Sequence[Diagnostic]:
    """The stack again, with what was found. Raises `Rejected` where another gpuplan wrote it."""
    from gpuplan.errors import Rejected
    from gpuplan.output import differences, write_stack
    from gpuplan.pipeline import emit

    if stale := differences(folder, emit(before).files):
        raise Rejected([written_by_another(str(folder), stale)])
    return write_stack(folder, emit(plan).files)


def written_by_another(folder: str, paths: Sequence[str]) -> Diagnostic:
    from gpuplan.diagnostics import error

    shown = ", ".join(paths[:3])
    return error(
        "GP013",
        f"{folder} is not what this gpuplan writes: {shown}",
        help="compile its manifest again first, and keep what was edited by hand in it",
    )


def _print(pins: Sequence[Pin], problems: Sequence[Diagnostic], *, as_json: bool) -> int:
    from gpuplan.plan.outside.pins import UNKNOWN
    from gpuplan.plan.serialize import to_json
    from gpuplan.source import Sources

    if as_json:
        listed = [diagnostic_json(d, Sources()) for d in problems]
        print_json({"pins": [to_json(p) for p in pins], "problems": listed})
        return 2 if problems else 0
    for pin in pins:
        say(f"{pin.kind:<6} {pin.name}\n       {pin.value or UNKNOWN}")
    return report_problems(problems)
