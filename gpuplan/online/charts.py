"""The digest of a chart's package, from the index of its repository (helm.sh, `index.yaml`)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from gpuplan.errors import Rejected
from gpuplan.online import messages
from gpuplan.online.http import OK, get, refuse
from gpuplan.plan.outside.pins import DIGEST


def chart_digest(repository: str, chart: str, version: str) -> str:
    """Raises `Rejected`."""
    host, subject = urlsplit(repository).netloc, f"chart {chart} {version}"
    answer = get(f"{repository.rstrip('/')}/index.yaml")
    if answer.status != OK:
        refuse(answer, host, f"index of {subject}")
    for row in _rows(answer.body.decode("utf-8", "replace"), chart, host):
        if isinstance(row, dict) and row.get("version") == version:
            digest = f"sha256:{str(row.get('digest')).removeprefix('sha256:')}"
            if DIGEST.fullmatch(digest):
                return digest
            raise Rejected([messages.unusable(host, subject, "its index has no digest")])
    raise Rejected([messages.not_there(host, subject)])


def _rows(text: str, chart: str, host: str) -> list[Any]:
    """The entries of one chart. Those of the others are megabytes, and are not parsed where the
    index is written line by line, as helm does."""
    start = f"\n  {chart}:\n"
    if start in text:
        lines = text.partition(start)[2].split("\n")
        end = next((n for n, row in enumerate(lines) if _ends(row)), len(lines))
        text = f"entries:\n  {chart}:\n" + "\n".join(lines[:end])
    try:
        tree = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as problem:
        raise Rejected([messages.unusable(host, "its index", "it is no YAML")]) from problem
    entries = tree.get("entries") if isinstance(tree, dict) else None
    rows = entries.get(chart) if isinstance(entries, dict) else None
    return rows if isinstance(rows, list) else []


def _ends(row: str) -> bool:
    """Whether a line belongs to the next chart, or to what follows all charts."""
    return bool(row) and not row.startswith(("  - ", "   ", "  -\n")) and row != "  -"
