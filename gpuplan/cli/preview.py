"""`gpuplan preview`: what the generated program would create, without a cloud or a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, print_json, report_problems, say

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.plan.changes.guests import GuestChange
    from gpuplan.preview.registered import Preview
    from gpuplan.report.paint import Paint

EPILOG = """\
examples:
  gpuplan preview stacks/chat
  gpuplan preview stacks/chat --against ../main/stacks/chat --diff
  gpuplan preview stacks/passthrough --details \\
                  --config 'hosts={"hv-01": "10.0.0.7"}'

It runs the unmodified program under an engine in this process. Nothing is
created, nothing is asked of a network; it needs the Pulumi SDK for Python: pip
install 'gpuplan[pulumi]'.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", type=Path, help="a generated stack")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="STACK",
        help="the stack as it is today; exits 1 where its update would fail",
    )
    parser.add_argument("--environment", default="dev", help="which Pulumi.<name>.yaml (dev)")
    parser.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="set configuration"
    )
    parser.add_argument("--diff", action="store_true", help="show what changes in each resource")
    parser.add_argument("--urns", action="store_true", help="show URNs")
    parser.add_argument("--details", action="store_true", help="show dependencies and providers")
    parser.add_argument("--same", action="store_true", help="show resources that do not change")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the program")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import Severity, worst
    from gpuplan.errors import Rejected
    from gpuplan.preview.comparing.compare import compare
    from gpuplan.preview.identity import check_identity
    from gpuplan.preview.jsonpreview import comparison_json, to_json
    from gpuplan.preview.messages import PreviewFailed
    from gpuplan.preview.sections import View
    from gpuplan.preview.tree import render
    from gpuplan.render.text import printable
    from gpuplan.report.changes.diffwords import guest_lines, guests_tree

    progress = Progress()
    try:
        progress(f"running {options.stack}")
        head, *older = _previews(options)
        moves = tuple(_moves(options))
        guests = _guests(options)
    except Rejected as rejected:
        progress.done()
        sources = rejected.sources if isinstance(rejected, PreviewFailed) else None
        return report_problems(rejected.diagnostics, sources, as_json=options.json)
    progress.done()
    comparison = compare(older[0] if older else None, head)
    if options.json:
        tree = comparison_json(comparison) | {"guests": guests_tree(guests)}
        print_json(tree if older else to_json(head))
        return int(bool(comparison.failing))
    view = View(
        urns=options.urns,
        details=options.details,
        diff=options.diff,
        same=options.same,
        paint=_paint(),
    )
    say(render(comparison, view), end="")
    if lines := guest_lines(guests):
        say("\nGuests:\n" + "\n".join(f"    {printable(line)}" for line in lines))
    own = check_identity(options.stack, head)
    lost = check_identity(options.against, head, complete=False) if options.against else ()
    report_problems(dict.fromkeys((*moves, *own, *lost)))
    if worst(own) is Severity.ERROR:
        return 2
    return int(bool(comparison.failing) or worst(lost) is Severity.ERROR)


def _moves(options: argparse.Namespace) -> Iterator[Diagnostic]:
    """The guests that change their host and the operators that change their Pulumi stack, by the
    two plans; nothing where a stack has none."""
    from gpuplan.kubernetes.update import operators
    from gpuplan.plan.changes.moves import moved, moves
    from gpuplan.plan.read import PLAN, read_plan

    folders = [f for f in (options.against, options.stack) if f and (f / PLAN).is_file()]
    if len(folders) > 1:
        before, after = map(read_plan, folders)
        yield from map(moved, moves(before, after))
        yield from operators.moves(before, after)


def _guests(options: argparse.Namespace) -> tuple[GuestChange, ...]:
    """What becomes of each guest, by both stacks' plans and files."""
    from gpuplan.plan.changes.guests import guest_changes
    from gpuplan.plan.read import PLAN
    from gpuplan.policy.reading import read_side

    folders = [f for f in (options.against, options.stack) if f and (f / PLAN).is_file()]
    if len(folders) < 2:
        return ()
    (before,), (after,) = map(read_side, folders)
    return guest_changes(before.plan, after.plan, before.files, after.files)


def _previews(options: argparse.Namespace) -> list[Preview]:
    """The stack's preview, and that of the one to compare with."""
    from gpuplan.preview.running.run import previews

    folders = [f for f in (options.stack, options.against) if f]
    config = dict(item.partition("=")[::2] for item in options.config)
    return previews(folders, stack=options.environment, config=config, python=options.python)


def _paint() -> Paint:
    from gpuplan.report.paint import paint_for

    return paint_for(sys.stdout)
