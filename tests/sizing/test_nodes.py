"""Replicas over several nodes: when they are weighed, how they divide a model, what the fabric
costs them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Fabric, Workload
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import Quantity, evaluate
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving.limit import LimitedReplica
from gpuplan.sizing.kinds.serving.nodes import divisions
from gpuplan.sizing.kinds.serving.rivals import kind
from gpuplan.sizing.physics.serving import kernels
from gpuplan.sizing.physics.serving.replica import Replica
from tests.support.sizing_cases import offer, site, size, wanted

TOKENS = "input_tokens: {mean: 900, p95: 2500}, output_tokens: 300"
LOAD = f"    load: {{requests_per_second: RATE, {TOKENS}}}\n"
LARGE = """
    task: inference
    model: meta-llama/Llama-3.1-405B-Instruct
    precision: bf16
""" + LOAD.replace("RATE", "0.2")
MIXTURE = LARGE.replace("meta-llama/Llama-3.1-405B-Instruct", "deepseek-ai/DeepSeek-R1").replace(
    "bf16", "fp8"
)


def sized(text: str, where: Site) -> Workload:
    answer = size(wanted(text), where)
    assert isinstance(answer, Sized), answer
    return answer.workload


def over_nodes(text: str, where: Site) -> list[Candidate]:
    found = [c for _, group in tried(wanted(text), where) for c in group]
    return [c for c in found if c.gpus > c.device.offer.gpus_per_node]


def shape(work: Workload) -> tuple[int, int, int, int, int]:
    of = work.parallelism
    return (
        of.tensor_parallel_size,
        of.pipeline_parallel_size,
        of.data_parallel_size,
        work.nodes_per_replica,
        work.gpus_per_node,
    )


def test_a_dense_model_that_no_node_holds_is_a_pipeline_over_two() -> None:
    work = sized(LARGE, site("h100-sxm-80gb"))
    assert shape(work) == (8, 2, 1, 2, 8)
    assert work.gpu_count == 16 * work.replicas
    assert {m.estimate.basis for m in work.metrics} == {"extrapolated"}
    assert all(v.shared for v in work.volumes)


def test_a_mixture_whose_layers_are_a_prime_has_its_experts_over_both_nodes() -> None:
    """61 layers have no two equal stages."""
    work = sized(MIXTURE, site("h100-sxm-80gb"))
    assert shape(work)[1] == 1
    assert work.nodes_per_replica == 2
    assert work.parallelism.data_parallel_size * work.parallelism.tensor_parallel_size == 16
    assert work.parallelism.expert_parallel_size == 16


@pytest.mark.parametrize("text", [LARGE, MIXTURE])
def test_one_node_with_more_memory_is_weighed_beside_two_by_its_price(text: str) -> None:
    both = site("h100-sxm-80gb", "h200-sxm-141gb")
    alone = sized(text, site("h200-sxm-141gb"))
    joined = sized(text, site("h100-sxm-80gb"))
    chosen = sized(text, both)
    assert alone.nodes_per_replica == 1
    assert joined.nodes_per_replica == 2
    assert alone.usd_per_hour is not None
    assert joined.usd_per_hour is not None
    assert chosen.usd_per_hour == min(alone.usd_per_hour, joined.usd_per_hour)


def test_without_a_fabric_nothing_joins_nodes() -> None:
    where = replace(site("h100-sxm-80gb"), fabric=None)
    assert not over_nodes(LARGE, where)
    assert not isinstance(size(wanted(LARGE), where), Sized)


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        (LARGE, "docker", "one machine of target 'docker'"),
        (LARGE, "slurm", "one machine of target 'slurm'"),
        (LARGE + "    command: [serve]\n", "kubernetes", "a 'command' of your own"),
        (
            LARGE.replace("inference", "batch").replace("requests_per_second: 0.2", "requests: 9"),
            "kubernetes",
            "replica of a batch",
        ),
    ],
)
def test_what_cannot_lie_on_several_nodes_is_refused_in_words(
    text: str, target: str, said: str
) -> None:
    where = site("h100-sxm-80gb", target=target)
    assert not over_nodes(text, where)
    answer = size(wanted(text), where)
    assert isinstance(answer, tuple)
    (problem,) = (d for d in answer if isinstance(d, Diagnostic))
    assert said in (problem.help or "")


def test_replicas_on_amds_nodes_lie_on_one() -> None:
    """811 GB of weights on nodes of 4 and of 8 x 192 GB of AMD."""
    small = site("mi300x-192gb", gpus_per_node=4)
    assert not over_nodes(LARGE, small)
    assert isinstance(size(wanted(LARGE), small), tuple)
    assert sized(LARGE, site("mi300x-192gb", gpus_per_node=8)).nodes_per_replica == 1


def test_a_model_that_one_node_holds_with_room_is_not_tried_on_two() -> None:
    small = LARGE.replace("405B", "70B").replace("Llama-3.1-70B", "Llama-3.3-70B")
    assert not over_nodes(small, site("h100-sxm-80gb"))


@pytest.mark.parametrize(
    ("rate", "more", "over"),
    [
        (0.5, "", False),  # one replica, which nothing is short of
        (60, "", True),  # 16 of them, each with as many requests as its memory holds
        (60, "    slo: {time_per_output_token: 40 ms}\n", False),  # 89, which answers bind
        (60, "    overrides: {max_num_seqs: 8}\n", False),  # which a setting binds
    ],
)
def test_of_replicas_that_a_node_holds_larger_ones_are_tried_where_memory_binds_several(
    rate: float, more: str, *, over: bool
) -> None:
    text = LARGE.replace("bf16", "fp8").replace("0.2", str(rate)) + more
    where = site("h100-sxm-80gb")
    assert any(c.feasible for _, group in tried(wanted(text), where) for c in group if c.gpus == 8)
    assert bool(over_nodes(text, where)) == over


LONG = "input_tokens: {mean: 1000, p95: 4000}, output_tokens: {mean: 3000, p95: 12000}"
SCARCE = MIXTURE.replace(TOKENS, LONG)
SCARCE = SCARCE.replace("0.2", "3") + "    slo: {time_per_output_token: 40 ms}\n"


def test_larger_replicas_are_tried_where_there_are_too_few_nodes_for_smaller_ones() -> None:
    """Where memory binds, replicas over nodes take fewer of them than those inside one do."""
    free = sized(SCARCE, site("h200-sxm-141gb"))
    count = free.replicas * free.nodes_per_replica
    inside = [
        c.nodes
        for _, group in tried(wanted(SCARCE), site("h200-sxm-141gb"))
        for c in group
        if c.feasible and c.gpus == 8
    ]
    assert min(inside) > count
    just = sized(SCARCE, site("h200-sxm-141gb", node_count=count))
    assert (shape(just), just.replicas) == (shape(free), free.replicas)
    answer = size(wanted(SCARCE), site("h200-sxm-141gb", node_count=count - 1))
    assert isinstance(answer, tuple)
    (problem,) = (d for d in answer if isinstance(d, Diagnostic))
    assert f"nodes: needs {count}, has {count - 1}" in problem.label


def test_larger_replicas_are_tried_where_fewer_are_asked_than_smaller_ones_would_be() -> None:
    free = sized(SCARCE, site("h200-sxm-141gb"))
    assert free.nodes_per_replica > 1
    asked = SCARCE + f"    overrides: {{replicas: {free.replicas}}}\n"
    assert shape(sized(asked, site("h200-sxm-141gb"))) == shape(free)


def test_as_many_nodes_are_tried_as_there_are() -> None:
    assert not over_nodes(LARGE, site("h100-sxm-80gb", node_count=1))
    assert {c.gpus for c in over_nodes(LARGE, site("h100-sxm-80gb", node_count=2))} == {16}


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("text", [LARGE, MIXTURE])
def test_divisions_fill_their_nodes_and_divide_the_model(text: str, nodes: int) -> None:
    demand = wanted(text)
    assert isinstance(demand, LanguageDemand)
    for one in divisions(demand, whole(offer("h100-sxm-80gb")), nodes):
        assert one.gpus == 8 * nodes
        assert demand.model.attention_heads % one.tensor_parallel_size == 0
        assert 8 % one.tensor_parallel_size == 0
        assert one.ranks % nodes == 0  # none lies on two nodes
        assert "over nodes" in kind(one.parallelism, nodes)
        if demand.model.experts and one.data_parallel_size > 1:
            assert demand.model.experts.count % one.expert_parallel_size == 0


@pytest.mark.parametrize(
    ("model", "room"), [("Qwen/Qwen2.5-0.5B-Instruct", 8), ("meta-llama/Llama-3.1-8B-Instruct", 6)]
)
@pytest.mark.parametrize("nodes", [2, 4])
def test_groups_divide_the_heads_and_the_node(model: str, room: int, nodes: int) -> None:
    """14 heads have no four or eight groups, and four GPUs of a node of six leave two."""
    demand = wanted(LARGE.replace("meta-llama/Llama-3.1-405B-Instruct", model))
    assert isinstance(demand, LanguageDemand)
    device = whole(offer("h100-sxm-80gb", gpus_per_node=room))
    assert {d.tensor_parallel_size for d in divisions(demand, device, nodes)} == {2}


def test_an_override_narrows_how_a_replica_lies_over_nodes() -> None:
    asked = LARGE + "    overrides: {tensor_parallel_size: 8, pipeline_parallel_size: 3}\n"
    assert shape(sized(asked, site("h100-sxm-80gb"))) == (8, 3, 1, 3, 8)


@pytest.mark.parametrize("text", [LARGE, MIXTURE])
def test_stages_that_do_not_divide_the_layers_are_refused_by_name(text: str) -> None:
    demand = wanted(text)
    assert isinstance(demand, LanguageDemand)
    found = over_nodes(text, site("h100-sxm-80gb"))
    stages = {c: c.parallelism.pipeline_parallel_size for c in found if c.parallelism}
    assert max(stages.values()) > 1
    for candidate, count in stages.items():
        uneven = demand.model.layers % count > 0
        named = any("layers" in s.resource for s in candidate.shortfalls)
        assert named is uneven


@pytest.mark.parametrize("text", [LARGE, MIXTURE])
def test_a_replica_over_nodes_has_the_sequences_of_all_its_stages_or_groups(text: str) -> None:
    answer = size(wanted(text), site("h100-sxm-80gb"))
    assert isinstance(answer, Sized)
    of = answer.workload.parallelism
    ranks = of.pipeline_parallel_size * of.data_parallel_size
    assert ranks > 1
    entries = {e.quantity.removeprefix("work."): e for e in answer.evidence}
    (given,) = (i for i in entries["replicas"].inputs if i.name == "limit_sequences")
    assert given.value == pytest.approx(ranks * entries["limit.sequences"].value)
    assert given.source == "quantity:work.limit." + (
        "replica_sequences" if of.pipeline_parallel_size > 1 else "all_sequences"
    )


def test_a_plan_says_which_kinds_of_layouts_lost_and_why() -> None:
    work = sized(MIXTURE, site("h100-sxm-80gb"))
    lost = {x.kind: x for x in work.served_layouts}
    assert kind(work.parallelism, work.nodes_per_replica) not in lost
    assert lost["tensor parallel in a node"].gate == "gpu_memory"
    staged = lost["tensor, pipeline parallel over nodes"]
    assert "61 layers" in staged.shortfalls[0].resource
    small = LARGE.replace("405B", "8B")
    assert sized(small, site("h100-sxm-80gb")).served_layouts == ()


RATES = st.floats(1e8, 1e12)


@given(tokens=st.floats(1, 1e5), fabric=RATES, link=RATES, tensor=st.sampled_from([1, 4, 8]))
def test_a_pipeline_is_never_faster_than_the_wire(
    tokens: float, fabric: float, link: float, tensor: int
) -> None:
    """What crosses from node to node, over what its cards carry, and over the links inside."""
    scope = {
        "tokens": tokens,
        "hidden_size": 16384.0,
        "bf16_bytes": 2.0,
        "replica_nodes": 3.0,
        "pipeline_stages": 3.0,
        "tensor_parallel_size": float(tensor),
        "fabric_rate": fabric,
        "fabric_launch": 1e-5,
        "link_launch": 1e-5,
        "link_rate": link,
    }
    done = kernels.HOPS(dict(scope))
    crossing = 2 * done["hop_bytes"]
    assert done["hop_bytes"] == tokens * 16384 * 2 * 2
    assert done["hops_seconds"] >= crossing / (tensor * fabric)
    assert done["hops_seconds"] >= crossing / link


@given(fabric=RATES, gather=RATES, nodes=st.integers(2, 6))
def test_experts_over_nodes_are_never_faster_than_the_wire(
    fabric: float, gather: float, nodes: int
) -> None:
    scope = {
        "routed_tokens": 4096.0,
        "hidden_size": 7168.0,
        "bf16_bytes": 2.0,
        "ranks": 8.0 * nodes,
        "replica_nodes": float(nodes),
        "node_gpus": 8.0,
        "fabric_rate": fabric,
        "fabric_launch": 1e-5,
        "gather_launch": 2e-5,
        "gather_rate": gather,
        "gather_small": 5e6,
        "expert_layers": 58.0,
    }
    done = kernels.CROSSING(dict(scope))
    assert done["crossing_rate"] <= 8 * fabric
    assert done["crossing_rate"] <= gather
    assert done["crossing_seconds"] >= 58 * done["crossing_bytes"] / (8 * fabric)


def test_no_engines_factor_makes_the_fabric_faster() -> None:
    """The measured factor on links inside a node is below one."""
    (entry,) = [e for e in _evidence(LARGE) if e.quantity == "work.decode.work_seconds"]
    assert "+ hops_seconds" in entry.formula


def test_a_slower_fabric_makes_no_plan_faster() -> None:
    times = []
    for rate in (50e9, 12.5e9, 1.25e9):
        fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=rate, resource=None)
        found = over_nodes(LARGE, replace(site("h100-sxm-80gb"), fabric=fabric))
        two = next(c for c in found if c.gpus == 16)
        assert isinstance(two.detail, LimitedReplica)
        times.append(two.detail.replica.times(4.0)["request_seconds"])
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_cards_that_carry_less_than_the_fabric_bound_it() -> None:
    slow = site("h100-sxm-80gb", cards_bytes_per_s=25e9)
    two = next(c for c in over_nodes(LARGE, slow) if c.gpus == 16)
    assert isinstance(two.detail, LimitedReplica)
    rate = two.detail.replica.service.fabric_rate
    assert isinstance(rate, Quantity)
    assert rate.value == 25e9 / 8


def _evidence(text: str) -> tuple[object, ...]:
    answer = size(wanted(text), site("h100-sxm-80gb"))
    assert isinstance(answer, Sized)
    return answer.evidence


@pytest.mark.parametrize("text", [LARGE, MIXTURE])
def test_every_number_over_nodes_is_its_formulas(text: str) -> None:
    entries = [e for e in _evidence(text) if e.formula]  # type: ignore[attr-defined]
    for entry in entries:
        inputs = {i.name: i.value for i in entry.inputs}  # type: ignore[attr-defined]
        assert evaluate(entry.formula, inputs) == entry.value  # type: ignore[attr-defined]
    names = {e.quantity for e in entries}  # type: ignore[attr-defined]
    assert any(n.endswith(("hops_seconds", "crossing_seconds")) for n in names)


def test_each_stages_batch_has_its_own_places_and_cache() -> None:
    two = next(c for c in over_nodes(LARGE, site("h100-sxm-80gb")) if c.gpus == 16)
    assert isinstance(two.detail, LimitedReplica)
    needs = two.detail.replica.needs(two.detail.limit)
    assert needs["max_num_seqs"] % 2 == 0
    longest = two.detail.replica.service.tokens.longest.value
    assert needs["kv_cache_tokens"] >= 2 * longest


def test_two_stages_keep_twice_what_one_keeps_of_a_batch() -> None:
    two = next(c for c in over_nodes(LARGE, site("h100-sxm-80gb")) if c.gpus == 16)
    assert isinstance(two.detail, LimitedReplica)
    service = two.detail.replica.service
    assert service.division.pipeline_stages == 2
    whole = replace(service, release="0.10.2")  # whose graphs are of any number of requests
    one = Replica(replace(whole, division=replace(service.division, pipeline_stages=1)))
    for requests in (1, 8, 64):
        joined, alone = two.detail.replica.needs(requests), one.needs(requests)
        for name in ("max_num_seqs", "kv_cache_tokens"):
            assert joined[name] == pytest.approx(2 * alone[name])
