"""Derived numbers meet the manifest's overrides: the override wins, and what it replaced stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Override
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.fields import ManifestField
from gpuplan.sizing.ask.given import Given, mapped
from gpuplan.sizing.ask.messages import override_cannot_work, override_is_unwise
from gpuplan.sizing.ask.parts import Overrides
from gpuplan.sizing.candidates.sized import Unforced
from gpuplan.sizing.evidence.formula import Ledger, Quantity
from gpuplan.source import Origin

D_co = TypeVar("D_co", bound=Demand, covariant=True)


class Settled(Generic[D_co]):
    """The ledger of a chosen candidate, and the overrides that were met on the way. Every number of
    the manifest, and every default, stands at the ledger's start; those of `demand` point there.
    `free` is what the search would have chosen without what narrowed it."""

    def __init__(self, demand: D_co, free: Unforced | None = None) -> None:
        self.free = free or Unforced()
        self.ledger = Ledger(demand.name)
        self.overrides: list[Override] = []
        self.problems: list[Diagnostic] = []
        self._name, self._origin = demand.name, demand.origin
        given = mapped(replace(demand, overrides=Overrides()), self._recorded)
        self.demand: D_co = replace(given, overrides=demand.overrides)

    def _recorded(self, number: Given) -> Given:
        """A number as it stands in the ledger, or marked where it replaces a derived default."""
        name = number.field.path.removeprefix("overrides.")
        if number.replaced is None:
            return replace(number, source=self.ledger.given(name, number).source)
        self.ledger.given(name, number.replaced)
        self._override(name, number.replaced.value, number)
        return number

    def settle(
        self, name: str, derived: Quantity, chosen: Given | None, free: float | None = None
    ) -> Quantity:
        """`derived`, or the override; `name` must be recorded already. `free`: what is derived
        without the override, where it changes the layout that `derived` is of."""
        if chosen is None:
            return derived
        if free is not None and free != derived.value:
            why = "choice: of what the search takes without the override"
            self.ledger.given(name, Quantity(free, derived.unit, why))
        return self._override(name, derived.value if free is None else free, chosen)

    def hold(self, chosen: Given | None, why: str, *, works: bool, wise: bool = True) -> None:
        """An error where an override cannot work, a warning where it is unwise."""
        if chosen is None or (works and wise):
            return
        say = override_is_unwise if works else override_cannot_work
        self.problems.append(say(chosen.field.path, why, self._at(chosen.field)))

    def choice(
        self, name: str, made: Quantity, chosen: Given | None, free: float | None
    ) -> Quantity:
        """A choice of the search. Where an override made it, `free` is what the search would have
        chosen without (None: nothing fits without)."""
        if chosen is None:
            return self.ledger.given(name, made)
        shown = made.value if free is None else free
        self.ledger.given(name, Quantity(shown, made.unit, made.source))
        return self._override(name, free, chosen)

    def text(self, name: str, value: str, derived: str | None) -> None:
        """An override that is not a number."""
        self.overrides.append(
            Override(
                quantity=f"{self._name}.{name}",
                derived=derived,
                value=value,
                unit="",
                origin=self._origin.child("overrides", name),
            )
        )

    def _at(self, field: ManifestField) -> Origin:
        return self._origin.child(*field.parts)

    def _override(self, name: str, derived: float | None, chosen: Given) -> Quantity:
        self.overrides.append(
            Override(
                quantity=f"{self._name}.{name}",
                derived=derived,
                value=chosen.value,
                unit=chosen.unit,
                origin=self._at(chosen.field),
            )
        )
        return self.ledger.override(name, chosen)
