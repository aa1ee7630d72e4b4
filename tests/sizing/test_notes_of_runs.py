"""From when on a person is told of a run: how long it is, how often it is interrupted, what other
products would save; and in which words."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gpuplan.diagnostics import Diagnostic
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training.notes import noted
from tests.sizing.test_kinds_told import HOURLY, where
from tests.support.sizing_cases import FULL_8B, sized, wanted

DAY = 86400.0
FREE = FULL_8B.replace("    slo: {finish_within: 2 d}\n", "")
PRICED = replace(where(), storage_usd_per_gb_month=Quantity(0.1, "USD/GB/month", "test"))


def layout(seconds: float) -> Any:
    return SimpleNamespace(values={"time_to_finish": seconds})


def diagnostics(
    seconds: float = DAY,
    *,
    text: str = FREE,
    eight: float | None = None,
    site: Site = PRICED,
    nodes: int = 1,
    **scope: float,
) -> tuple[Diagnostic, ...]:
    asked = wanted(text)
    assert isinstance(asked, TrainingDemand)
    plain = sized(HOURLY, PRICED)
    made = replace(plain, diagnostics=(), workload=replace(plain.workload, nodes_per_replica=nodes))
    values = {name: Quantity(value, "1", "test") for name, value in scope.items()}
    other = None if eight is None else layout(eight)
    return noted(made, site, asked, layout(seconds), values, eight=other).diagnostics


def told(*seconds: float, **given: Any) -> list[tuple[str, str]]:
    return [(d.message, d.help) for d in diagnostics(*seconds, **given)]


@pytest.mark.parametrize(
    ("days", "text", "said"),
    [
        (14.0, FREE, False),
        (14.1, FREE, True),
        (99.0, FULL_8B, False),
        (99.0, FREE + "    deadline: 200 d\n", False),
    ],
)
def test_more_than_two_weeks_are_told_where_nothing_limits_them(
    days: float, text: str, *, said: bool
) -> None:
    notes = told(days * DAY, text=text)
    assert [help_ for _, help_ in notes] == (
        ["write `slo: {finish_within: 7 d}` to use more GPUs"] if said else []
    )
    if said:
        assert notes[0][0] == "'work' takes 14.1 d, the cheapest way to run it"


@pytest.mark.parametrize(("eight", "said"), [(None, False), (96.0, False), (95.0, True)])
def test_products_of_8_bits_are_told_where_they_save_a_twentieth(
    eight: float | None, *, said: bool
) -> None:
    notes = told(100 * 60.0, eight=None if eight is None else eight * 60)
    assert bool(notes) == said
    if said:
        assert notes[0][0] == (
            "'work' would take 95 min instead of 100 min on its GPUs with products in fp8"
        )


INTERRUPTED = {"saved_every": 1800.0, "lost_share": 0.02, "spare_nodes": 2.0}


@pytest.mark.parametrize(("times", "said"), [(0.99, False), (1.0, True), (7.4, True)])
def test_interruptions_are_told_from_the_first_on(times: float, *, said: bool) -> None:
    notes = told(interruptions=times, **INTERRUPTED)
    assert bool(notes) == said
    assert told(**INTERRUPTED) == []
    if said:
        count = "1 time" if times == 1 else "7 times"
        assert notes[0][0].startswith(
            f"'work' is interrupted about {count}: a checkpoint every 30 min and what is done again"
            " take "
        )


def test_what_is_advised_of_spare_nodes_depends_on_those_that_stand_by() -> None:
    def advice(text: str, **scope: float) -> str:
        ((message, remedy),) = told(text=text, interruptions=9.0, **(INTERRUPTED | scope))
        waited = "of waiting for repairs" in message
        assert waited == ("waiting_share" in scope)
        return remedy

    assert advice(FREE) == (
        "write `training: {spare_nodes: 2}` to buy 2 spare nodes beside it, not counted: with fewer"
        " it waits for repairs"
    )
    assert "2 spare nodes beside it, $64.00/h, not counted" in advice(FREE, spare_usd_per_hour=64.0)
    for spares, words in (
        (0, "write `training: {spare_nodes: 2}`: with so many it is whole 95 % of the time"),
        (1, "write `training: {spare_nodes: 2}`: with so many it is whole 95 % of the time"),
        (2, "2 spare nodes beside it: no more are needed"),
        (3, "3 spare nodes beside it: no more are needed"),
    ):
        text = FREE.replace("tokens: 1e9", f"tokens: 1e9, spare_nodes: {spares}")
        ((message, remedy), *_) = told(
            text=text, nodes=2, interruptions=9.0, waiting_share=0.01, **INTERRUPTED
        )
        assert "of waiting for repairs" in message
        assert remedy == words


@pytest.mark.parametrize(
    ("target", "thing", "why"),
    [
        ("libvirt", "guest", "a guest is made for each part of a run alone"),
        ("docker", "node", "a stack is for one machine"),
        ("kubernetes", None, None),
    ],
)
@pytest.mark.parametrize("spares", [None, 0, 1])
def test_spares_that_nothing_can_be_are_refused_with_the_targets_reason(
    target: str, thing: str | None, why: str | None, spares: int | None
) -> None:
    more = "" if spares is None else f", spare_nodes: {spares}"
    text = FREE.replace("tokens: 1e9", f"tokens: 1e9{more}")
    notes = diagnostics(text=text, site=replace(PRICED, target=target), nodes=2)
    if thing is None or spares is None:
        assert notes == ()
        return
    (note,) = notes
    assert (note.message, note.help) == (f"no {thing} stands by for 'work'", "leave it out")
    assert note.label == f"on target '{target}' {why}"
