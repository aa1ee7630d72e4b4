"""What machines are said to serve is what a plan of as many replicas says that it serves."""

from __future__ import annotations

import pytest

from gpuplan.plan.capacity import Capacity
from gpuplan.sizing.ask.demand import ModelDemand
from gpuplan.sizing.decide.capacity import capacities
from gpuplan.sizing.evidence.intervals import at_confidence
from tests.sizing.test_interruptions import BATCHES, SERVICES, figures
from tests.sizing.test_kinds_told import where
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, sized, wanted

KINDS = {n: t for n, t in (SERVICES | BATCHES).items() if n != "notebooks"} | {"70B": CHAT_70B}


def asked(text: str, nodes: int, **changes: object) -> Capacity:
    demand = wanted(text)
    assert isinstance(demand, ModelDemand)
    (found,) = capacities(demand, where(**changes), nodes)
    return found


@pytest.mark.parametrize("case", KINDS)
def test_replicas_that_the_nodes_hold_serve_what_their_plan_says(case: str) -> None:
    """On three nodes of 8 GPUs."""
    told = asked(KINDS[case], 3)
    assert (told.nodes, told.assumed, told.gpus_per_node, told.confidence) == (3, True, 8, 0.8)
    assert told.replicas is not None
    assert told.requests_per_second is not None
    each = told.tensor_parallel_size or 1
    assert told.replicas == 3 * (8 // each)
    fixed = f"    overrides: {{replicas: {told.replicas}"
    fixed += f", tensor_parallel_size: {each}" if "chat" in case or case in ("70B", "batch") else ""
    answer = sized(KINDS[case] + fixed + "}\n", where(node_count=3))
    served = next(
        m.estimate
        for m in answer.workload.metrics
        if m.name in ("requests_per_second", "images_per_second")
    )
    part = 1.0
    if case == "images":  # a plan counts its replicas busy all the time
        part = figures(answer)["load_limit"]
    said = told.requests_per_second
    for end in ("value", "low", "high"):
        expected = getattr(served, end) * part
        assert getattr(said, end) == pytest.approx(expected, rel=1e-6), end
    assert said.basis == served.basis
    slow = at_confidence((served.value / served.high, served.value / served.low), 0.8)
    assert told.assured == pytest.approx(said.value / slow, rel=1e-5)
    assert told.users is None
    assert asked(KINDS[case], 9, node_count=3).assumed is False
    assert asked(KINDS[case], 9, node_count=3).replicas == told.replicas


@pytest.mark.parametrize("pause", [0, 10])
def test_users_who_wait_are_as_many_as_are_answered_with_their_pauses(pause: int) -> None:
    closed = f"concurrency: {{users: 50, think_time: {pause} s}}"
    text = CHAT_8B.replace("requests_per_second: 2", closed)
    told = asked(text, 1)
    assert told.users is not None
    assert told.assured is not None
    assert told.requests_per_second is not None
    answer = sized(text, where())
    known = figures(answer)
    slow = told.requests_per_second.value / told.assured
    seconds = known["limit.request_seconds"] * slow
    assert told.users == pytest.approx(told.assured * (pause + seconds), abs=1)
    most = text.replace("users: 50", f"users: {told.users}")
    more = text.replace("users: 50", f"users: {told.users + 9}")
    eight = "    overrides: {replicas: 8, tensor_parallel_size: 1}\n"
    assert sized(most + eight, where()).workload.replicas == 8
    with pytest.raises(AssertionError, match="replicas"):
        sized(more + eight, where())
