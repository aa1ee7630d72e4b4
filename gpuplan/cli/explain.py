"""`gpuplan explain`: reads plan.yaml and evidence.yaml alone, so it answers at once."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import add_json, print_json, report_problems, say

if TYPE_CHECKING:
    from gpuplan.plan.wording import Tree

EPILOG = """\
examples:
  gpuplan explain stacks/chat                  the choice and the runner-up
  gpuplan explain stacks/chat kv_cache_bytes   formula, inputs and sources
  gpuplan explain stacks/chat decode           the values of a group
  gpuplan explain stacks/chat balance          what runs out first
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", type=Path, help="a generated stack, or its plan.yaml")
    parser.add_argument("quantity", nargs="?", help="WORKLOAD.NAME, or NAME for every workload")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.plan.read import check, read_tree

    try:
        plan = read_tree(options.stack)
        try:
            return _answer(options, plan)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            check(options.stack)  # reading all of it takes longer than most answers
            raise
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, as_json=options.json)


def _answer(options: argparse.Namespace, plan: Tree) -> int:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.report import balance, explain, order, regions

    if options.quantity is None:
        print_json(plan) if options.json else say(explain.summary(plan), end="")
        return 0
    for topic, field in ((order, "orders"), (regions, "regions")):
        if options.quantity == topic.NAME and plan.get(field):
            print_json(plan[field]) if options.json else say(topic.whole(plan), end="")
            return 0
    if options.quantity == balance.NAME and (limits := balance.rows(plan)):
        print_json(limits) if options.json else say(balance.whole(plan), end="")
        return 0
    members = explain.group(plan, options.quantity)
    if members and not options.json:
        say(members, end="")
        return 0
    entries = explain.find(plan, options.quantity)
    if isinstance(entries, Diagnostic):
        return report_problems([entries], as_json=options.json)
    if options.json:
        print_json(entries)
    else:
        say("\n".join(explain.quantity(plan, entry) for entry in entries), end="")
    return 0
