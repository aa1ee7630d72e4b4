"""What `docs/` has of the program itself: `python -m gpuplan.cli.document cli|manifest|tour`, which
prints a page, and `schemas FOLDER`.

The reference is made from the parsers and not from `--help`, whose layout differs between versions
of Python.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpuplan.cli.main import DESCRIPTION, EPILOG, VERBS, build_parser, main
from gpuplan.cli.schema import DOCUMENTS
from gpuplan.manifest import page as fields
from gpuplan.schemas import schema

PACK = (
    "gpuplan pack examples/requests/teams.yaml examples/assistant-70b.yaml "
    "--inventory examples/inventories/fleet.yaml"
)
TOUR = (
    (
        "compile: the answer first, then why, then what was written",
        "gpuplan compile examples/assistant-70b.yaml -o stacks",
    ),
    ("explain: the choice", "gpuplan explain stacks/assistant-70b"),
    (
        "explain: any number down to its sources",
        "gpuplan explain stacks/assistant-70b kv_cache_bytes",
    ),
    (
        "cost: the month, a request, a million tokens, other ways to pay",
        "gpuplan cost stacks/finetune --as-of 2026-11-21",
    ),
    (
        "capacity: what the same rack could serve, with prefill and decode together or apart",
        "gpuplan capacity examples/assistant-70b.yaml --split",
    ),
    (
        "pack: what several teams and a service ask of one fleet, and how far from the least cost",
        PACK,
    ),
    (
        "preview: what `pulumi up` would create, without a cluster or a credential",
        "gpuplan preview stacks/assistant-70b",
    ),
    ("check: the policies", "gpuplan check stacks/assistant-70b --as-of 2026-11-21"),
    (
        "diff: what doubling the peak would change, as a pull request shows it",
        "gpuplan diff stacks/assistant-70b next/assistant-70b --as-of 2026-11-21",
    ),
    ("mistakes: all at once, each at its line", "gpuplan compile docs/mistakes.yaml"),
)


def reference() -> Iterator[str]:
    """The page of all verbs."""
    yield "# Command line\n\nMade from the program by `make generate`.\n"
    yield f"{DESCRIPTION}\n\n```\n{EPILOG.rstrip()}\n```\n"
    parser = build_parser()
    chooser = next(a for a in parser._actions if a.dest == "verb")  # noqa: SLF001
    for verb, child in dict(chooser.choices or {}).items():
        yield f"## gpuplan {verb}\n\n{VERBS[verb][0].upper()}{VERBS[verb][1:]}.\n"
        yield "| argument | meaning |\n|---|---|"
        for action in child._actions:  # noqa: SLF001
            if not isinstance(action, argparse._HelpAction):  # noqa: SLF001
                yield _row(action)
        yield ""
        if child.epilog:
            yield f"```\n{child.epilog.rstrip()}\n```\n"


def _row(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else (action.metavar or action.dest.upper())
    if action.choices and not action.metavar:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    name = f"{', '.join(action.option_strings)} {value}".strip()
    many = " …" if action.nargs in ("+", "*") else ""
    return f"| `{name}{many}` | {(action.help or '').replace('|', chr(92) + '|')} |"


def tour() -> Iterator[str]:
    """What a reader will see on a terminal, command by command."""
    with tempfile.TemporaryDirectory() as folder:
        _double_the_peak(Path(folder))
        yield from _commands(folder)


def _double_the_peak(folder: Path) -> None:
    """The stack of the diff: the example with twice its peak, compiled beside it."""
    text = Path("examples/assistant-70b.yaml").read_text(encoding="utf-8")
    shutil.copytree("examples/inventories", folder / "inventories")
    changed = folder / "assistant-70b.yaml"
    changed.write_text(text.replace("peak: 8", "peak: 16"), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["compile", str(changed), "-o", str(folder / "next")])


def _commands(folder: str) -> Iterator[str]:
    yield "# A tour\n\nWhat the program prints, made by running it (`make generate`).\n"
    for title, command in TOUR:
        output = _output(command.replace(" next/", f" {folder}/next/")).replace(f"{folder}/", "")
        yield f"## {title}\n\n```console\n$ {command}\n{output}```\n"


def _output(command: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(shlex.split(command)[1:])
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    return "\n".join([*lines, *([f"(exit code {code})"] if code else [])]).rstrip() + "\n"


def write_schemas(folder: Path) -> None:
    """The forms of all documents. Which names there are says `gpuplan schema` of one's own
    catalogue."""
    folder.mkdir(exist_ok=True)
    for document in DOCUMENTS:
        text = json.dumps(schema(document, names=False), indent=2, ensure_ascii=False)
        (folder / f"{document}.schema.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
    pages = {"cli": reference, "manifest": fields.page, "tour": tour}
    if sys.argv[1] == "schemas":
        write_schemas(Path(sys.argv[2]))
    else:
        sys.stdout.write("\n".join(pages[sys.argv[1]]()))
