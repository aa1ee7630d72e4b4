"""What is known of a chosen candidate, and a row of its balance."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.frozen import frozen
from gpuplan.plan.model import Metric, ResourceUse, Training
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity
from gpuplan.sizing.hardware.offers import Site

_SAID = "the part of what there is that is needed"
_UNITS = {
    "1": "count",
    "1/s": "per_second",
    "B": "bytes",
    "B/s": "bytes_per_s",
    "s": "seconds",
    "W": "watts",
}
STORAGE = "`platform.storage.bandwidth` is not stated"


@frozen
class Gathered:
    """A candidate whose numbers stand in `ledger`; `training` are the settings of a run."""

    ledger: Ledger
    demand: Demand
    site: Site
    candidate: Candidate
    metrics: Sequence[Metric]
    bound_by: str
    training: Training | None

    def known(self, name: str) -> Quantity | None:
        """A recorded quantity."""
        key = f"{self.ledger.prefix}.{name}"
        entry = self.ledger.entries.get(key)
        return None if entry is None else Quantity(entry.value, entry.unit, f"quantity:{key}")

    def use(
        self,
        resource: str,
        of: str,
        need: Quantity | None,
        supply: Quantity | None,
        remedy: str,
        *,
        unknown: str | None = None,
    ) -> ResourceUse:
        """The row, with its share as evidence where both sides are known; without a remedy where
        one is not, since then nothing is known to be short."""
        if need is not None and supply is not None:
            unknown = None if supply.value else "none of it is left"
            if supply.value:
                kind = _UNITS[need.unit]
                share = Formula(f"needed_{kind} / given_{kind}", "1", _SAID)
                sides = {f"needed_{kind}": need, f"given_{kind}": supply}
                self.ledger.derive(f"balance.{resource}", share, **sides)
        return ResourceUse(
            resource=resource,
            of=of,
            need=None if need is None else need.value,
            supply=None if supply is None else supply.value,
            unit=(need or supply or Quantity(0, "1", "")).unit,
            remedy=None if need is None or supply is None else remedy,
            unknown=unknown,
        )
