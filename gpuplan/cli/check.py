"""`gpuplan check`: the policies' verdict on stacks, in the formats that CI systems read."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli import common
from gpuplan.cli.common import add_json, day, report_problems, write_text

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.policy.reading import Stack
    from gpuplan.render.tree import File

FORMATS = ("full", "concise", "json", "sarif", "junit", "github", "gitlab", "markdown")
EPILOG = """\
examples:
  gpuplan check stacks/chat
  gpuplan check stacks --fail-on warning
  gpuplan check stacks/chat --preview      what custom.py adds is judged too
  gpuplan check stacks --output sarif=gpuplan.sarif --output github
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="+", type=Path, help="stacks, folders of stacks, plan files")
    parser.add_argument(
        "--output",
        action="append",
        metavar="FORMAT[=FILE]",
        help=f"may be given several times: {', '.join(FORMATS)}",
    )
    parser.add_argument(
        "--fail-on", choices=("error", "warning", "info"), default="error", help="exit 1 from here"
    )
    parser.add_argument("--config", type=Path, help="a pack whose settings replace the built-in's")
    parser.add_argument(
        "--manifest",
        action="append",
        default=[],
        type=Path,
        help="what a stack was made from, where neither this folder nor the stacks' has it",
    )
    parser.add_argument(
        "--preview",
        action="store_true",
        help="run each program as `gpuplan preview` does, and judge what it registers too",
    )
    parser.add_argument(
        "--inventory",
        action="append",
        default=[],
        type=Path,
        help="whose allocations say which stack holds which host; repeatable",
    )
    add_waivers(parser)
    add_json(parser)


def add_waivers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--waivers", type=Path, help="waivers (policies/waivers.yaml if it exists)")
    parser.add_argument(
        "--as-of", type=day, metavar="2026-02-01", help="judge expiries on this day (today)"
    )


def today(options: argparse.Namespace) -> date:
    return options.as_of or common.today()


def run(options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import Severity
    from gpuplan.errors import Rejected
    from gpuplan.policy.review import run_check
    from gpuplan.render.text import fitted
    from gpuplan.report.findings import render
    from gpuplan.report.paint import paint_for
    from gpuplan.source import Sources

    sources = Sources()
    outputs = [o.partition("=")[::2] for o in options.output or ()]
    if options.json and ("json", "") not in outputs:
        outputs.append(("json", ""))
    outputs = outputs or [("full", "")]
    unknown = sorted({form for form, _ in outputs if form not in FORMATS})
    if unknown:
        return report_problems([unknown_format(unknown[0])])
    try:
        report = run_check(
            options.path,
            as_of=today(options),
            pack_path=options.config,
            waivers_path=options.waivers,
            sources=sources,
            manifest_paths=options.manifest,
            registered=_registered if options.preview else lambda _: (),
            inventory_paths=options.inventory,
        )
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, sources, as_json=options.json)
    for form, file in outputs:
        text = render(report, form, paint_for(sys.stdout) if not file else None, sources)
        text = fitted(text) if form == "full" and not file else text
        if (problem := write_text(text, file)) is not None:
            return report_problems([problem])
    return report.exit_code(Severity(options.fail_on))


def _registered(stack: Stack) -> list[File]:
    """The Kubernetes objects of a stack's program, as files that hold one each. Raises
    `PreviewFailed`."""
    import json

    from gpuplan.preview.objects import kubernetes_objects
    from gpuplan.preview.running.run import preview
    from gpuplan.preview.urn import name_of
    from gpuplan.render.tree import File

    if not (Path(stack.place) / "__main__.py").is_file():
        return []
    return [
        File(
            f".preview/{number:04}-{o.manifest['kind']}-{name_of(o.urn)}.json",
            json.dumps(o.manifest, indent=2, default=str) + "\n",
        )
        for number, o in enumerate(kubernetes_objects(preview(Path(stack.place))))
    ]


def unknown_format(name: str) -> Diagnostic:
    from gpuplan.diagnostics import did_you_mean, error

    remedy = did_you_mean(name, FORMATS) or f"use {', '.join(FORMATS)}"
    return error("GP006", f"unknown format '{name}'", help=remedy)
