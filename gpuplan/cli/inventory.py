"""`gpuplan inventory`: real machines in, and how they look."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import (
    add_json,
    print_json,
    replace_text,
    report_problems,
    say,
    write_text,
)

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.inventory.draw.placed import Placement
    from gpuplan.inventory.v1 import Inventory
    from gpuplan.source import Sources

EPILOG = """\
examples:
  gpuplan inventory collect > collect.sh   a script to run on each host as root
  gpuplan inventory import gpuplan-*.tar.gz -o inventory.yaml
  gpuplan inventory import nvidia-smi-q-x.xml topo.txt lscpu.txt
  kubectl get nodes -o json | gpuplan inventory import -
  gpuplan inventory show inventory.yaml gpu-01 --plan stacks/chat
  gpuplan inventory show inventory.yaml --svg hosts.svg
  gpuplan inventory allocate inventory.yaml stacks/chat  # it holds its hosts
  gpuplan inventory release inventory.yaml chat          # once it is removed

Which tool wrote a text is found from the text. A folder or an archive has a
subfolder for each host, or is one host; files given one by one are one host.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("import", "collect", "show", "allocate", "release"))
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="import: files, folders, archives, - ; show: an inventory, and a host of it; "
        "allocate: an inventory and stacks; release: an inventory and names of stacks",
    )
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="import: write it here")
    parser.add_argument("--name", default="imported", help="import: the inventory's name")
    parser.add_argument("--plan", type=Path, metavar="STACK", help="show: what a stack places")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="show: what `pack --json` placed")
    parser.add_argument("--svg", default="", metavar="FILE", help="show: write a drawing")
    parser.add_argument("--ascii", action="store_true", help="show: no line-drawing characters")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    actions = {
        "import": _import,
        "collect": _collect,
        "show": _show,
        "allocate": _hold,
        "release": _hold,
    }
    return actions[options.action](options)


def _collect(options: argparse.Namespace) -> int:
    from gpuplan.inventory.collect import script

    problem = write_text(script(), options.output)
    return report_problems([problem], as_json=options.json) if problem else 0


def _import(options: argparse.Namespace) -> int:
    from gpuplan.inventory.readers.registry import likely
    from gpuplan.inventory.run import imported
    from gpuplan.inventory.texts import texts
    from gpuplan.source import Sources

    outputs, problems = texts([Path(p) for p in options.paths], sys.stdin.buffer)
    sources = Sources({t.document.name: t.document for t in outputs})
    answer = imported(outputs, options.name, likely)
    problems += answer.problems
    if answer.text and not options.json:
        failed = write_text(answer.text, options.output)
        problems += [failed] if failed else []
    if options.json:
        return _import_json(answer.data, problems, sources)
    return report_problems(problems, sources)


def _import_json(document: object, problems: list[Diagnostic], sources: Sources) -> int:
    from gpuplan.cli.common import diagnostic_json
    from gpuplan.diagnostics import Severity, worst

    shown = [diagnostic_json(d, sources) for d in dict.fromkeys(problems)]
    print_json({"inventory": document, "problems": shown})
    return 2 if worst(problems) is Severity.ERROR else 0


def _show(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.inventory.draw.boxes import host_drawing
    from gpuplan.inventory.read import chosen, read_inventory
    from gpuplan.report.machines.host import text

    if not options.paths:
        return report_problems([_no_file()])
    try:
        inventory, sources = read_inventory(Path(options.paths[0]))
        hosts = chosen(inventory, options.paths[1:], each=bool(options.plan or options.pack))
        drawings = [
            host_drawing(spec, _placement(options, inventory, name), name if alone else "")
            for spec, name, alone in hosts
        ]
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, getattr(rejected, "sources", None))
    if options.svg:
        from gpuplan.report.machines.hostsvg import svg

        problem = write_text(svg(drawings), options.svg)
        return report_problems([problem] if problem else [], sources)
    plain = options.ascii or not _draws_lines()
    say("\n".join(text(d, ascii_only=plain) for d in drawings), end="")
    return 0


def _hold(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.inventory.holding import allocate, release
    from gpuplan.plan.read import read_plan

    if len(options.paths) < 2:
        return report_problems([_no_holder(options.action)])
    inventory, *names = options.paths
    try:
        if options.action == "release":
            text, said = release(Path(inventory), names), [f"{n} holds nothing now" for n in names]
        else:
            text, new = allocate(Path(inventory), [read_plan(Path(n)) for n in names])
            said = [f"{a.stack} holds {', '.join(h.name for h in a.hosts)}" for a in new]
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, getattr(rejected, "sources", None))
    problem = replace_text(text, Path(inventory))
    if problem is None:
        say("\n".join(said))
    return report_problems([problem]) if problem else 0


def _placement(options: argparse.Namespace, inventory: Inventory, name: str) -> Placement:
    from gpuplan.inventory.draw.placed import Placement, of_pack, of_plan

    if options.plan:
        from gpuplan.plan.read import read_tree

        return of_plan(read_tree(options.plan), name)
    if options.pack:
        from gpuplan.inventory.read import read_answer

        return of_pack(read_answer(options.pack), inventory, name)
    return Placement()


def _draws_lines() -> bool:
    """Whether the terminal's encoding has line-drawing characters."""
    try:
        "╭│·".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _no_holder(action: str) -> Diagnostic:
    from gpuplan.diagnostics import error

    what = "STACK_FOLDER" if action == "allocate" else "STACK_NAME"
    remedy = f"gpuplan inventory {action} INVENTORY {what}…"
    return error("GP009", "an inventory and a stack are to be named", help=remedy)


def _no_file() -> Diagnostic:
    from gpuplan.diagnostics import error

    return error("GP009", "no inventory is named", help="gpuplan inventory show FILE [HOST]")
