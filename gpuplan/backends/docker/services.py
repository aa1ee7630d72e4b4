"""The containers of a workload as Compose services."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.docker import storage
from gpuplan.backends.docker.view import Part, Share, containers
from gpuplan.engines import durations
from gpuplan.engines.container import contained, image
from gpuplan.engines.launch import written
from gpuplan.render.commented import Because, Tree
from gpuplan.units import KIB, MIB, format_bytes, plural

LOCAL = "127.0.0.1"
STOP_SECONDS = 30  # for the engine to end after it has answered
HEALTH = {"interval": "10s", "timeout": "10s", "retries": 6}
# For the image's own Python: nearly every engine's has one, few have curl.
ASK = "import urllib.request; urllib.request.urlopen({url!r}, timeout=5)"
CONNECT = "import socket; socket.create_connection(('localhost', {port}), timeout=5)"
CLOSED: Tree = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
LOGGING = {"driver": "json-file", "options": {"max-size": "50m", "max-file": "5"}}
ASSIGNED = "run ./assign.sh"


def services(part: Part) -> Iterator[tuple[str, Tree]]:
    """Its containers, and those that have to end before they start."""
    before = {}
    if part.workload.notebook:
        before[f"{part.name}-scratch"] = _opened(part)
    if part.launch.before:
        entry = [_plain(word) for word in part.launch.before]
        before[f"{part.name}-weights"] = {**_common(part, 0), "entrypoint": entry, "restart": "no"}
    yield from before.items()
    others = {w.name: w for w in part.plan.workloads}
    ended = [name for other in part.before for name in containers(others[other])]
    needs = {name: {"condition": "service_completed_successfully"} for name in (*before, *ended)}
    for index, share in enumerate(part.shares):
        yield share.container, _service(part, index, share) | {"depends_on": needs or None}


def _service(part: Part, index: int, share: Share) -> Tree:
    stays = not part.ends
    direct = part.port is not None and not part.balanced
    return {
        **_common(part, index),
        "entrypoint": [_plain(word) for word in part.launch.command] or None,
        "command": [
            *(written(argument, str(index), _plain) for argument in part.launch.arguments),
            *_drained(part),
        ]
        or None,
        "cpuset": Because(
            f"${{{share.cpus}:?{ASSIGNED}}}",
            f"{plural(share.cores, 'physical core')} beside its GPUs, with all their threads",
        ),
        **_devices(part, share),
        "ports": [f"{LOCAL}:{(part.port or 0) + index}:{part.launch.port}"] if direct else None,
        "healthcheck": _health(part) if part.port is not None else None,
        "restart": "unless-stopped" if stays else "no",
        "stop_grace_period": f"{_stop_seconds(part)}s",
    }


def _common(part: Part, index: int) -> Tree:
    """Of the engine's container and of one that prepares it."""
    workload = part.workload
    need = workload.resources
    memory, shared = need.host_memory_bytes, need.shared_memory_bytes
    why = f"{format_bytes(memory)}" + (f", {format_bytes(shared)} of it shared" if shared else "")
    file = storage.variables_file(workload)
    return {
        "image": image(workload.engine, part.plan.network),
        "environment": _environment(part) or None,
        "env_file": [file] if file else None,
        "secrets": storage.mounted(part) or None,
        "volumes": list(storage.mounts(part, index)),
        "read_only": True if part.launch.read_only else None,
        "networks": [part.name],
        "mem_limit": Because(_size(memory), why),
        "shm_size": _size(shared) if shared else None,
        "ulimits": {"memlock": -1, "stack": 64 * MIB},
        **_rights(part),
        "profiles": [*part.profiles] or None,
        "logging": LOGGING,
        "labels": {"gpuplan.dev/stack": part.plan.name, "gpuplan.dev/tenant": workload.tenant},
    }


def _opened(part: Part) -> Tree:
    """Lets the image's own user write to scratch, which Docker makes for root."""
    names = storage.scratch(part.workload)
    return {
        "image": image(part.workload.engine, part.plan.network),
        "user": "0:0",
        "entrypoint": ["chmod", "1777", *(f"/{name}" for name in names)],
        "volumes": [{"type": "volume", "source": name, "target": f"/{name}"} for name in names],
        "network_mode": "none",
        "read_only": True,
        **CLOSED,
        "restart": "no",
    }


def _devices(part: Part, share: Share) -> Tree:
    """By UUID, which a start of the machine does not change; without a runtime by their files,
    which it may: the script finds them again."""
    identifiers = [f"${{{name}:?{ASSIGNED}}}" for name in share.devices]
    maker = part.plan.node_pools[0].maker
    if maker.devices:
        return {"devices": [*maker.devices, *identifiers]}
    device = {"driver": "nvidia", "device_ids": identifiers, "capabilities": ["gpu"]}
    return {"deploy": {"resources": {"reservations": {"devices": [device]}}}}


def _rights(part: Part) -> Tree:
    """The least, and what the GPUs' vendor asks for."""
    maker = part.plan.node_pools[0].maker
    settings = dict(CLOSED)
    if maker.capabilities:
        settings["cap_add"] = Because([*maker.capabilities], maker.reason)
    if maker.seccomp == "Unconfined":
        settings["security_opt"] = [*CLOSED["security_opt"], "seccomp=unconfined"]
    return settings


def _environment(part: Part) -> Tree:
    secret = {s.environment for s in part.workload.secrets}
    values = contained(part.workload, part.launch, part.plan.network).items()
    plain = {name: _plain(value) for name, value in values if name not in secret}
    if storage.has_token(part.workload) and not part.launch.token_in_home:
        plain[storage.TOKEN_FILE] = storage.token_path(part)
    return plain


def _health(part: Part) -> Tree:
    port, path = part.launch.port, part.launch.health
    connect, url = CONNECT.format(port=port), f"http://localhost:{port}{path}"
    script = connect if path is None else ASK.format(url=url)
    test = ["CMD", "python3", "-c", _plain(script)]
    if not part.launch.python:
        test = ["CMD", "curl", "--fail", "--silent", "--max-time", "5", _plain(url)]
    seconds = Because(durations.WARM_UP_SECONDS, "for the notebook to start")
    if part.workload.notebook is None:
        why = durations.startup_reason(part.plan, part.workload)
        seconds = Because(durations.startup_seconds(part.plan, part.workload), why)
    return {
        "test": test,
        **HEALTH,
        "start_period": Because(f"{seconds.value}s", seconds.reason),
    }


def _drained(part: Part) -> Iterator[Because]:
    """The engine's own setting for how long it finishes its requests."""
    if part.launch.drain_flag is not None:
        seconds = durations.drain_seconds(part.plan, part.workload)
        why = durations.drain_reason(part.plan, part.workload)
        yield Because(f"--{part.launch.drain_flag}={seconds}", why)


def _stop_seconds(part: Part) -> int:
    """An engine without that setting drops its requests."""
    drains = part.launch.drain_flag is not None
    return STOP_SECONDS + (durations.drain_seconds(part.plan, part.workload) if drains else 0)


def _plain(text: str) -> str:
    """Compose expands `$NAME`, and reads `$$` as `$`."""
    return text.replace("$", "$$")


def _size(size_bytes: int) -> str:
    """Kibibytes, in Docker's words."""
    return f"{-(-size_bytes // KIB)}k"


def addresses(part: Part) -> Iterator[tuple[str, str]]:
    """Where the machine itself reaches each of its services."""
    if part.port is None:
        return
    names = (part.balancer,) if part.balanced else containers(part.workload)
    for index, name in enumerate(names):
        yield name, f"http://{LOCAL}:{part.port + index}"
