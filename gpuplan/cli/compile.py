"""`gpuplan compile`: manifests in, stacks out; nothing is written unless everything compiled."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import (
    Progress,
    add_json,
    diagnostic_json,
    print_json,
    report_problems,
    say,
    today,
)

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.pipeline import Compiled, Result, There

EPILOG = """\
examples:
  gpuplan compile chat.yaml -o stacks
  gpuplan compile examples/*.yaml -o stacks --check   1 when a stack is stale

A stack that is there is updated: what a cluster cannot change keeps its value
or gets a new name. What the policies find is shown; `gpuplan check` fails on
it.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", nargs="+", type=Path, help="manifest files")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("stacks"), help="folder of stacks (stacks)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files edited by hand")
    parser.add_argument(
        "--fresh", action="store_true", help="as if no stack was there: a cluster may refuse it"
    )
    parser.add_argument(
        "--forget",
        action="append",
        default=[],
        metavar="NAMESPACE[/CLAIM]",
        help="let go what is kept for its data alone; may be given several times",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a stack would change"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import Severity, worst
    from gpuplan.pipeline import compile_files

    progress = Progress()
    unreadable: list[Diagnostic] = []
    result = compile_files(options.manifest, progress, partial(_there, options, unreadable))
    result = replace(result, problems=(*result.problems, *unreadable))
    if worst(result.problems) is Severity.ERROR:
        progress.done()
        return report_problems(result.problems, result.sources, as_json=options.json)
    if options.check:
        progress.done()
        return _check(result, options)
    return _write(result, options, progress)


def _there(options: argparse.Namespace, unreadable: list[Diagnostic], name: str) -> There:
    """The stack called `name` in the output folder."""
    from gpuplan.errors import Rejected
    from gpuplan.pipeline import There
    from gpuplan.plan.read import read_plan

    folder = options.output / name
    if options.fresh or not (folder / "plan.yaml").is_file():
        return There(forget=tuple(options.forget))
    try:
        return There(read_plan(folder), tuple(options.forget))
    except Rejected as rejected:
        unreadable.append(unknown_stack(str(folder), rejected.diagnostics[0].message))
        return There(forget=tuple(options.forget))


def unknown_stack(folder: str, reason: str) -> Diagnostic:
    from gpuplan.diagnostics import warning

    return warning(
        "GP020",
        f"{folder} is not compared with what it was, so a cluster may refuse it: {reason}",
        help="`gpuplan preview --against` shows what would be replaced",
    )


def _write(result: Result, options: argparse.Namespace, progress: Progress) -> int:
    from gpuplan.output import conflicts, is_current, write_stack

    problems = [
        problem
        for stack in result.stacks
        if not options.force
        for problem in conflicts(options.output / stack.plan.name, stack.files)
    ]
    if problems:
        progress.done()
        return report_problems(problems, result.sources, as_json=options.json)
    changed: dict[str, bool] = {}
    for stack in result.stacks:
        target = options.output / stack.plan.name
        progress(f"writing {target}")
        changed[stack.plan.name] = not is_current(target, stack.files)
        problems += write_stack(target, stack.files, force=options.force)
    progress.done()
    if problems:
        return report_problems(problems, result.sources, as_json=options.json)
    result = replace(result, problems=(*result.problems, *_findings(result, options)))
    if options.json:
        _print_json(result, options.output, changed)
        return 0
    _print(result.stacks, options.output, changed)
    report_problems(result.problems, result.sources)
    return 0


def _findings(result: Result, options: argparse.Namespace) -> tuple[Diagnostic, ...]:
    """What the policies say of the stacks, at the lines of their manifests."""
    from gpuplan.errors import Rejected
    from gpuplan.policy.origins import diagnostics
    from gpuplan.policy.reading import Stack
    from gpuplan.policy.review import run_compiled

    texts = ({f.path: f.text for f in s.files} for s in result.stacks)
    stacks = [
        Stack(
            place=str(options.output / s.plan.name),
            plan=s.plan,
            plan_text=files["plan.yaml"],
            files=s.files,
        )
        for s, files in zip(result.stacks, texts, strict=True)
    ]
    try:
        return diagnostics(run_compiled(stacks, as_of=today()))
    except Rejected as rejected:
        return rejected.diagnostics


def _print(stacks: Sequence[Compiled], output: Path, changed: dict[str, bool]) -> None:
    from gpuplan.report.paint import paint_for
    from gpuplan.report.summary import summary, written

    for stack in stacks:
        name = stack.plan.name
        say(summary(stack.plan, paint_for(sys.stdout)))
        say(written(str(output / name), stack.files, changed[name]) + "\n")


def _print_json(result: Result, output: Path, changed: dict[str, bool]) -> None:
    from gpuplan.plan.serialize import to_json

    print_json(
        {
            "stacks": [
                {
                    "path": str(output / s.plan.name),
                    "changed": changed[s.plan.name],
                    "files": [f.path for f in s.files],
                    "plan": to_json(s.plan),
                }
                for s in result.stacks
            ],
            "problems": [diagnostic_json(d, result.sources) for d in result.problems],
        }
    )


def _check(result: Result, options: argparse.Namespace) -> int:
    from gpuplan.output import differences

    stale = {
        str(options.output / s.plan.name): paths
        for s in result.stacks
        if (paths := differences(options.output / s.plan.name, s.files))
    }
    if options.json:
        print_json({"stale": stale})
    for stack, paths in () if options.json else stale.items():
        say(f"{stack}: {len(paths)} files differ: {', '.join(paths)}")
    return 1 if stale else 0
