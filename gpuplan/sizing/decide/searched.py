"""What the search of one workload tried."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.frozen import frozen
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.choose import Candidate, best, furthest
from gpuplan.sizing.hardware.offers import GpuOffer


@frozen
class Search:
    """What was tried for a workload: the candidates of each offer."""

    demand: Demand
    groups: tuple[tuple[GpuOffer, tuple[Candidate, ...]], ...]

    @property
    def kinds(self) -> dict[str | int, list[Candidate]]:
        """The candidates of each kind of machine, and of each GPU type in whatever nodes of it are
        bought."""
        kinds: dict[str | int, list[Candidate]] = {}
        for offer, group in self.groups:
            kinds.setdefault(offer.gpu.identifier if offer.shape else id(offer), []).extend(group)
        return kinds

    @property
    def allowed(self) -> Iterator[Candidate]:
        """All candidates, or those of the GPU type that an override asks for."""
        forced = self.demand.overrides.gpu
        return (c for o, group in self.groups if forced in (None, o.gpu.identifier) for c in group)

    @property
    def best(self) -> Candidate | None:
        """The one that is cheapest alone."""
        return best(self.allowed)

    @property
    def rejected(self) -> list[Candidate]:
        """Of each kind of machine that may be used the candidate that got furthest."""
        forced = self.demand.overrides.gpu
        stopped = map(furthest, self.kinds.values())
        return [c for c in stopped if c and forced in (None, c.device.gpu.identifier)]
