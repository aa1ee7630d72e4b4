"""What the engine received, as records: decoded values, sorted names, the order of the program."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from gpuplan.preview import urn as urns
from gpuplan.preview.registered import LogMessage, Preview, Provider, Registered
from gpuplan.preview.running.engine import Monitor, Registration
from gpuplan.preview.stack import StackProgram
from gpuplan.preview.values import decode

Frame = tuple[str, int]


def preview_of(program: StackProgram, monitor: Monitor, printed: str) -> Preview:
    """The records of a program that ran to its end. `printed` is what it wrote to its terminal."""
    by_urn = monitor.registrations
    frames = {u: own_frames(r.request, program.folder) for u, r in by_urn.items()}
    resources = [_registered(by_urn[u], frames[u], by_urn, program) for u in by_urn]
    return Preview(
        project=program.project,
        stack=program.stack,
        resources=tuple(in_program_order(resources, frames)),
        outputs=decode(plain(monitor.outputs), program.working_folder) if monitor.outputs else {},
        placeholders=program.placeholders,
        messages=tuple(_messages(monitor, printed)),
    )


def _messages(monitor: Monitor, printed: str) -> Iterable[LogMessage]:
    spoken = [m for m in monitor.messages if not m.urn]  # these come in the program's order
    yield from spoken
    yield from sorted((m for m in monitor.messages if m.urn), key=lambda m: (m.urn, m.text))
    for refusal in monitor.refusals:
        yield LogMessage(severity="warning", text=refusal.message)
    if printed.strip():
        yield LogMessage(severity="info", text=printed.strip())


def _registered(
    registration: Registration,
    frames: tuple[Frame, ...],
    by_urn: Mapping[str, Registration],
    program: StackProgram,
) -> Registered:
    request = registration.request
    dependencies = {k: tuple(sorted(v.urns)) for k, v in request.propertyDependencies.items()}
    defined = request.deleteBeforeReplaceDefined or request.deleteBeforeReplace
    inputs = decode(plain(request.object), program.working_folder)
    return Registered(
        urn=registration.urn,
        type=request.type,
        name=request.name,
        parent=request.parent or None,
        custom=request.custom,
        remote=request.remote,
        protect=registration.protect,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies=tuple(sorted((k, v) for k, v in dependencies.items() if v)),
        provider=_provider(registration, by_urn),
        version=registration.package_version,
        aliases=registration.aliases,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        replace_with=tuple(sorted(request.replace_with)),
        retain_on_delete=registration.retain_on_delete,
        delete_before_replace=request.deleteBeforeReplace if defined else None,
        import_id=request.importId,
        inputs=inputs,
        position=f"{frames[-1][0]}:{frames[-1][1]}" if frames else "",
    )


def _provider(registration: Registration, by_urn: Mapping[str, Registration]) -> Provider | None:
    request = registration.request
    own_kind = request.type.startswith((urns.PROVIDER_TYPE, "pulumi:pulumi:"))
    if own_kind or not (request.custom or request.remote):
        return None
    package = urns.package_of(request.type)
    urn = registration.provider.rpartition("::")[0]
    if not urn:
        suffix = registration.package_version.replace(".", "_").replace("-", "_").replace("+", "_")
        name = f"default_{suffix}" if suffix else "default"
        return Provider(package=package, version=registration.package_version, name=name)
    version = by_urn[urn].package_version if urn in by_urn else ""
    return Provider(package=package, version=version, name=urns.name_of(urn), urn=urn)


# --- the wire's trees ----------------------------------------------------------------------------


def plain(struct: Any) -> dict[str, Any]:
    """A protobuf Struct as plain data; whole numbers become integers."""
    return {key: _plain_value(value) for key, value in sorted(struct.fields.items())}


def _plain_value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return plain(value.struct_value)
    if kind == "list_value":
        return [_plain_value(v) for v in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return None if kind in (None, "null_value") else getattr(value, kind)


# --- order ---------------------------------------------------------------------------------------


def own_frames(request: Any, folder: Path) -> tuple[Frame, ...]:
    """Where in the stack's own files a request came from: file and line, outermost call first."""
    frames = []
    root = str(folder) + os.sep
    for frame in reversed(request.stackTrace.frames):
        path = os.path.realpath(unquote(urlparse(frame.pc.uri).path))
        if path.startswith(root) and "site-packages" not in path:
            frames.append((path.removeprefix(root).replace(os.sep, "/"), int(frame.pc.line)))
    return tuple(frames)


def in_program_order(
    resources: Iterable[Registered], frames: Mapping[str, tuple[Frame, ...]]
) -> Iterable[Registered]:
    """Resources after everything they need, otherwise where the program's text has them.

    Registrations race: the order in which they arrive differs from run to run, this one does not.
    """
    waiting = {r.urn: r for r in resources}
    needs = {u: {n for n in _needs(r) if n in waiting} for u, r in waiting.items()}
    ready = [_rank(r, frames) for u, r in waiting.items() if not needs[u]]
    heapq.heapify(ready)
    users: dict[str, list[str]] = {}
    for user, needed in needs.items():
        for urn in needed:
            users.setdefault(urn, []).append(user)
    while ready:
        urn = heapq.heappop(ready)[-1]
        yield waiting.pop(urn)
        for user in users.get(urn, ()):
            needs[user].discard(urn)
            if not needs[user]:
                heapq.heappush(ready, _rank(waiting[user], frames))
    yield from waiting.values()  # a component may wait for its own children


def _needs(resource: Registered) -> Iterable[str]:
    yield from resource.dependencies
    if resource.parent:
        yield resource.parent
    if resource.provider and resource.provider.urn:
        yield resource.provider.urn


def _rank(
    resource: Registered, frames: Mapping[str, tuple[Frame, ...]]
) -> tuple[bool, tuple[Frame, ...], tuple[tuple[int, str], ...], str]:
    """Registrations of one loop stand on one line: there `node-2` comes before `node-10`."""
    parts = re.split(r"(\d+)", resource.name)
    name = tuple((int(p), "") if p.isdecimal() else (-1, p) for p in parts)
    return (not resource.is_stack, frames.get(resource.urn, ()), name, resource.urn)
