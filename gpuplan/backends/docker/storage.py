"""The volumes of a workload, and the files that hold its secrets."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.docker.view import Part, containers
from gpuplan.engines.container import CONFIG, SCRATCH, TEMPORARY, variables
from gpuplan.plan.model import Workload
from gpuplan.render.commented import Tree

TOKEN = "HF_TOKEN"  # noqa: S105 - the variable whose value huggingface_hub also reads from a file
TOKEN_FILE = "HF_TOKEN_PATH"  # noqa: S105
SECRETS = ".secrets"  # hidden, so that it is the user's


def mounts(part: Part, index: int) -> Iterator[Tree]:
    """What the container with this number mounts."""
    workload = part.workload
    for volume in workload.volumes:
        name = _name(workload, volume.name, index if volume.per_replica else None)
        yield {"type": "volume", "source": name, "target": volume.mount_path}
    if workload.notebook:
        yield {"type": "volume", "source": scratch(workload)[index], "target": SCRATCH}
    else:
        yield {"type": "volume", "target": SCRATCH}
    if part.launch.read_only:
        yield {"type": "volume", "target": TEMPORARY}
    if part.launch.files:
        source = f"./workloads/{workload.name}"
        yield {"type": "bind", "source": source, "target": CONFIG, "read_only": True}


def volumes(workload: Workload) -> Tree:
    """One for all containers, which are on one machine, or one each."""
    names: Tree = {}
    for volume in workload.volumes:
        for index in range(workload.replicas) if volume.per_replica else (None,):
            names[_name(workload, volume.name, index)] = {}
    return names | {name: {} for name in (scratch(workload) if workload.notebook else ())}


def scratch(workload: Workload) -> tuple[str, ...]:
    """Of each container, where others have one without a name."""
    return tuple(f"{container}-scratch" for container in containers(workload))


def disk_bytes(workload: Workload) -> int:
    each = [v.size_bytes * (workload.replicas if v.per_replica else 1) for v in workload.volumes]
    return sum(each) + workload.resources.scratch_bytes * workload.replicas


def _name(workload: Workload, volume: str, index: int | None) -> str:
    return f"{workload.oldest_name}-{volume}" + ("" if index is None else f"-{index}")


def has_token(workload: Workload) -> bool:
    return any(s.environment == TOKEN for s in workload.secrets)


def token(workload: Workload) -> str:
    """The Compose secret, and the file that it is."""
    return f"{workload.name}-hf-token"


def mounted(part: Part) -> list[str | Tree]:
    """Where the container reads the token: Compose's own folder, or where its engine looks."""
    work = part.workload
    if not has_token(work):
        return []
    return [{"source": token(work), "target": token_path(part)}]


def token_path(part: Part) -> str:
    """On a volume where the root is read-only: Podman makes no file below /run/secrets there."""
    work = part.workload
    if part.launch.token_in_home:
        return variables(work, part.launch, part.plan.network)["HF_HOME"] + "/token"
    return f"{SCRATCH if part.launch.read_only else '/run/secrets'}/{token(work)}"


def variables_file(workload: Workload) -> str | None:
    """The file with the secrets that are variables; None where there is none."""
    return f"{SECRETS}/{workload.name}.env" if _variables(workload) else None


def secrets(workload: Workload) -> Tree:
    if not has_token(workload):
        return {}
    return {token(workload): {"file": f"./{SECRETS}/{token(workload)}"}}


def secret_files(workload: Workload) -> Iterator[tuple[str, str]]:
    """The files that people write before the start, each with what is in it."""
    if has_token(workload):
        yield f"{SECRETS}/{token(workload)}", "the token alone"
    if file := variables_file(workload):
        yield file, f"a line NAME=VALUE for each of {', '.join(_variables(workload))}"


def _variables(workload: Workload) -> tuple[str, ...]:
    return tuple(s.environment for s in workload.secrets if s.environment != TOKEN)
