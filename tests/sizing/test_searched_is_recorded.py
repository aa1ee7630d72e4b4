"""What a search weighs is what the plan records: number for number, of every kind of workload."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuplan.sizing.candidates.choose import best
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.kinds.serving.limit import LimitedReplica
from gpuplan.sizing.kinds.serving.pools import PooledReplica
from gpuplan.sizing.model import shapes
from tests.sizing.test_evidence_chain import DIVIDED, WHERE, answer
from tests.sizing.test_interruptions import figures
from tests.sizing.test_parallel_runs import demand
from tests.support.sizing_cases import site, wanted

# Pools are recorded half by half; a notebook has nothing to evaluate.
LEFT_OUT = ("pools", "notebooks")
# Runs divide a whole model by `model_shards`; what a GPU of a group has is recorded and not asked.
OF_A_GPU = {name for part in (shapes.GROUPED, shapes.MLP, shapes.EXPERTS) for name, _ in part.lines}
NAMES = [name for name in WHERE if not name.startswith(LEFT_OUT)]


def weighed(name: str) -> tuple[Mapping[str, float], Mapping[str, float], str]:
    """What the chosen candidate was judged by: its numbers, and those of its memory; what its times
    are called in the evidence."""
    text, where = WHERE[name]
    asked = demand(text) if name in DIVIDED else wanted(text)
    where = where or (site() if name in DIVIDED else site("h200-sxm-141gb", "l40s"))
    chosen = best(c for _, group in tried(asked, where) for c in group)
    assert chosen is not None
    layout = chosen.detail
    if isinstance(layout, LimitedReplica):
        times = layout.replica.times(layout.limit)
        needs = layout.replica.needs(layout.limit)
        at_peak = {"sequences", "closed_rate", "requests_in_second", "arrival_variation"}
        return times, {n: v for n, v in needs.items() if n not in at_peak}, "limit."
    values = layout.values  # type: ignore[attr-defined]
    return values, {}, ""


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_of_the_search_are_those_of_the_plan(name: str) -> None:
    times, needs, prefix = weighed(name)
    plan = answer.__wrapped__(name)
    changed = {e.quantity for e in plan.evidence if e.overridden_by}
    known = {n: v for n, v in figures(plan).items() if f"work.{n}" not in changed}
    both = [(known[f"{prefix}{n}"], v, n) for n, v in times.items() if f"{prefix}{n}" in known]
    both += [(known[n], v, n) for n, v in needs.items() if n in known]
    assert len(both) > 10
    compared = [row for row in both if not (plan.workload.training and row[2] in OF_A_GPU)]
    for recorded, searched, what in compared:
        assert searched == pytest.approx(recorded, rel=1e-6, abs=1e-12), what


@pytest.mark.parametrize("name", [name for name in WHERE if name.startswith("pools")])
def test_pools_have_the_replicas_and_rates_that_were_weighed(name: str) -> None:
    text, where = WHERE[name]
    groups = tried(wanted(text), where or site("h200-sxm-141gb", "l40s"))
    chosen = best(c for _, group in groups for c in group)
    assert chosen is not None
    layout = chosen.detail
    assert isinstance(layout, PooledReplica)
    known, pair = figures(answer(name)), layout.pair
    assert known["prefill_replicas"] == pair.prefills
    assert known["decode_replicas"] == pair.decodes
    assert known["prefill_rate"] == pytest.approx(pair.prefill.rate, rel=1e-4)
    assert known["decode_rate"] == pytest.approx(pair.decode.rate, rel=1e-4)
    assert known["limit.decode.seconds"] == pytest.approx(pair.decode.seconds)
    assert known["prefill.transfer_rate"] == layout.sent
