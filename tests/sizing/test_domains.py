"""NVLink that joins the nodes of a rack: what it widens, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.plan.model import Fabric, Workload
from gpuplan.sizing.ask.demand import LanguageDemand, TrainingDemand
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity, evaluate
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.hardware.efficiency import collective
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.serving.nodes import MOST_TENSOR, divisions
from gpuplan.sizing.kinds.training import grid
from gpuplan.sizing.kinds.training.inverse import runs_on
from gpuplan.sizing.physics.training.prepared import link
from gpuplan.units import GB
from tests.support.sizing_cases import IB, offer, size, wanted

LARGE = """
    task: inference
    model: meta-llama/Llama-3.1-405B-Instruct
    precision: bf16
    load: {requests_per_second: 0.2, input_tokens: {mean: 900, p95: 2500}, output_tokens: 300}
"""
FAST = LARGE.replace("405B-Instruct", "70B-Instruct").replace("Llama-3.1", "Llama-3.3") + (
    "    slo: {time_per_output_token: LIMIT}\n"
)
TUNE = """
    task: finetuning
    model: meta-llama/Llama-3.1-70B
    precision: bf16
    training: {sequence_length: 8192, global_batch: 64, steps: 1000}
    dataset: {name: example-org/support, tokens: 5e8, size: 2 GB}
"""
TRAYS = 18


def tray(
    nvlink_nodes: int = TRAYS, count: int | None = TRAYS, gpu: str = "gb200-186gb"
) -> GpuOffer:
    return replace(
        offer(gpu),
        gpus_per_node=4,
        node_count=count,
        nvlink_nodes=nvlink_nodes,
        usd_per_gpu_hour=Quantity(10.0, "USD/h", "test"),
    )


def at(*offers: GpuOffer, fabric: Fabric | None = None) -> Site:
    return Site(target="kubernetes", gpus=offers, fabric=fabric)


def sized(text: str, where: Site) -> Sized:
    answer = size(wanted(text), where)
    assert isinstance(answer, Sized), answer
    return answer


def work(text: str, where: Site) -> Workload:
    return sized(text, where).workload


def test_tensor_parallelism_spans_trays_that_nvlink_joins() -> None:
    of = work(LARGE, at(tray()))
    assert (of.parallelism.tensor_parallel_size, of.nodes_per_replica) == (8, 2)
    assert of.one_domain
    assert {m.estimate.basis for m in of.metrics if m.unit == "s"} == {"extrapolated"}


def test_without_the_domain_nothing_but_a_pipeline_spans_them() -> None:
    of = work(LARGE, at(tray(nvlink_nodes=1), fabric=IB))
    assert of.parallelism.tensor_parallel_size <= 4
    assert of.parallelism.pipeline_parallel_size == of.nodes_per_replica == 2
    assert of.one_domain is None
    assert not isinstance(size(wanted(LARGE), at(tray(nvlink_nodes=1))), Sized)


def test_a_network_between_nodes_changes_nothing_inside_a_domain() -> None:
    alone, both = (sized(LARGE, at(tray(), fabric=f)) for f in (None, IB))
    assert alone.workload.metrics == both.workload.metrics


@pytest.mark.parametrize("gpu", ["gb200-186gb", "gb300-288gb"])
@pytest.mark.parametrize("gpus", [8, 16])
def test_no_exchange_over_trays_is_faster_than_the_wire(gpu: str, gpus: int) -> None:
    device = whole(tray(gpu=gpu))
    wire = device.gpu.link_bytes_per_s.value
    for engine in ("vllm", "sglang", "tensorrt-llm"):
        inside = collective("all_reduce", device.gpu, engine, 4)
        over = collective("all_reduce", device.gpu, engine, gpus, nodes=True)
        assert over["rate"].value <= wire
        assert over["launch"].value > inside["launch"].value or engine == "tensorrt-llm"


def test_every_number_over_trays_is_its_formula_and_under_the_wire() -> None:
    found = {e.quantity: e for e in sized(LARGE, at(tray())).evidence}
    wire = whole(tray()).gpu.link_bytes_per_s.value
    rates = [e.value for q, e in found.items() if q.endswith(("link_rate", "fabric_rate"))]
    assert rates
    assert max(rates) <= wire
    for entry in found.values():
        if entry.formula:
            values = {i.name: i.value for i in entry.inputs}
            assert evaluate(entry.formula, values) == pytest.approx(entry.value, rel=1e-6)


@pytest.mark.parametrize(
    ("nodes", "domain", "count", "inside"),
    [
        (2, 18, None, True),
        (4, 18, None, False),  # four such groups leave two trays of each rack
        (4, 18, 18, True),
        (4, 18, 36, False),
        (3, 2, 6, False),
        (1, 18, 18, False),
    ],
)
def test_groups_that_racks_divide_into_lie_inside_one(
    nodes: int, domain: int, count: int | None, inside: bool
) -> None:
    assert in_domain(whole(tray(domain, count)), nodes) is inside


def test_no_group_is_larger_than_what_was_measured() -> None:
    demand = wanted(LARGE)
    assert isinstance(demand, LanguageDemand)
    found = list(divisions(demand, whole(tray()), 6))
    assert found
    assert all(d.tensor_parallel_size <= MOST_TENSOR for d in found)
    assert all(d.gpus == 24 for d in found)


def test_an_objective_that_no_tray_meets_takes_two() -> None:
    slow = work(FAST.replace("LIMIT", "30 ms"), at(tray()))
    assert slow.nodes_per_replica == 1
    least = next(m for m in slow.metrics if m.name == "time_per_output_token").estimate.value
    for part in (0.9, 0.8, 0.7):
        answer = size(wanted(FAST.replace("LIMIT", f"{least * part * 1000:.3f} ms")), at(tray()))
        if isinstance(answer, Sized) and answer.workload.nodes_per_replica > 1:
            assert answer.workload.one_domain
            return
    pytest.skip("a tray meets every objective that two meet")


def test_a_run_inside_a_domain_exchanges_at_its_rate() -> None:
    device = whole(tray())
    near, far = (link(device, gpus, IB) for gpus in (72, 76))
    assert near is not None
    assert far is not None
    assert near["link_rate"].value == device.gpu.link_bytes_per_s.value
    assert far["fabric_rate"].value == 50 * GB


def test_layers_and_sequences_divide_over_trays_of_one_domain_alone() -> None:
    device = whole(tray())
    assert [grid.tight(device, gpus) for gpus in (4, 8, 72, 76)] == [4, 8, 8, 4]
    assert grid.tight(whole(tray(nvlink_nodes=1)), 72) == 4


def test_a_run_on_one_rack_is_faster_with_its_nvlink_and_says_so() -> None:
    slim = TUNE + "    overrides: {gpu_count: 64}\n"
    slow = replace(IB, bytes_per_s_per_gpu=2.5 * GB)
    near, far = (work(slim, at(tray(n), fabric=slow)) for n in (TRAYS, 1))
    times = [
        next(m for m in w.metrics if m.name == "step_seconds").estimate.value for w in (near, far)
    ]
    assert times[0] < times[1]
    assert (near.one_domain, far.one_domain) == (True, None)


def test_a_run_counts_on_nvlink_only_where_domains_divide_into_such_runs() -> None:
    device = whole(tray(TRAYS, 24))  # racks of 18 and 6
    for nodes, near in ((2, True), (6, True), (9, True), (12, False), (18, True)):
        links = link(device, 4 * nodes, IB)
        assert links is not None
        assert ("fabric_rate" not in links) is near
        assert (link(device, 4 * nodes, None) is not None) is near
    assert grid.tight(device, 48) == 4


def test_a_run_of_twelve_trays_is_none_of_racks_that_hold_no_two() -> None:
    slim = TUNE.replace("64", "48") + "    overrides: {gpu_count: 48}\n"
    assert work(slim, at(tray(TRAYS, 18), fabric=IB)).one_domain
    assert work(slim, at(tray(TRAYS, 24), fabric=IB)).one_domain is None
    assert not isinstance(size(wanted(slim), at(tray(TRAYS, 24))), Sized)


@pytest.mark.parametrize(
    ("nodes", "spares", "count", "inside"),
    [
        (16, 2, 18, True),
        (16, 3, 18, False),
        (18, 2, 36, False),
        (16, 2, 36, True),
        (1, 8, 18, False),
    ],
)
def test_spare_trays_have_their_place_in_the_domain_of_the_run(
    nodes: int, spares: int, count: int, inside: bool
) -> None:
    assert in_domain(whole(tray(TRAYS, count)), nodes, spares) is inside


def test_a_run_whose_spare_trays_lie_outside_is_planned_without_the_domain() -> None:
    asked = TUNE.replace("steps: 1000", "steps: 1000, spare_nodes: SPARES") + (
        "    overrides: {gpu_count: 64}\n"
    )
    where = at(tray(16, 20), fabric=replace(IB, bytes_per_s_per_gpu=2.5 * GB))
    none, two = (work(asked.replace("SPARES", n), where) for n in ("0", "2"))
    assert (none.one_domain, two.one_domain) == (True, None)
    times = [
        next(m for m in w.metrics if m.name == "step_seconds").estimate.value for w in (none, two)
    ]
    assert times[0] < times[1]


def test_capacity_counts_on_the_one_domain_as_a_plan_does() -> None:
    demand = wanted(TUNE)
    assert isinstance(demand, TrainingDemand)
    (found,) = runs_on(demand, at(tray(TRAYS, TRAYS)))
    assert 16 in {c.nodes for c in found if c.feasible}
    (apart,) = runs_on(demand, at(tray(TRAYS, 2 * TRAYS)))
    assert 16 not in {c.nodes for c in apart if c.feasible}
