"""Derived numbers meet the manifest's overrides: the override wins, and what it replaced stays."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Override
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.messages import override_cannot_work, override_is_unwise
from gpuplan.sizing.evidence.formula import Ledger, Quantity
from gpuplan.source import Origin


class Settled:
    """The ledger of a chosen candidate and the overrides that were met on the way. Every number of
    the manifest, and every default, stands at its start."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.ledger = Ledger(demand.name)
        self.overrides: list[Override] = []
        self.problems: list[Diagnostic] = []
        self.given = {field: self._given(field, q) for field, q in demand.given.items()}

    def _given(self, field: str, quantity: Quantity) -> Quantity:
        """A number as it stands, or marked where it replaces a derived default."""
        replaced = self.demand.replaced.get(field)
        if replaced is None:
            return self.ledger.given(field, quantity)
        self.ledger.given(field, replaced)
        return self._override(field, replaced.value, quantity, field)

    def settle(self, name: str, derived: Quantity, field: str) -> Quantity:
        """`derived`, or the override in `field`; `name` must be recorded already."""
        chosen = self.demand.given.get(field)
        return derived if chosen is None else self._override(name, derived.value, chosen, field)

    def hold(self, field: str, why: str, *, works: bool, wise: bool = True) -> None:
        """An error where the override in `field` cannot work, a warning where it is unwise."""
        if field not in self.demand.given or (works and wise):
            return
        say = override_is_unwise if works else override_cannot_work
        self.problems.append(say(field, why, self._at(field)))

    def _at(self, field: str) -> Origin:
        return self.demand.origin.child(*field.split("."))

    def choice(self, name: str, made: Quantity, field: str, free: float | None) -> Quantity:
        """A choice of the search. Where an override made it, `free` is what the search would have
        chosen without (None: nothing fits without)."""
        chosen = self.demand.given.get(field)
        if chosen is None:
            return self.ledger.given(name, made)
        shown = made.value if free is None else free
        self.ledger.given(name, Quantity(shown, made.unit, made.source))
        return self._override(name, free, chosen, field)

    def text(self, name: str, field: str, value: str) -> None:
        """An override that is not a number."""
        self.overrides.append(
            Override(
                quantity=f"{self.demand.name}.{name}",
                derived=None,
                value=value,
                unit="",
                origin=self._at(field),
            )
        )

    def _override(self, name: str, derived: float | None, chosen: Quantity, field: str) -> Quantity:
        self.overrides.append(
            Override(
                quantity=f"{self.demand.name}.{name}",
                derived=derived,
                value=chosen.value,
                unit=chosen.unit,
                origin=self._at(field),
            )
        )
        return self.ledger.override(name, chosen)
