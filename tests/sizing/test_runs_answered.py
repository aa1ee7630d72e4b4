"""What is answered of runs on all numbers of GPUs is what a plan of each says, and the picked ones
are those that their names say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from gpuplan.plan.capacity import Run, Runs
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training.inverse import frontier, runs
from tests.sizing.test_interruptions import figures
from tests.sizing.test_offers import shaped
from tests.support.sizing_cases import FULL_8B, LORA_70B, offer, site, size, sized, wanted

H100, H200 = "h100-sxm-80gb", "h200-sxm-141gb"
STORED = Quantity(2e9, "B/s", "test")
FREE = FULL_8B.replace("    slo: {finish_within: 2 d}\n", "")
LIMITS = {
    "none": FREE,
    "5 h": FULL_8B.replace("2 d", "5 h"),
    "1 min": FULL_8B.replace("2 d", "1 min"),
}
ADAPTER = LORA_70B.replace(", size: 1 GB", "")
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)


def demand(text: str) -> TrainingDemand:
    found = wanted(text)
    assert isinstance(found, TrainingDemand)
    return found


def where(*gpus: str, **changes: Any) -> Site:
    return replace(site(*gpus, **changes), storage_bytes_per_s=STORED)


@cache
def planned(text: str, gpu: str, gpus: int) -> Sized | None:
    """The plan of so many GPUs, however long it takes."""
    line = next((row for row in text.splitlines() if "finish_within" in row), "-")
    free = text.replace(f"{line}\n", "") + f"    overrides: {{gpu_count: {gpus}}}\n"
    made = size(wanted(free), where(gpu))
    return made if isinstance(made, Sized) else None


def seconds(made: Sized) -> tuple[float, float]:
    """Likely, and with a probability of 80 %."""
    one = next(m for m in made.workload.metrics if m.name == "time_to_finish").estimate
    return one.value, one.value * (one.high / one.value) ** (0.8416212 / 1.645)


def spent(made: Sized) -> float:
    assert made.workload.usd_per_hour is not None
    return float(made.workload.usd_per_hour) * seconds(made)[0] / 3600


def told(found: Runs) -> dict[str, Run]:
    return {run.purpose: run for run in found.runs}


@pytest.mark.parametrize("text", [FREE, ADAPTER])
@pytest.mark.parametrize("gpu", [H100, H200])
def test_each_run_is_that_of_its_plan(text: str, gpu: str) -> None:
    (found,) = runs(demand(text), where(gpu), None, 100.0)
    assert (found.gpu, found.gpus_per_node, found.nodes) == (gpu, 8, None)
    assert (found.fabric, found.assumed, found.confidence) == (True, True, 0.8)
    assert [run.purpose for run in found.runs] == ["cheapest"]
    for run in found.runs:
        made = planned(text, gpu, run.gpus)
        assert made is not None
        work, known = made.workload, figures(made)
        likely, assured = seconds(made)
        assert run.seconds.value == pytest.approx(likely, rel=1e-6)
        assert run.assured == pytest.approx(assured, rel=1e-6)
        assert (run.nodes, run.engine) == (work.nodes_per_replica, work.engine.name)
        assert run.parallelism == work.parallelism
        assert work.training is not None
        assert run.sharding == work.training.sharding
        assert run.usd_per_hour == work.usd_per_hour
        assert run.usd is not None
        assert float(run.usd) == pytest.approx(spent(made), abs=0.006)
        steps = known.get("steps", 0.0)
        assert run.tokens == steps * known["training.global_batch"] * 4096
        assert run.tokens_in_budget == pytest.approx(
            min(1.0, 100 / float(run.usd)) * run.tokens, rel=1e-6
        )
        assert run.gpu_watts == 700 * run.gpus
        assert run.node_watts is None
        assert run.utilization == pytest.approx(known["model_flop_utilization"], rel=1e-6)
        assert run.lost_share == pytest.approx(known.get("lost_share", 0.0), rel=1e-6)
        assert run.checkpoint_bytes == pytest.approx(known["checkpoint_bytes"])


@pytest.mark.parametrize("limit", LIMITS)
def test_the_picked_runs_are_the_soonest_cheapest_and_smallest(limit: str) -> None:
    """Against plans of all numbers of GPUs that divide the batch."""
    text, allowed = LIMITS[limit], {"5 h": 18000.0, "1 min": 60.0}.get(limit)
    plans = {n: made for n in COUNTS if (made := planned(text, H100, n)) is not None}
    assert len(plans) > 3
    (found,) = runs(demand(text), where(H100), 4, None)
    assert (found.nodes, found.assumed) == (4, True)
    picked = told(found)
    here = {n: made for n, made in plans.items() if n <= 32}
    assert picked["fastest"].gpus == min(here, key=lambda n: seconds(here[n]))
    assert picked["cheapest"].gpus == min(plans, key=lambda n: (round(spent(plans[n]), 2), n))
    timely = [n for n, made in plans.items() if allowed and seconds(made)[1] <= allowed]
    assert ("in_time" in picked) == bool(timely)
    assert ("soonest" in picked) == (allowed is not None and not timely)
    if timely:
        assert picked["in_time"].gpus == min(timely)
    if "soonest" in picked:
        assert picked["soonest"].gpus == max(plans)
    assert all(run.tokens_in_budget is None for run in found.runs)


def test_nodes_that_are_there_are_asked_and_not_assumed() -> None:
    """Two of H100, of H200 as many as are asked."""
    both = Site(target="kubernetes", gpus=(offer(H100, node_count=2), offer(H200)))
    both = replace(both, fabric=where(H100).fabric)
    found = {item.gpu: item for item in runs(demand(FREE), both, 3, None)}
    assert (found[H100].nodes, found[H100].assumed) == (2, False)
    assert (found[H200].nodes, found[H200].assumed) == (3, True)
    assert told(found[H100])["fastest"].gpus == 16
    assert told(found[H200])["fastest"].nodes <= 3
    order = [min(run.assured for run in item.runs) for item in runs(demand(FREE), both, 3, None)]
    assert order == sorted(order)


def test_nodes_that_hold_no_run_say_what_is_short() -> None:
    """70 B weights and their states on one node."""
    large = FREE.replace("Llama-3.1-8B", "Llama-3.3-70B-Instruct")
    (found,) = runs(demand(large), where(H100, node_count=1), None, None)
    assert "fastest" not in told(found)
    assert [short.resource for short in found.shortfalls][:1] == ["gpu_memory"]
    (fits,) = runs(demand(FREE), where(H100, node_count=1), None, None)
    assert fits.shortfalls == ()


def test_without_prices_nothing_is_paid_and_whole_servers_are_counted_where_they_are_known() -> (
    None
):
    watts = Quantity(10200.0, "W", "test")
    bare = where(H100, usd_per_gpu_hour=None, node_watts=watts)
    (found,) = runs(demand(FREE), bare, 2, 100.0)
    for run in found.runs:
        assert (run.usd, run.usd_per_hour, run.tokens_in_budget) == (None, None, None)
        assert run.node_watts == 10200 * run.nodes
    rich = runs(demand(FREE), where(H100), 2, 1e9)
    assert all(run.tokens_in_budget == run.tokens for item in rich for run in item.runs)


def test_an_override_of_the_gpu_and_spare_capacity_narrow_what_is_asked() -> None:
    forced = FREE + f"    overrides: {{gpu: {H200}}}\n"
    assert [item.gpu for item in runs(demand(forced), where(H100, H200), 1, None)] == [H200]
    both = Site(target="kubernetes", gpus=(shaped(8, "spot"), shaped(8)), fabric=where(H100).fabric)
    names = {item.node_type for item in runs(demand(FREE), both, 1, None)}
    assert names == {"node-8"}
    may = demand(FREE + "    preemptible: true\n")
    assert {item.node_type for item in runs(may, both, 1, None)} == {
        "node-8",
        "node-8, spare capacity",
    }


def test_of_shapes_with_the_same_gpus_the_largest_is_asked() -> None:
    shapes = Site(target="kubernetes", gpus=(shaped(1), shaped(8), shaped(4)), fabric=None)
    (found,) = runs(demand(FREE), shapes, 1, None)
    assert found.gpus_per_node == 8
    assert not found.fabric
    own = replace(shapes, gpus=(*shapes.gpus, offer(H100, gpus_per_node=2, node_type="mine")))
    assert {item.gpus_per_node for item in runs(demand(FREE), own, 1, None)} == {8, 2}


def test_the_frontier_has_all_runs_that_none_beats_in_time_and_money() -> None:
    both = where(H100, H200)
    points = {}
    for gpu in (H100, H200):
        for count in COUNTS:
            if (made := planned(FREE, gpu, count)) is not None:
                points[gpu, count] = (seconds(made)[1], spent(made))
    best = {
        key: one
        for key, one in points.items()
        if not any(
            other[0] <= one[0] and other[1] <= one[1] and other != one for other in points.values()
        )
    }
    found = frontier(demand(FREE), both)
    told = {(item.gpu, item.runs[0].gpus): item.runs[0] for item in found}
    for key in (key for key in best if key[1] <= 64):
        assert key in told
        assert told[key].assured == pytest.approx(best[key][0], rel=1e-6)
    assert all(run.purpose == "frontier" for run in told.values())
    assert all(
        (item.nodes, item.assumed, item.fabric, item.gpus_per_node) == (None, False, True, 8)
        for item in found
    )


def test_without_prices_the_frontier_is_of_time_and_gpus() -> None:
    found = frontier(demand(FREE), where(H100, usd_per_gpu_hour=None))
    spans = [run.assured * run.gpus for item in found for run in item.runs]
    assert len(spans) > 1
    assert spans == sorted(spans, reverse=True)
    one = Site(
        target="kubernetes",
        gpus=(offer(H100), offer(H200, usd_per_gpu_hour=None)),
        fabric=where(H100).fabric,
    )
    assert {item.gpu for item in frontier(demand(FREE), one)} == {H100}
    few = frontier(demand(FREE), where(H100, node_count=2))
    assert max(run.gpus for item in few for run in item.runs) == 16
    assert sized(FREE, where(H100)).workload.usd_per_run is not None
