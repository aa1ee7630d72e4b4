"""The container of a workload: its folders, its variables, and the port that others connect to."""

from __future__ import annotations

from gpuplan.engines.launch import Launch
from gpuplan.engines.reach import reach
from gpuplan.plan.model import Engine, Workload
from gpuplan.plan.outside.network import Network, mirrored

CONFIG = "/etc/gpuplan"  # the engine's configuration, to be read only
SCRATCH = "/scratch"  # of its own, gone with the container
TEMPORARY = "/tmp"  # noqa: S108 - on disk: programs are compiled there, loaded, and may be large
NOTEBOOK_PORT = 8888  # Jupyter's own default


def folder(workload: Workload, *purposes: str) -> str:
    """Where the volume for the first of `purposes` that there is one for is mounted, or scratch."""
    mounted = {v.purpose: v.mount_path for v in workload.volumes}
    return next((mounted[p] for p in purposes if p in mounted), SCRATCH)


def image(engine: Engine, network: Network | None = None) -> str:
    """The pinned image, at its mirror where there is one; by digest where one is known."""
    name = mirrored(engine.image, network)
    return f"{name}@{engine.digest}" if engine.digest else name


def variables(workload: Workload, launch: Launch, network: Network | None = None) -> dict[str, str]:
    """The engine's own and those of the `network`, then the manifest's, which replace them. Secrets
    are not among them."""
    own = {"HF_HOME": folder(workload, "models"), "XDG_CACHE_HOME": f"{SCRATCH}/cache"}
    if workload.training is not None:
        # Downloads of weights and of data go to one cache, below HF_HOME: `datasets` and
        # `transformers` know no other. What is made of the data goes here.
        own["HF_DATASETS_CACHE"] = f"{folder(workload, 'dataset')}/datasets"
    own |= reach(network) | dict(launch.environment)
    own |= {v.name: v.value for v in workload.engine.environment}
    return own | {e.name: e.value for e in workload.environment}


def contained(workload: Workload, launch: Launch, network: Network | None = None) -> dict[str, str]:
    """Its `variables`, with a home that it can write to where its root is read-only."""
    own = variables(workload, launch, network)
    return {"HOME": SCRATCH} | own if launch.read_only else own


def listening_port(workload: Workload) -> int | None:
    """Where a server or a notebook is reached; None for a run."""
    if workload.notebook:
        return NOTEBOOK_PORT
    settings = workload.serving or workload.image_generation
    return settings.port if settings and workload.task == "inference" else None
