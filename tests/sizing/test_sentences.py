"""The sentences of a search that found nothing: of memory it is said that something does not fit,
of all else that nothing meets what is asked. GPU types that stop alike are named together."""

from __future__ import annotations

import pytest

from gpuplan.plan.model import Shortfall
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import uneven
from gpuplan.sizing.decide.messages import (
    describe,
    not_measured,
    nothing_fits,
    nothing_runs,
    override_does_not_fit,
    rack_feeds_no_node,
)
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.measured import gate_of
from gpuplan.source import Origin
from gpuplan.units import GIB
from tests.support.sizing_cases import offer

AT = Origin("m.yaml", ("workloads", 0))


def short(resource: str, requested: float, capacity: float, unit: str = "1") -> Shortfall:
    return Shortfall(resource=resource, requested=requested, used=0.0, capacity=capacity, unit=unit)


def stopped(gate: Shortfall, gpu: str = "l4", *more: Shortfall) -> Candidate:
    return Candidate(
        device=whole(offer(gpu)),
        gpus=1,
        replicas=1,
        isolation="gpu",
        shortfalls=(gate, *more),
    )


MEMORY = short("gpu_memory", 90 * GIB, 20 * GIB, "B")
CACHE = short("kv_cache", 30 * GIB, 20 * GIB, "B")
LATE = short("time_to_first_token", 2.0, 1.0, "s")
FEW = short("nodes", 3, 2, "nodes")


@pytest.mark.parametrize(
    ("gates", "fits"),
    [
        ([MEMORY], True),
        ([MEMORY, CACHE], True),
        ([MEMORY, LATE], False),
        ([LATE], False),
        ([FEW], False),
    ],
)
def test_only_where_memory_alone_is_short_something_does_not_fit(
    gates: list[Shortfall], *, fits: bool
) -> None:
    rejected = [stopped(gate, gpu) for gate, gpu in zip(gates, ("l4", "a10"), strict=False)]
    said = nothing_fits("chat", rejected, AT, "help")
    verb = "fits" if fits else "meets what is asked of"
    assert (said.rule, said.message) == (
        "GP010",
        f"no GPU type that may be used {verb} 'chat'",
    )
    assert said.help == "help"
    forced = override_does_not_fit(["gpu", "replicas"], rejected, AT, "without")
    fails = "the workload does not fit" if fits else "nothing meets what is asked"
    assert (forced.rule, forced.message) == (
        "GP011",
        f"with 'gpu', 'replicas' overridden, {fails}",
    )
    assert (forced.help, forced.label) == ("without", said.label)


def test_gpu_types_that_stop_alike_are_named_together_and_each_once() -> None:
    def label(*rejected: Candidate) -> str:
        return nothing_fits("chat", rejected, AT, "").label

    memory = "gpu_memory: needs 90 GiB, has 20 GiB"
    assert label(stopped(MEMORY), stopped(MEMORY, "a10")) == f"l4, a10: {memory}"
    assert label(stopped(MEMORY), stopped(MEMORY)) == f"l4: {memory}"
    late = "time_to_first_token: 2 s where 1 s is asked"
    assert label(stopped(MEMORY), stopped(LATE, "a10")) == f"l4: {memory}; a10: {late}"
    assert label(stopped(LATE, "l4", MEMORY)) == f"l4: {late}"  # its first gate
    assert label() == "no GPU type may be used"
    few = "nodes: needs 3, has 2"
    assert label(stopped(FEW), stopped(FEW, "a10")) == f"l4, a10: {few}"
    more = short("nodes", 5, 1, "nodes")
    assert label(stopped(FEW), stopped(more)) == (
        f"l4: {few}; l4: nodes: needs 5, has 1; all nodes of a workload are of one kind"
    )


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (gate_of("bf16 kernels", "absent")[0], "no bf16 kernels"),
        (gate_of("fp8 peak", "unknown")[0], "the catalogue does not know its fp8 peak"),
        (gate_of("kernels", "unmeasured")[0], "no measured kernels stand for it"),
        (gate_of("fabric", "unstated")[0], "several nodes need fabric, which is not stated"),
        (
            gate_of("heads", "undivided")[0],
            "no layout divides its heads evenly over so many GPUs",
        ),
        (
            uneven(12, 128, "sequences"),
            "12 GPUs do not divide 128 sequences",
        ),
        (short("request_latency", 1.5, 1.0, "s"), "request_latency: 1.5 s where 1 s is asked"),
        (short("time_to_finish", 7200, 3600, "s"), "time_to_finish: needs 2 h, has 60 min"),
        (short("replicas", 3, 2), "replicas: needs 3, has 2"),
        (
            Shortfall(
                resource="kv_cache", requested=3 * GIB, used=9 * GIB, capacity=10 * GIB, unit="B"
            ),
            "kv_cache: needs 12 GiB, has 10 GiB",
        ),
    ],
)
def test_each_gate_is_said_in_its_own_words(gate: Shortfall, words: str) -> None:
    assert describe(gate) == words


def test_what_nothing_stands_for_names_each_gpu_once() -> None:
    (gate,) = gate_of("vision networks", "unmeasured")
    said = not_measured("look", [stopped(gate), stopped(gate, "a10"), stopped(gate)], AT)
    assert said.message == "no measured vision networks stand for l4, a10"
    assert said.label == "needed to predict 'look'"
    assert said.help.endswith(", or name a GPU that was measured")
    none = nothing_runs("look", [stopped(*gate_of("int8 kernels", "absent"))], AT, "NVIDIA")
    assert (none.rule, none.message) == ("GP012", "no GPU that may be used runs 'look'")
    assert none.label == "l4: no int8 kernels"
    assert none.help.startswith("name GPUs of NVIDIA in 'platform.gpus'")
    engine = nothing_runs("look", [stopped(*gate_of("kernels", "absent"))], AT, None)
    assert engine.help == "name another engine, or weights in another precision"


def test_of_nodes_that_no_rack_feeds_the_one_that_draws_least_is_told() -> None:
    small, large = (
        stopped(short("rack_power", watts, 5000, "W"), gpu)
        for watts, gpu in ((5600, "l4"), (10200, "a10"))
    )
    for order in ((small, large), (large, small)):
        said = rack_feeds_no_node(order, AT)
        assert said.message == "a node draws 5.6 kW, a rack feeds 5 kW"
        assert said.origin == Origin("m.yaml", ("platform", "rack_power"))
        assert "5.6 kW at least" in said.help
