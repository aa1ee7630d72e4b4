"""The settings of a Compose service in Podman's words, one function a key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from gpuplan.backends.docker import storage
from gpuplan.backends.docker.units import value, word
from gpuplan.backends.docker.view import Part
from gpuplan.frozen import record
from gpuplan.plan.model import Plan
from gpuplan.render.commented import Tree

Options = Iterator[tuple[str, str]]
# Read where dependencies and the service are made, or said of Podman as a whole.
ELSEWHERE = ("depends_on", "profiles", "restart", "logging", "entrypoint", "command")
PLAIN = {
    "cpuset": ("PodmanArgs", "--cpuset-cpus={}"),
    "mem_limit": ("PodmanArgs", "--memory={}"),
    "network_mode": ("Network", "{}"),
    "read_only": ("ReadOnly", "true"),
    "shm_size": ("ShmSize", "{}"),
    "user": ("User", "{}"),
}
SECURITY = {
    "no-new-privileges:true": ("NoNewPrivileges", "true"),
    "seccomp=unconfined": ("SeccompProfile", "unconfined"),
}


@record
class Around:
    """Whose service it is; None of what watches all of them."""

    plan: Plan
    part: Part | None


def options(around: Around, key: str, entry: Any) -> Options:
    """(name, value) in a container's unit. Raises KeyError for a key that has none here."""
    if key in PLAIN:
        name, form = PLAIN[key]
        yield name, value(form.format(entry))
    elif key not in ELSEWHERE:
        yield from _OPTIONS[key](around, entry)


def secrets(plan: Plan, part: Part) -> Options:
    """(name in Podman, variable) of each secret."""
    for secret in part.workload.secrets:
        yield f"{plan.name}-{part.name}-{secret.environment}", secret.environment


def _image(_: Around, entry: str) -> Options:
    """With its registry, which Podman does not guess."""
    first, slash, _rest = entry.partition("/")
    if not (slash and ("." in first or ":" in first or first == "localhost")):
        entry = f"docker.io/{entry}" if slash else f"docker.io/library/{entry}"
    yield "Image", value(entry)


def _environment(_: Around, entry: Tree) -> Options:
    for name, text in entry.items():
        yield "Environment", word(f"{name}={text}")


def _variables(around: Around, _: list[str]) -> Options:
    for name, variable in secrets(around.plan, around.part) if around.part else ():
        if variable != storage.TOKEN:
            yield "Secret", f"{name},type=env,target={variable}"


def _files(around: Around, entry: list[str | Tree]) -> Options:
    plan, part = around.plan, around.part
    for file in entry:
        name = file if isinstance(file, str) else file["source"]
        target = f"/run/secrets/{name}" if isinstance(file, str) else file["target"]
        own = f"{plan.name}-{part.name}-{storage.TOKEN}" if part else f"{plan.name}-{name}"
        yield "Secret", f"{own},type=mount,target={value(target)}"


def _volumes(around: Around, entry: list[Tree]) -> Options:
    stack = around.plan.name
    for volume in entry:
        source, target = str(volume.get("source", "")), volume["target"]
        if volume["type"] == "bind":
            yield "Volume", f"/opt/{stack}/{source.removeprefix('./')}:{target}:ro,z"
        else:
            yield "Volume", f"{stack}-{source}.volume:{target}" if source else target


def _networks(around: Around, entry: list[str]) -> Options:
    yield from (("Network", f"{around.plan.name}-{name}.network") for name in entry)


def _limits(_: Around, entry: Tree) -> Options:
    yield from (("Ulimit", f"{name}={limit}:{limit}") for name, limit in entry.items())


def _dropped(_: Around, entry: list[str]) -> Options:
    yield from (("DropCapability", name.casefold()) for name in entry)


def _added(_: Around, entry: list[str]) -> Options:
    yield from (("AddCapability", f"CAP_{name.removeprefix('CAP_')}") for name in entry)


def _security(_: Around, entry: list[str]) -> Options:
    yield from (SECURITY[option] for option in entry)


def _labels(_: Around, entry: Tree) -> Options:
    yield from (("Label", word(f"{name}={text}")) for name, text in entry.items())


def _reserved(_: Around, entry: Tree) -> Options:
    """The GPUs that NVIDIA's toolkit names."""
    yield "SecurityLabelDisable", "true"
    for device in entry["resources"]["reservations"]["devices"]:
        for name in device.get("device_ids", ["all"]):
            yield "AddDevice", f"nvidia.com/gpu={value(name)}"


def _devices(_: Around, entry: list[str]) -> Options:
    yield "SecurityLabelDisable", "true"
    yield from (("AddDevice", value(name)) for name in entry)


def _ports(_: Around, entry: list[str]) -> Options:
    yield from (("PublishPort", port) for port in entry)


def _stop(_: Around, entry: str) -> Options:
    yield "StopTimeout", entry.removesuffix("s")


def _health(_: Around, entry: Tree) -> Options:
    yield "HealthCmd", value(json.dumps(entry["test"][1:], ensure_ascii=False))
    yield "HealthInterval", entry["interval"]
    yield "HealthTimeout", entry["timeout"]
    yield "HealthRetries", str(entry["retries"])
    yield "HealthStartPeriod", entry["start_period"]
    yield "HealthOnFailure", "kill"
    yield "Notify", "healthy"


_OPTIONS: dict[str, Callable[[Around, Any], Options]] = {
    "image": _image,
    "environment": _environment,
    "env_file": _variables,
    "secrets": _files,
    "volumes": _volumes,
    "networks": _networks,
    "ulimits": _limits,
    "cap_drop": _dropped,
    "cap_add": _added,
    "security_opt": _security,
    "labels": _labels,
    "deploy": _reserved,
    "devices": _devices,
    "ports": _ports,
    "stop_grace_period": _stop,
    "healthcheck": _health,
}
