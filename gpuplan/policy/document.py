"""`docs/rules.md` from the rules' docstrings and the built-in pack.

python -m gpuplan.policy.document > docs/rules.md
python -m gpuplan.policy.document --check docs/rules.md
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuplan.policy.engine import EVERY
from gpuplan.policy.packs import Pack, Setting, builtin_pack

HEAD = """\
# Rules

`gpuplan check` judges stacks by these rules. Severities and thresholds come from
[policies/builtin.yaml](../policies/builtin.yaml); `--config FILE` takes a file of the same form
that names only what it changes. A finding can be [waived](policies.md#waivers) for a time.

This page is generated from the rules: `python -m gpuplan.policy.document > docs/rules.md`.
"""


def page() -> str:
    pack = builtin_pack()
    rows = ["| rule | name | severity | finds |", "| --- | --- | --- | --- |"]
    for rule in EVERY:
        name, severity = rule.identifier, pack[rule.identifier].severity.value
        finds = summary(rule.documentation)
        rows.append(f"| [{name}](#{name.lower()}) | {rule.name} | {severity} | {finds} |")
    pages = (_rule(rule.identifier, rule.name, rule.documentation, pack) for rule in EVERY)
    return "\n".join([HEAD, *rows, *pages])


def summary(documentation: str) -> str:
    return " ".join(documentation.partition("\n\n")[0].split())


def sections(documentation: str) -> Iterator[tuple[str, str]]:
    """(section, text) of a rule's page, in order."""
    for paragraph in documentation.split("\n\n")[1:]:
        name, _, text = paragraph.partition(":")
        yield name, " ".join(text.split())


def _rule(identifier: str, name: str, documentation: str, pack: Pack) -> str:
    setting = pack[identifier]
    lines = [f'\n<a id="{identifier.lower()}"></a>\n\n## {identifier} {name}\n']
    lines += [f"**{summary(documentation)}** Severity: {setting.severity.value}.", ""]
    for section, text in sections(documentation):
        lines += [f"*{section}:* {_values(text, setting)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _values(text: str, setting: Setting) -> str:
    """`text` with its value behind the name of each threshold."""
    for name, value in setting.thresholds.items():
        text = re.sub(rf"`{name}`", f"`{name}` ({value})", text, count=1)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the rules' pages as Markdown.")
    parser.add_argument("--check", type=Path, metavar="FILE", help="fail when FILE is stale")
    options = parser.parse_args(arguments)
    if options.check is None:
        print(page(), end="")
        return 0
    current = options.check.read_text(encoding="utf-8") == page()
    if not current:
        print(f"{options.check} is stale: python -m gpuplan.policy.document", file=sys.stderr)
    return int(not current)


if __name__ == "__main__":
    sys.exit(main())
