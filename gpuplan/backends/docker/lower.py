"""Plan → a Compose project, and what prepares its machine for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuplan.backends.docker import (
    balancer,
    host,
    monitor,
    problems,
    quadlet,
    readme,
    services,
    storage,
    timers,
)
from gpuplan.backends.docker.shares import shares
from gpuplan.backends.docker.view import Part
from gpuplan.diagnostics import Diagnostic
from gpuplan.emission import Emission
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import RUNS, shortcomings, start
from gpuplan.plan.model import Plan
from gpuplan.render import commented
from gpuplan.render.commented import Tree, strip
from gpuplan.render.tree import File, FileTree

FIRST_PORT = 8000
HEADER = (
    "Written by gpuplan; `gpuplan check` finds edits. ./assign.sh writes .env, which this needs."
)


def emit(plan: Plan) -> Emission:
    """One machine: a plan with more is refused."""
    if sum(pool.node_count for pool in plan.node_pools) != 1:
        return Emission(diagnostics=(problems.several_machines(plan),))
    starts = {w.name: start(w, first="localhost") for w in plan.workloads}
    parts = _parts(plan, {n: s for n, s in starts.items() if isinstance(s, Launch)})
    unknown = (s for s in starts.values() if not isinstance(s, Launch))
    tree, comments = strip(_project(plan, parts))
    files = (
        File("compose.yaml", commented.dumps(tree, dict(comments), HEADER)),
        *host.files(plan, parts),
        *_configurations(parts),
        *timers.files(plan, parts),
        *monitor.files(plan, parts),
        *(quadlet.files(plan, parts, tree, dict(comments)) if plan.quadlet else ()),
    )
    sections = tuple(readme.sections(plan, parts))
    return Emission(FileTree(files), (*_problems(plan), *unknown), sections)


def _problems(plan: Plan) -> Iterator[Diagnostic]:
    for workload in plan.workloads:
        yield from shortcomings(workload)
        if workload.after and workload.task not in RUNS:
            yield problems.starts_at_once(workload)


def _parts(plan: Plan, launches: dict[str, Launch]) -> list[Part]:
    """The workloads that can be started. Those that others connect to have ports that follow one
    another, one for all containers behind a balancer and one each for others."""
    given, port = shares(plan, plan.node_pools[0]), FIRST_PORT
    parts = []
    for workload in plan.workloads:
        if launch := launches.get(workload.name):
            part = Part(plan=plan, workload=workload, launch=launch, shares=given[workload.name])
            if launch.port is not None and not part.ends:
                parts.append(part.at(port))
                port += 1 if part.balanced else workload.replicas
            else:
                parts.append(part)
    return parts


def _project(plan: Plan, parts: Sequence[Part]) -> Tree:
    every: dict[str, Any] = {}
    for part in parts:
        every |= services.services(part)
        if part.balanced and plan.balancer is not None:
            every[part.balancer] = balancer.service(part, plan.balancer)
    every |= monitor.services(plan, parts)
    networks = [part.name for part in parts] + [monitor.NETWORK] * bool(plan.monitors)
    volumes = {k: v for p in parts for k, v in storage.volumes(p.workload).items()}
    secrets = {k: v for p in parts for k, v in storage.secrets(p.workload).items()}
    return {
        "name": plan.name,
        "services": every,
        "networks": {name: {} for name in networks},
        "volumes": volumes | monitor.volumes(plan) or None,
        "secrets": secrets | monitor.secrets(plan) or None,
    }


def _configurations(parts: Sequence[Part]) -> Iterator[File]:
    for part in parts:
        if part.balanced:
            yield balancer.configuration(part)
        for name, text in part.launch.files:
            yield File(f"workloads/{part.name}/{name}", text)
