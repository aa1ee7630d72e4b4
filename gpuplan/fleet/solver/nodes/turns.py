"""Which sites are asked for a content that gains, turn by turn."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.fleet.solver.nodes.contents import NodeSite


class Turns:
    """A site that had none `n` times on end is asked every `2 n + 1` turns. After a turn in which
    none gained all are asked; where none gains then either, there is no content that does."""

    def __init__(self, sites: Iterable[NodeSite]) -> None:
        self._without = dict.fromkeys(sites, 0)
        self._turn, self._all, self._gained = 0, False, False

    def asked(self) -> list[NodeSite]:
        self._gained = False
        turn, every = self._turn, self._all
        return [site for site, n in self._without.items() if every or not turn % (1 + 2 * n)]

    def told(self, site: NodeSite, *, gained: bool) -> None:
        self._without[site] = 0 if gained else self._without[site] + 1
        self._gained |= gained

    @property
    def fruitless(self) -> bool:
        """All were asked in this turn, and none gained."""
        return self._all and not self._gained

    def end(self) -> None:
        self._turn, self._all = self._turn + 1, not self._gained
