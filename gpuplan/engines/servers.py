"""How each serving engine is started: its command, its settings and what it has none for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpuplan.engines import arguments
from gpuplan.engines.container import listening_port
from gpuplan.engines.launch import Argument, Indexed, Launch
from gpuplan.plan.model import Workload, record

HEALTH = "/health"


@record
class Server:
    """`images`: it serves a plan's `image_generation`, else its `serving`. `parallelism` names the
    sizes that it has a setting for."""

    command: tuple[str, ...]
    arguments: Callable[[Workload], Iterator[Argument]]
    environment: tuple[tuple[str, str], ...] = ()
    images: bool = False
    parallelism: frozenset[str] = frozenset(("tensor", "pipeline", "data", "expert"))


_NO_STATISTICS = (("VLLM_NO_USAGE_STATS", "1"),)

SERVERS = {
    "sglang": Server(command=("python3", "-m", "sglang.launch_server"), arguments=arguments.sglang),
    "vllm": Server(command=("vllm", "serve"), arguments=arguments.vllm, environment=_NO_STATISTICS),
    "vllm-omni": Server(
        command=("vllm", "serve"),
        arguments=arguments.vllm_omni,
        environment=_NO_STATISTICS,
        images=True,
        parallelism=frozenset(("tensor",)),
    ),
}


def serve(workload: Workload) -> Launch | None:
    """How to start the workload's server, or None when the engine is not in the table."""
    port = listening_port(workload)
    if workload.command and port is not None:
        return Launch(command=workload.command, port=port)
    server = SERVERS.get(workload.engine.name)
    wanted = workload.image_generation if server and server.images else workload.serving
    if server is None or wanted is None or workload.model is None:
        return None
    return Launch(
        command=server.command,
        arguments=tuple(server.arguments(workload)),
        environment=server.environment,
        port=port,
        health=HEALTH,
    )


def batch(workload: Workload, folder: str) -> Launch | None:
    """How to answer a file of requests, or None when the engine has no way to. Each process
    has a file of its own below `folder`, by its index (vLLM, `vllm run-batch`)."""
    if workload.command:
        return Launch(command=workload.command)
    if workload.engine.name != "vllm" or workload.serving is None or workload.model is None:
        return None
    files = (
        Indexed(before=f"--input-file={folder}/requests-", after=".jsonl"),
        Indexed(before=f"--output-file={folder}/results-", after=".jsonl"),
    )
    return Launch(
        command=("vllm", "run-batch"),
        arguments=(*files, *arguments.vllm_batch(workload)),
        environment=_NO_STATISTICS,
    )


def unsupported_parallelism(workload: Workload) -> tuple[str, ...]:
    """The kinds of parallelism above one that the engine has no setting for."""
    sizes, server = workload.parallelism, SERVERS.get(workload.engine.name)
    used = {
        "tensor": sizes.tensor_parallel_size,
        "pipeline": sizes.pipeline_parallel_size,
        "data": sizes.data_parallel_size,
        "expert": sizes.expert_parallel_size,
        "context": sizes.context_parallel_size,
    }
    if workload.command or server is None:
        return ()
    return tuple(kind for kind, size in used.items() if size > 1 and kind not in server.parallelism)
