"""`gpuplan diff`: two stacks compared the way a reviewer asks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuplan.cli.check import add_waivers, today
from gpuplan.cli.common import add_json, report_problems, write_text

EPILOG = """\
examples:
  gpuplan diff /tmp/main/stacks/chat stacks/chat
  gpuplan diff /tmp/main/stacks stacks --format markdown -o comment.md
  gpuplan diff /dev/null stacks/chat            everything is new
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", type=Path, help="a stack or a folder of stacks, before")
    parser.add_argument("head", type=Path, help="the same, after")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    parser.add_argument("-o", "--output", default="", metavar="FILE")
    parser.add_argument("--exit-code", action="store_true", help="exit 1 when something changed")
    parser.add_argument("--config", type=Path, help="a pack whose settings replace the built-in's")
    add_waivers(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.policy.review import run_diff
    from gpuplan.render.text import fitted
    from gpuplan.report.changes.diff import render_diff
    from gpuplan.report.paint import paint_for
    from gpuplan.source import Sources

    sources = Sources()
    try:
        comparison = run_diff(
            options.base,
            options.head,
            as_of=today(options),
            pack_path=options.config,
            waivers_path=options.waivers,
            sources=sources,
        )
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, sources, as_json=options.json)
    form = "json" if options.json else options.format
    text = render_diff(comparison, form, paint_for(sys.stdout) if not options.output else None)
    text = fitted(text) if form == "text" and not options.output else text
    if (problem := write_text(text, options.output)) is not None:
        return report_problems([problem])
    return int(options.exit_code and comparison.changed)
