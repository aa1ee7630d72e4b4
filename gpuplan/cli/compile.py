"""`gpuplan compile`: manifests in, stacks out; nothing is written unless everything compiled."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
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
    from gpuplan.pipeline import Compiled, Result, Standing

STACKS = Path("stacks")
EPILOG = """\
examples:
  gpuplan compile chat.yaml -o stacks
  gpuplan compile examples/*.yaml -o stacks --check   1 when a stack is stale
  gpuplan compile chat.yaml --target kubernetes,libvirt   one stack for each
  gpuplan compile chat.yaml --target eks --plan-only      the answer alone

A stack that is there is updated: what a cluster cannot change keeps its value
or gets a new name. What the policies find is shown. Exit codes: 0; 1 where a
finding is at or above --fail-on, or where --check finds a stale stack; 2 where
a manifest is refused or a policy cannot be evaluated.

Of several targets each has its stack, called NAME-TARGET; nothing is written
unless all of them compile. --plan-only needs no backend and writes nothing, so
nothing can be taken for a stack; the whole plan is in its answer with --json.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", nargs="+", type=Path, help="manifest files")
    parser.add_argument(
        "-o", "--output", type=Path, default=STACKS, help="folder of stacks (stacks)"
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
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "info", "never"),
        default="never",
        help="exit 1 where the policies find something from here (never)",
    )
    parser.add_argument(
        "--target",
        type=_targets,
        default=(),
        metavar="TARGET[,TARGET]",
        help="compile for these instead of the manifest's platform.target",
    )
    parser.add_argument(
        "--plan-only",
        action="store_true",
        help="size for any target, emitted or not: print the answer, write nothing",
    )
    add_json(parser)


def _targets(text: str) -> tuple[str, ...]:
    """Known targets, each once. Raises `ArgumentTypeError`."""
    from gpuplan.diagnostics import did_you_mean
    from gpuplan.targets import OTHER_NAMES, TARGETS

    names = [name.strip() for name in text.split(",")]
    targets = tuple(dict.fromkeys(OTHER_NAMES.get(name, name) for name in names))
    for name in targets:
        if name not in TARGETS:
            near = did_you_mean(name, [*TARGETS, *OTHER_NAMES])
            message = f"unknown target '{name}': {near or 'targets are ' + ', '.join(TARGETS)}"
            raise argparse.ArgumentTypeError(message)
    return targets


def run(options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import Severity, worst
    from gpuplan.pipeline import compile_files

    if problems := list(_contradictions(options)):
        return report_problems(problems, as_json=options.json)
    progress = Progress()
    unreadable: list[Diagnostic] = []
    result = compile_files(
        options.manifest,
        progress,
        partial(_there, options, unreadable),
        targets=options.target,
        plan_only=options.plan_only,
    )
    result = replace(result, problems=(*result.problems, *unreadable))
    if worst(result.problems) is Severity.ERROR:
        progress.done()
        return report_problems(result.problems, result.sources, as_json=options.json)
    if options.plan_only:
        progress.done()
        return _answer(result, options)
    if options.check:
        progress.done()
        return _check(result, options)
    return _write(result, options, progress)


def _there(options: argparse.Namespace, unreadable: list[Diagnostic], name: str) -> Standing:
    """The stack called `name` in the output folder."""
    from gpuplan.errors import Rejected
    from gpuplan.pipeline import Standing
    from gpuplan.plan.read import read_pins, read_plan

    folder = options.output / name
    if options.fresh or not (folder / "plan.yaml").is_file():
        return Standing(forget=tuple(options.forget))
    try:
        standing = Standing(read_plan(folder), tuple(options.forget))
    except Rejected as rejected:
        unreadable.append(unknown_stack(str(folder), rejected.diagnostics[0].message))
        return Standing(forget=tuple(options.forget))
    try:
        return replace(standing, known=read_pins(folder))
    except Rejected as rejected:
        unreadable.append(lost_pins(str(folder), rejected.diagnostics[0].message))
        return standing


def unknown_stack(folder: str, reason: str) -> Diagnostic:
    from gpuplan.diagnostics import warning

    return warning(
        "GP020",
        f"{folder} is not compared with what it was, so a cluster may refuse it: {reason}",
        help="`gpuplan preview --against` shows what would be replaced",
    )


def lost_pins(folder: str, reason: str) -> Diagnostic:
    from gpuplan.diagnostics import warning

    return warning(
        "GP020",
        f"what `gpuplan lock --online` found for {folder} is lost: {reason}",
        help="ask again: `gpuplan lock STACK --online`",
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
    places = [str(options.output / s.plan.name) for s in result.stacks]
    findings, code = _findings(result, places, options.fail_on)
    result = replace(result, problems=(*result.problems, *findings))
    if options.json:
        _print_json(result, options.output, changed)
        return code
    _print(result.stacks, options.output, changed)
    report_problems(result.problems, result.sources)
    return code


def _contradictions(options: argparse.Namespace) -> Iterator[Diagnostic]:
    """Options that have no effect on a plan alone, and targets that nothing is emitted for."""
    from gpuplan.diagnostics import error
    from gpuplan.resolve.messages import unsupported_target
    from gpuplan.targets import TARGETS, implemented

    given = {
        "--output": options.output != STACKS,
        "--force": options.force,
        "--fresh": options.fresh,
        "--forget": bool(options.forget),
        "--check": options.check,
    }
    for name in (n for n, g in given.items() if g and options.plan_only):
        message = f"--plan-only writes nothing, so {name} has no effect"
        yield error("GP007", message, help="leave out one of them")
    for name in () if options.plan_only else options.target:
        if not TARGETS[name].backends:
            yield unsupported_target(name, implemented(), None)


def _answer(result: Result, options: argparse.Namespace) -> int:
    """The plans alone."""
    from gpuplan.report.paint import paint_for
    from gpuplan.report.summary import planned, summary, together

    places = [f"the plan of {s.plan.name}" for s in result.stacks]
    findings, code = _findings(result, places, options.fail_on)
    result = replace(result, problems=(*result.problems, *findings))
    if options.json:
        from gpuplan.plan.serialize import to_json

        problems = [diagnostic_json(d, result.sources) for d in result.problems]
        plans = [{"plan": to_json(s.plan)} for s in result.stacks]
        print_json({"plan_only": True, "stacks": plans, "problems": problems})
        return code
    for stack in result.stacks:
        say(summary(stack.plan, paint_for(sys.stdout)))
        say(planned(stack.plan) + "\n")
    for text in together([stack.plan for stack in result.stacks]):
        say(text + "\n")
    report_problems(result.problems, result.sources)
    return code


def _findings(
    result: Result, places: Sequence[str], fail_on: str
) -> tuple[tuple[Diagnostic, ...], int]:
    """What the policies say of the stacks, which are to stand at `places`, at the lines of their
    manifests, and the exit code."""
    from gpuplan.diagnostics import Severity
    from gpuplan.errors import Rejected
    from gpuplan.plan.serialize import dump
    from gpuplan.policy.origins import diagnostics
    from gpuplan.policy.reading import Stack
    from gpuplan.policy.review import run_compiled

    texts = ({f.path: f.text for f in s.files} for s in result.stacks)
    stacks = [
        Stack(
            place=place,
            plan=s.plan,
            plan_text=files.get("plan.yaml") or dump(s.plan),
            files=s.files,
        )
        for place, s, files in zip(places, result.stacks, texts, strict=True)
    ]
    try:
        report = run_compiled(stacks, as_of=today())
    except Rejected as rejected:
        return rejected.diagnostics, 2
    never = fail_on == "never"
    return diagnostics(report), 0 if never else report.exit_code(Severity(fail_on))


def _print(stacks: Sequence[Compiled], output: Path, changed: dict[str, bool]) -> None:
    from gpuplan.report.paint import paint_for
    from gpuplan.report.summary import summary, together, written

    for stack in stacks:
        name = stack.plan.name
        say(summary(stack.plan, paint_for(sys.stdout)))
        say(written(str(output / name), stack.files, changed[name]) + "\n")
    for text in together([stack.plan for stack in stacks]):
        say(text + "\n")


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
    places = [str(options.output / s.plan.name) for s in result.stacks]
    never = options.fail_on == "never"
    findings, code = ((), 0) if never else _findings(result, places, options.fail_on)
    if options.json:
        problems = [diagnostic_json(d, result.sources) for d in findings]
        print_json({"stale": stale, "problems": problems})
        return code or int(bool(stale))
    for stack, paths in stale.items():
        say(f"{stack}: {len(paths)} files differ: {', '.join(paths)}")
    report_problems(findings, result.sources)
    return code or int(bool(stale))
