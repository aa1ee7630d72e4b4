"""What `check` and `diff` do, from paths to data: read, judge, compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.findings import Report
from gpuplan.policy.api import Waiver
from gpuplan.policy.engine import EVERY, check
from gpuplan.policy.origins import located
from gpuplan.policy.packs import Pack, load_pack
from gpuplan.policy.reading import Stack, default_waivers, read_side, read_stacks
from gpuplan.policy.waivers import load_waivers
from gpuplan.policy.written import written
from gpuplan.render.tree import File, FileTree
from gpuplan.source import Sources

if TYPE_CHECKING:
    from gpuplan.plan.diff import StacksDiff


def run_check(
    paths: Sequence[Path],
    *,
    as_of: date,
    pack_path: Path | None = None,
    waivers_path: Path | None = None,
    sources: Sources | None = None,
    manifest_paths: Sequence[Path] = (),
    registered: Callable[[Stack], Sequence[File]] = lambda _: (),
    inventory_paths: Sequence[Path] = (),
) -> Report:
    """The report on the stacks at `paths`: stacks, folders of stacks, or plan files. What a
    stack's program has `registered` is judged with its files.

    `as_of` is the day on which waivers are judged; they come from `waivers_path`, else from
    `policies/waivers.yaml` below the current folder where there is one. What was read of packs and
    waivers is added to `sources`, and so are the stacks' manifests and their inventories where they
    are found, or among `manifest_paths`: findings about plans stand there. `inventory_paths` say
    which stacks hold which hosts. Raises `Rejected` with every problem of the input.
    """
    from gpuplan.policy.manifests import documents

    pack, waivers = _policies(pack_path, waivers_path, sources)
    stacks = [
        replace(s, files=FileTree((*s.files, *registered(s)))) if s.files else s
        for s in _read(paths)
    ]
    report = check(stacks, pack, waivers, as_of=as_of, holders=_holders(inventory_paths))
    judged = {v.stack for v in report.verdicts}
    written = {
        s.plan.name: documents(Path(s.place), s.plan, manifest_paths)
        for s in stacks
        if s.plan.name in judged
    }
    return located(report, written, sources or Sources())


def run_compiled(stacks: Sequence[Stack], *, as_of: date) -> Report:
    """The report on stacks that were just compiled, by the built-in pack and the repository's
    waivers. Raises `Rejected`."""
    pack, waivers = _policies(None, None, None)
    return check(stacks, pack, waivers, as_of=as_of)


def run_diff(
    base: Path,
    head: Path,
    *,
    as_of: date,
    pack_path: Path | None = None,
    waivers_path: Path | None = None,
    sources: Sources | None = None,
) -> StacksDiff:
    """The stacks at `base` and `head` compared, paired by name; two single stacks whatever their
    names. `/dev/null` or an empty folder is a side without stacks. Raises `Rejected`."""
    from gpuplan.plan.diff import StacksDiff, diff
    from gpuplan.plan.outside.together import regions_diffs

    pack, waivers = _policies(pack_path, waivers_path, sources)
    before, after = read_side(base), read_side(head)
    if len(before) == len(after) == 1:
        pairs: list[tuple[Stack | None, Stack | None]] = [(before[0], after[0])]
    else:
        old, new = ({s.plan.name: s for s in side} for side in (before, after))
        pairs = [(old.get(name), new.get(name)) for name in sorted({*old, *new})]

    def report(stack: Stack | None) -> Report | None:
        return check([stack], pack, waivers, as_of=as_of) if stack else None

    return StacksDiff(
        stacks=tuple(
            diff(
                was.plan if was else None,
                now.plan if now else None,
                report(was),
                report(now),
                base_files=was.files if was else None,
                head_files=now.files if now else None,
                base_objects=written(was.files) if was and now else (),
                head_objects=written(now.files) if was and now else (),
            )
            for was, now in pairs
        ),
        regions=regions_diffs((s.plan for s in before), (s.plan for s in after)),
    )


def _policies(
    pack_path: Path | None, waivers_path: Path | None, sources: Sources | None
) -> tuple[Pack, tuple[Waiver, ...]]:
    path = waivers_path or default_waivers()
    problems: list[Diagnostic] = []
    pack: Pack | None = None
    waivers: tuple[Waiver, ...] = ()
    try:
        pack = load_pack(pack_path, sources)
    except Rejected as rejected:
        problems.extend(rejected.diagnostics)
    try:
        waivers = load_waivers(path, [r.identifier for r in EVERY], sources) if path else ()
    except Rejected as rejected:
        problems.extend(rejected.diagnostics)
    if pack is None or problems:
        raise Rejected(problems)
    return pack, waivers


def _holders(paths: Sequence[Path]) -> dict[str, str]:
    """Host → its stack. Raises `Rejected`."""
    if not paths:
        return {}
    from gpuplan.inventory.allocations import holders
    from gpuplan.inventory.read import read_inventory

    return {host: stack for p in paths for host, stack in holders(read_inventory(p)[0]).items()}


def _read(paths: Sequence[Path]) -> list[Stack]:
    stacks: dict[str, Stack] = {}
    problems: list[Diagnostic] = []
    for path in paths:
        try:
            stacks |= {stack.place: stack for stack in read_stacks(path)}
        except Rejected as rejected:
            problems.extend(rejected.diagnostics)
    if problems:
        raise Rejected(problems)
    return list(stacks.values())
