"""A Compose project as Podman's units: podman-systemd.unit(5) of Podman 5.4.

Every fact is the project's own; here are only Podman's names for them. A key of a service that has
no name here is a bug, found by the first project that has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from gpuplan.backends.docker.options import Around, options
from gpuplan.backends.docker.units import EMPTY, Line, unit, value, words
from gpuplan.backends.docker.view import Part
from gpuplan.plan.model import Plan
from gpuplan.render.commented import Comments, Tree
from gpuplan.render.environments import render
from gpuplan.render.tree import File

FOLDER = "quadlet"
TITLE = "Written by gpuplan; `gpuplan check` finds edits. Podman's generator reads it."
RESTART_SECONDS = 5
MARGIN_SECONDS = 20  # for Podman to remove what has stopped


def files(plan: Plan, parts: Sequence[Part], tree: Tree, comments: Comments) -> Iterator[File]:
    """`tree` is the project without its reasons, which are `comments`."""
    for name, service in tree["services"].items():
        yield _file(plan, f"{name}.container", _container(plan, parts, name, service, comments))
    for name in tree["networks"]:
        named = Line(key="NetworkName", value=f"{plan.name}_{name}")
        yield _file(plan, f"{name}.network", {"Network": [named]})
    for name in tree.get("volumes", {}):
        named = Line(key="VolumeName", value=f"{plan.name}_{name}")
        yield _file(plan, f"{name}.volume", {"Volume": [named]})
    maker = plan.node_pools[0].maker
    text = render("conf", "docker/assign.service.j2", stack=plan.name, cdi=not maker.devices)
    yield File(f"{FOLDER}/{assigning(plan)}", text)


def assigning(plan: Plan) -> str:
    """The unit that finds GPUs and CPUs before anything starts."""
    return f"gpuplan-{plan.name}-assign.service"


def unit_of(plan: Plan, service: str) -> str:
    """What systemd calls a container."""
    return f"{plan.name}-{service}.service"


def _file(plan: Plan, name: str, sections: dict[str, list[Line]]) -> File:
    return File(f"{FOLDER}/{plan.name}-{name}", unit(sections, TITLE))


def _container(
    plan: Plan, parts: Sequence[Part], name: str, service: Tree, comments: Comments
) -> dict[str, list[Line]]:
    part = next((p for p in parts if _is_of(p, name)), None)
    share = next((s for s in part.shares if s.container == name), None) if part else None
    lines = [
        Line(key="ContainerName", value=f"{plan.name}-{name}"),
        *(
            Line(
                key=key, value=text, why=comments.get(("services", name, given)) if not n else None
            )
            for given, entry in service.items()
            for n, (key, text) in enumerate(options(Around(plan=plan, part=part), given, entry))
        ),
        Line(key="LogDriver", value="journald"),
    ]
    if share is not None:
        lines.append(Line(key="PodmanArgs", value=f"--cpuset-mems=${{{share.mems}}}"))
    if "networks" in service:
        lines.append(Line(key="NetworkAlias", value=name))
    entrypoint, arguments = service.get("entrypoint"), service.get("command", [])
    if entrypoint:
        lines.append(
            Line(key="Entrypoint", value=value(json.dumps(entrypoint, ensure_ascii=False)))
        )
    if arguments:
        lines.append(Line(key="Exec", value=words(arguments)))
    return {
        "Unit": list(_order(plan, name, service)),
        "Container": lines,
        "Service": list(_service(plan, service)),
        "Install": [Line(key="WantedBy", value="multi-user.target")] if _at_boot(service) else [],
    }


def _is_of(part: Part, name: str) -> bool:
    own = {share.container for share in part.shares}
    return name in own or name in (f"{part.name}-weights", f"{part.name}-scratch")


def _order(plan: Plan, name: str, service: Tree) -> Iterator[Line]:
    yield Line(key="Description", value=f"{name} of {plan.name}")
    before = [unit_of(plan, other) for other in service.get("depends_on", ())]
    if "cpuset" in service:
        before.append(assigning(plan))
    for needed in before:
        yield Line(key="Requires", value=needed)
        yield Line(key="After", value=needed)
    if service["restart"] != "no":
        yield Line(key="StartLimitIntervalSec", value="0")


def _service(plan: Plan, service: Tree) -> Iterator[Line]:
    if "cpuset" in service:
        yield Line(key="EnvironmentFile", value=f"/opt/{plan.name}/.env")
    if not all(service.get("command", ["x"])):
        yield Line(key="Environment", value=f"{EMPTY}=")
    if service["restart"] == "no":
        yield Line(key="Type", value="oneshot")
        if "profiles" not in service:  # what waits for it starts with the machine
            yield Line(key="Restart", value="on-failure")
            yield Line(
                key="RestartMode", value="direct", why="what needs it waits, and does not fail"
            )
            yield Line(key="RestartSec", value=str(RESTART_SECONDS))
    else:
        yield Line(key="Restart", value="always")
        yield Line(key="RestartSec", value=str(RESTART_SECONDS))
        yield Line(
            key="TimeoutStartSec", value="infinity", why="health has a time limit of its own"
        )
    if stop := service.get("stop_grace_period"):
        seconds = int(stop.removesuffix("s")) + MARGIN_SECONDS
        yield Line(key="TimeoutStopSec", value=str(seconds))


def _at_boot(service: Tree) -> bool:
    return service["restart"] != "no" and "profiles" not in service
