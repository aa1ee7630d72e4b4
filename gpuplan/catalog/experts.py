"""Which kernels an engine's releases have for experts of NVFP4 that NVIDIA's Model Optimizer made.

`kernels.py` reads them with all else that `data/kernels` says of an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.catalog.model import Gpu
from gpuplan.frozen import record
from gpuplan.releases import stated


@record
class NamedExperts:
    """From a release on, GPUs on which a `backend` of experts runs only if it is named. It takes
    experts whose part on a GPU is a multiple of `rows` wide."""

    capability: str
    since: tuple[int, ...]
    backend: str
    rows: int


@record
class MissingExperts:
    """Releases from `since` on, before `until`, that run no experts of `models` on GPUs."""

    capability: str
    since: tuple[int, ...]
    until: tuple[int, ...]
    models: tuple[str, ...]


@record
class ExpertKernels:
    """Of an engine; `chosen`: from which release on it names the backend of a model itself."""

    named: NamedExperts | None
    chosen: Mapping[str, tuple[int, ...]]
    missing: tuple[MissingExperts, ...]

    def told(self, release: tuple[int, ...], gpu: Gpu, architecture: str) -> NamedExperts | None:
        """What the release must be told; None where it chooses."""
        named = self.named
        if named is None or release < named.since or not gpu.capable(named.capability):
            return None
        first = self.chosen.get(architecture)
        return named if first is None or release < first else None

    def lacks(self, release: tuple[int, ...], gpu: Gpu, architecture: str) -> bool:
        return any(
            row.since <= release < row.until
            and architecture in row.models
            and gpu.capable(row.capability)
            for row in self.missing
        )


def expert_kernels(entry: Mapping[str, Any]) -> ExpertKernels:
    """Of an engine's compiled entry."""
    named = entry.get("named_experts")
    return ExpertKernels(
        named=named
        and NamedExperts(
            capability=named["capability"],
            since=stated(named["since"]),
            backend=named["backend"],
            rows=named["rows"],
        ),
        chosen={m: stated(r["since"]) for r in entry["chosen_experts"] for m in r["models"]},
        missing=tuple(
            MissingExperts(
                capability=row["capability"],
                since=stated(row["since"]),
                until=stated(row["until"]),
                models=tuple(row["models"]),
            )
            for row in entry["missing_experts"]
        ),
    )
