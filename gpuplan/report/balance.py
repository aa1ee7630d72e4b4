"""What each workload meets first, as a table: what is needed, what there is, the part of it."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from gpuplan.plan.wording import Tree
from gpuplan.render.text import COLUMNS
from gpuplan.units import format_quantity

NAME = "balance"
NAMES = {
    "gpu_memory": "GPU memory",
    "gpu_time": "GPU time",
    "time_to_finish": "time to finish",
    "decoding": "decoding",
    "storage": "storage, images",
    "dataset": "storage, dataset",
    "checkpoint": "storage, checkpoints",
    "network": "network cards",
    "fabric": "network cards, caches",
    "links": "links of a node",
    "pcie": "PCIe",
    "cpu_cores": "CPU cores, advised",
    "host_memory": "host memory",
    "power": "power",
}


def whole(plan: Tree) -> str:
    """Every row of every workload, each with its remedy where it has one."""
    blocks = (
        "\n".join((work["name"], *_rows(work, remedies=True))) + "\n"
        for work in plan["workloads"]
        if work.get("balance")
    )
    return "\n".join(blocks)


def short(work: Tree) -> Iterator[str]:
    """The rows of a workload, and what to do about the first."""
    if work.get("balance"):
        yield "  limits, the nearest first; remedies: gpuplan explain STACK balance"
        yield from _rows(work, indent=4)


def rows(plan: Tree) -> list[Tree]:
    """The same as data."""
    return [
        {"workload": work["name"], **row, "share": _share(row)}
        for work in plan["workloads"]
        for row in work.get("balance", ())
    ]


def _share(row: Tree) -> float | None:
    need, supply = row.get("need"), row.get("supply")
    return None if need is None or not supply else float(f"{need / supply:.4g}")


def _rows(work: Tree, *, remedies: bool = False, indent: int = 2) -> Iterator[str]:
    table = [(_percent(row), NAMES[row["resource"]], row) for row in work["balance"]]
    size = max(len(name) for _, name, _ in table)
    for place, (percent, name, row) in enumerate(table):
        lead = f"{'':{indent}}{percent:>7}  {name:<{size}}  "
        yield from _wrapped(lead, _amounts(row))
        if row.get("remedy") and (remedies or place == 0):
            yield from _wrapped(" " * len(lead), f"→ {row['remedy']}")


def _wrapped(lead: str, text: str) -> Iterator[str]:
    lines = wrap(text, COLUMNS - len(lead), break_long_words=False, break_on_hyphens=False)
    yield lead + lines[0]
    yield from (" " * len(lead) + line for line in lines[1:])


def _percent(row: Tree) -> str:
    share = _share(row)
    if share is None:
        return "unknown"
    return "< 0.1 %" if 0 < share < 0.001 else f"{share * 100:.3g} %"


def _amounts(row: Tree) -> str:
    """`63.1 GiB of 67.7 GiB, each GPU`."""
    need, supply = (
        None if row.get(side) is None else format_quantity(row[side], row["unit"])
        for side in ("need", "supply")
    )
    shown = need or ("" if supply is None else f"of {supply}")
    if need and supply:
        shown = f"{need} of {supply}"
    said = ", ".join(filter(None, (shown, row["of"])))
    return f"{said}: {row['unknown']}" if row.get("unknown") else said
