"""Overrides stand where derived numbers stood, and what was derived stays to be seen."""

from __future__ import annotations

from gpuplan.diagnostics import Severity
from gpuplan.sizing.ask import fields as f
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Quantity
from tests.support.sizing_cases import CHAT_8B, wanted

MADE = Quantity(4.0, "1", "choice: the search")
CHOSEN = Given(7.0, "1", "manifest: overrides.replicas", f.REPLICAS)


def settled() -> Settled:  # type: ignore[type-arg]
    return Settled(wanted(CHAT_8B))


def value(made: Settled, name: str) -> float:  # type: ignore[type-arg]
    return made.ledger.entries[f"work.{name}"].value


def test_a_choice_that_nobody_overrides_is_that_of_the_search() -> None:
    made = settled()
    assert made.choice("replicas", MADE, None, 3.0).value == 4
    assert value(made, "replicas") == 4
    assert made.overrides == []


def test_an_overridden_choice_shows_what_the_search_would_take() -> None:
    made = settled()
    assert made.choice("replicas", MADE, CHOSEN, 3.0).value == 7
    assert value(made, "replicas") == 3
    assert made.ledger.entries["work.replicas"].overridden_by == CHOSEN.source
    (override,) = made.overrides
    assert (override.quantity, override.derived, override.value) == ("work.replicas", 3, 7)


def test_where_nothing_fits_without_the_override_nothing_was_derived() -> None:
    made = settled()
    assert made.choice("replicas", MADE, CHOSEN, None).value == 7
    assert value(made, "replicas") == 4
    assert made.overrides[0].derived is None


def test_a_derived_number_stays_beside_its_override() -> None:
    made = settled()
    made.ledger.given("replicas", MADE)
    assert made.settle("replicas", MADE, None) is MADE
    assert made.settle("replicas", MADE, CHOSEN).value == 7
    assert (value(made, "replicas"), made.overrides[0].derived) == (4, 4)


def test_an_override_that_cannot_work_is_an_error_and_an_unwise_one_a_warning() -> None:
    made = settled()
    made.hold(None, "why", works=False)
    made.hold(CHOSEN, "why", works=True)
    assert made.problems == []
    made.hold(CHOSEN, "why", works=True, wise=False)
    made.hold(CHOSEN, "why", works=False, wise=True)
    assert [p.severity for p in made.problems] == [Severity.WARNING, Severity.ERROR]
