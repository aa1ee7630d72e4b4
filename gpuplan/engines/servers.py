"""How each serving engine is started: its command, its settings and what it has none for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpuplan.engines import across, arguments, tensorrt, triton, weights
from gpuplan.engines.container import listening_port
from gpuplan.engines.launch import Argument, Indexed, Launch
from gpuplan.plan.model import Engine, Workload, record
from gpuplan.releases import minor

HEALTH = "/health"


@record
class Server:
    """`images`: it serves a plan's `image_generation`, else its `serving`; `pooling`: only models
    that write no text; `python`: its image has one. `parallelism` names the
    sizes that it has a setting for. `drain`: the release that first has a setting for how long it
    finishes its requests, and its name. `before`: a command that has to end before it starts,
    `files` what it reads.
    `videos`: the first release that makes them.
    `token_in_home` is that of its `Launch`; `read_only` the images of which that is known.
    `across`: how the parts of a replica over nodes find each other, of its first node or not."""

    command: tuple[str, ...]
    arguments: Callable[[Workload], Iterator[Argument]]
    environment: tuple[tuple[str, str], ...] = ()
    health: str = HEALTH
    images: bool = False
    pooling: bool = False
    python: bool = True
    token_in_home: bool = False
    read_only: tuple[str, ...] = ()
    parallelism: frozenset[str] = frozenset(("tensor", "pipeline", "data", "expert"))
    drain: tuple[tuple[int, int], str] | None = None
    videos: tuple[int, int] | None = None
    before: Callable[[Workload], tuple[str, ...]] | None = None
    files: Callable[[Workload], Iterator[tuple[str, str]]] | None = None
    across: Callable[[Workload, bool], Iterator[Argument]] | None = None


_NO_STATISTICS = (("VLLM_NO_USAGE_STATS", "1"),)

SERVERS = {
    "sglang": Server(
        command=("python3", "-m", "sglang.launch_server"),
        arguments=arguments.sglang,
        across=across.sglang,
    ),
    "vllm": Server(
        command=("vllm", "serve"),
        arguments=arguments.vllm,
        environment=_NO_STATISTICS,
        drain=((0, 19), "shutdown-timeout"),  # vllm-project/vllm#36666, 2026-03; seen in 0.27.1
        across=across.vllm,
        # As another user than root, who may write to no folder of the image: llm-d/llm-d#1711 and
        # guides/optimized-baseline, whose containers have $HOME/.triton, .config and .cache alone.
        read_only=("vllm/vllm-openai",),
    ),
    "tei": Server(
        command=(),  # the image's own, which starts the program for its GPU
        arguments=arguments.tei,
        parallelism=frozenset(),
        pooling=True,
        python=False,  # Dockerfile-cuda-all installs curl
        # router/src/main.rs of v1.9.3: "will be read from the `$HF_HOME/token` path"
        token_in_home=True,
        # cuda-all-entrypoint.sh and router/src of v1.9.3: the cache, and a socket in /tmp
        read_only=("ghcr.io/huggingface/text-embeddings-inference",),
    ),
    "tensorrt-llm": Server(
        command=("trtllm-serve", "serve"),
        arguments=tensorrt.arguments,
        files=tensorrt.files,
    ),
    triton.NAME: Server(
        command=(triton.START,),
        arguments=triton.arguments,
        parallelism=frozenset(),
        # --exit-timeout-secs: how long it waits for inferences at work (src/command_line_parser.cc)
        drain=((2, 0), "exit-timeout-secs"),
        health=triton.HEALTH,
    ),
    "vllm-omni": Server(
        command=("vllm", "serve"),
        arguments=arguments.vllm_omni,
        environment=(*_NO_STATISTICS, *weights.ENVIRONMENT),
        images=True,
        parallelism=frozenset(("tensor",)),
        videos=(0, 18),  # jobs at /v1/videos in its wheels since; 0.16 answers when it is done
        before=weights.fetch,
    ),
}


def serve(workload: Workload) -> Launch | None:
    """How to start the workload's server, or None when the engine is not in the table."""
    port = listening_port(workload)
    if workload.command and port is not None:
        port_given = any(part.startswith("--http-port") for part in workload.command)
        own = workload.command[0] == triton.START and not port_given
        return Launch(command=workload.command, port=port, health=triton.HEALTH if own else None)
    server = SERVERS.get(workload.engine.name)
    wanted = workload.image_generation if server and server.images else workload.serving
    if server is None or wanted is None or workload.model is None:
        return None
    reads = workload.serving is not None and workload.serving.pooling is not None
    if reads != server.pooling and workload.engine.name != "vllm":
        return None
    leads, follows = ((), ()) if server.across is None else _parts(server.across, workload)
    given = tuple(server.arguments(workload))
    return Launch(
        command=server.command,
        arguments=(*given, *leads),
        others=(*given, *follows) if follows else (),
        environment=server.environment,
        port=port,
        health=server.health,
        python=server.python,
        token_in_home=server.token_in_home,
        read_only=_known(server, workload.engine),
        drain_flag=_drain_flag(server, workload.engine.version),
        before=server.before(workload) if server.before else (),
        files=tuple(server.files(workload)) if server.files else (),
    )


def _known(server: Server, engine: Engine) -> bool:
    """Whether a source says where its image writes."""
    return not engine.given and engine.image.partition(":")[0] in server.read_only


def _parts(
    across: Callable[[Workload, bool], Iterator[Argument]], workload: Workload
) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    """What the first node of a replica is told beside the engine's arguments, and what the
    others."""
    if workload.nodes_per_replica == 1:
        return (), ()
    return tuple(across(workload, True)), tuple(across(workload, False))  # noqa: FBT003


def _drain_flag(server: Server, version: str) -> str | None:
    if server.drain is None:
        return None
    first, name = server.drain
    return name if _since(first, version) else None


def _since(first: tuple[int, int], version: str) -> bool:
    """A release of the user's that is no number is none that is known to be as new."""
    numbers = minor(version)
    return numbers is not None and numbers >= first


def makes_videos(workload: Workload) -> bool:
    """Whether the engine's release is known to have an address for videos."""
    server = SERVERS.get(workload.engine.name)
    first = server.videos if server else None
    return first is not None and _since(first, workload.engine.version)


def batch(workload: Workload, requests: str, results: str) -> Launch | None:
    """How to answer a file of requests, or None when the engine has no way to. Each process has
    files of its own in the folders `requests` and `results`, by its index (`vllm run-batch`)."""
    if workload.command:
        return Launch(command=workload.command)
    if workload.engine.name != "vllm" or workload.serving is None or workload.model is None:
        return None
    files = (
        Indexed(before=f"--input-file={requests}/requests-", after=".jsonl"),
        Indexed(before=f"--output-file={results}/results-", after=".jsonl"),
    )
    return Launch(
        command=("vllm", "run-batch"),
        arguments=(*files, *arguments.vllm_batch(workload)),
        environment=_NO_STATISTICS,
    )


def having(workload: Workload, kind: str) -> tuple[str, ...]:
    """Engines that could serve the workload and have a setting for a kind of parallelism."""
    makes = workload.image_generation is not None
    reads = workload.serving is not None and workload.serving.pooling is not None
    servers = ((n, s) for n, s in SERVERS.items() if (s.images, s.pooling) == (makes, reads))
    return tuple(name for name, server in servers if kind in server.parallelism)


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
