"""What the README says of a Compose project: how to prepare its machine, apply, reach, undo."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gpuplan.backends.docker import monitor, options, quadlet, timers
from gpuplan.backends.docker.host import unit_name
from gpuplan.backends.docker.services import addresses
from gpuplan.backends.docker.shares import layouts
from gpuplan.backends.docker.storage import SECRETS, disk_bytes, secret_files
from gpuplan.backends.docker.view import Part, containers
from gpuplan.emission import Section
from gpuplan.engines.start import batch_folders
from gpuplan.plan.model import Plan, record
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code
from gpuplan.units import format_bytes


@record
class Run:
    """What ends: how it is started and, of a batch, how its files come and go."""

    name: Verbatim
    start: Verbatim
    has_files: bool
    files: tuple[Verbatim, ...]
    results: Verbatim
    before: Verbatim
    schedule: Verbatim
    unit: Verbatim


def sections(plan: Plan, parts: Sequence[Part]) -> Iterator[Section]:
    pool = plan.node_pools[0]
    unit = Verbatim(unit_name(plan))
    cut = ",".join(str(number) for number, _ in layouts(pool))
    stays = any(not part.ends for part in parts)
    values: dict[str, dict[str, object]] = {
        "Before": {
            "gpus": f"{pool.gpus_per_node} × {pool.gpu}",
            "maker": pool.maker.title,
            "toolkit": Verbatim(pool.maker.toolkit),
            "disk": format_bytes(sum(disk_bytes(p.workload) for p in parts)),
            "secrets": [
                (Verbatim(code(path)), text)
                for part in parts
                for path, text in secret_files(part.workload)
            ],
        },
        "Apply": {"unit": unit, "stays": stays},
        "Start": {
            "runs": [
                Run(
                    name=Verbatim(code(part.name)),
                    start=_compose(part, "up", "--detach", *containers(part.workload)),
                    has_files=part.workload.task == "batch" and not part.workload.command,
                    files=tuple(_files(part)),
                    results=_results(part),
                    before=Verbatim(" and ".join(map(code, part.before))),
                    schedule=Verbatim(code(part.workload.schedule or "")),
                    unit=Verbatim(timers.unit_name(plan, part) if part.workload.schedule else ""),
                )
                for part in parts
                if part.ends
            ]
        },
        "Reach": {
            "addresses": [
                (Verbatim(code(name)), Verbatim(address))
                for part in parts
                for name, address in addresses(part)
            ],
            "tokens": [_token(part) for part in parts if part.workload.notebook],
        },
        "Watch": {
            "profile": monitor.PROFILE,
            "folder": SECRETS,
            "password": Verbatim(f"{SECRETS}/{monitor.ADMIN}"),
            "reader": monitor.GRAFANA_USER,
        },
        "Update": {},
        "Remove": {"unit": unit, "cut": Verbatim(cut)},
    }
    said = {
        "Start": any(p.ends for p in parts),
        "Reach": any(p.port for p in parts),
        "Watch": bool(plan.monitors),
    }
    if plan.quadlet:
        values["Podman"] = _podman(plan, parts)
    for heading, given in values.items():
        if said.get(heading, True):
            text = render("markdown", f"docker/{heading.casefold()}.md.j2", **given)
            yield Section(heading, text)


def _podman(plan: Plan, parts: Sequence[Part]) -> dict[str, object]:
    stays = [p for p in parts if not p.ends]
    ends = [p for p in parts if p.ends]
    named = [(part, *secret) for part in parts for secret in options.secrets(plan, part)]
    create = "printf %s VALUE | sudo podman secret create"
    return {
        "stack": Verbatim(plan.name),
        "folder": Verbatim(f"/opt/{plan.name}"),
        "units": Verbatim(f"/etc/containers/systemd/{plan.name}"),
        "volumes": Verbatim(" quadlet/*.volume"),
        "assigning": Verbatim(quadlet.assigning(plan)),
        "timers": [
            Verbatim(quadlet.unit_of(plan, name).replace(".service", ".timer"))
            for part in timers.recurring(parts)
            for name in containers(part.workload)
        ],
        "secrets": [
            Verbatim(f"{create} {name} - # {variable} of {part.name}")
            for part, name, variable in named
        ],
        "start": [
            Verbatim(quadlet.unit_of(plan, name))
            for part in stays
            for name in (*containers(part.workload), *([part.balancer] if part.balanced else []))
        ],
        "ends": Verbatim(
            ", ".join(code(quadlet.unit_of(plan, n)) for p in ends for n in containers(p.workload))
        ),
    }


def _compose(part: Part, *words: str) -> Verbatim:
    """What runs has a profile of its own."""
    return Verbatim(shlex.join(["docker", "compose", "--profile", part.name, *words]))


def _files(part: Part) -> Iterator[Verbatim]:
    """How each container gets its requests: it is made first, and started with them."""
    requests, _ = batch_folders(part.workload)
    yield _compose(part, "create")
    for index, name in enumerate(containers(part.workload)):
        yield _compose(part, "cp", f"requests-{index}.jsonl", f"{name}:{requests}/")


def _results(part: Part) -> Verbatim:
    first, (_, results) = containers(part.workload)[0], batch_folders(part.workload)
    return _compose(part, "cp", f"{first}:{results}", ".")


def _token(part: Part) -> Verbatim:
    first = containers(part.workload)[0]
    return Verbatim(shlex.join(["docker", "compose", "logs", first]) + " | grep -m 1 token=")
