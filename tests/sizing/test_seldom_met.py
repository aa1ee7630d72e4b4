"""Ways of the sizing that few manifests take: engines that divide a run, nodes that NVLink joins,
replicas larger than a node, huge pages that are stated, prompts and answers apart."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from gpuplan.plan import window
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.ask.demand import ModelDemand, NotebookDemand, TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.capacity import capacities
from gpuplan.sizing.decide.messages import describe, not_all_weighed
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import Ledger
from gpuplan.sizing.hardware.devices import partitions
from gpuplan.sizing.hardware.locality import Locality
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import layouts
from gpuplan.sizing.kinds.training.judge import SizedRun
from gpuplan.source import Origin
from gpuplan.units import GIB
from tests.sizing.test_choose import candidate, half
from tests.sizing.test_interruptions import figures
from tests.sizing.test_kinds_told import KINDS, POOLS
from tests.sizing.test_parallel_runs import BRIDGE, LLAMA_405B, demand, run
from tests.support.sizing_cases import (
    CHAT_8B,
    CHAT_70B,
    FULL_8B,
    IB,
    NOTEBOOKS,
    failure,
    offer,
    site,
    size,
    sized,
    wanted,
)

H100 = "h100-sxm-80gb"

# --- what nodes hold ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "replicas", "held"),
    [(1, 3, 4), (1, 5, 8), (2, 1, 2), (3, 1, 1), (4, 2, 2), (8, 3, 3), (9, 2, 2)],
)
def test_paid_nodes_hold_whole_replicas_and_of_larger_ones_no_more(
    gpus: int, replicas: int, held: int
) -> None:
    """Nodes of four."""
    assert candidate(gpus, replicas).held_replicas == held


def test_paid_nodes_hold_all_parts_of_their_gpus() -> None:
    """Four GPUs of two halves each."""
    assert candidate(1, 3, half()).held_replicas == 8
    assert candidate(1, 9, half()).held_replicas == 16


def test_parts_fill_at_least_their_memory_slices() -> None:
    """Of 8 slices a 3g has 4, a 1g one; a GPU that is cut by turns has its share."""
    where = site("a100-sxm-80gb")
    parts = {str(d.partition): d for d in partitions(where.gpus[0], where)}
    for name, slices in (("3g.40gb", 4), ("2g.20gb", 2), ("1g.10gb", 1)):
        assert candidate(1, 6, parts[name]).least_gpus == Decimal(6 * slices) / 8
    assert candidate(2, 3).least_gpus == 6
    turns = site("l40s", target="libvirt")
    third = next(d for d in partitions(turns.gpus[0], turns) if d.per_gpu == 3)
    assert candidate(1, 6, third).least_gpus == 2


def test_more_replicas_are_counted_by_what_made_the_layout() -> None:
    def made(replicas: int) -> Candidate:
        short = Shortfall(resource="nodes", requested=9, used=0, capacity=8, unit="nodes")
        gate = (short,) if replicas > 8 else ()
        return candidate(1, replicas, shortfalls=gate)

    one = candidate(1, 2, again=made)
    eight = one.counting(8)
    assert eight is not None
    assert (eight.replicas, eight.device) == (8, one.device)
    assert one.counting(9) is None
    assert candidate(1, 2).counting(3) is None


# --- hosts --------------------------------------------------------------------------------------


def test_a_host_with_few_huge_pages_keeps_all_else() -> None:
    """Of 256 GiB it keeps a sixteenth, 16 GiB, or what lies beside 100 GiB of pages."""
    node = Locality(
        name="node 0 of hv-01",
        gpus=2,
        cores=32,
        memory_bytes=256 * GIB,
        guests=True,
        source="inventory: hosts[0]",
    )
    page = window.PAGE_BYTES
    assert (node.free_pages, node.most_pages) == (240 * GIB // page,) * 2
    few = replace(node, stated_pages=100 * GIB // page)
    assert (few.free_pages, few.most_pages) == (100 * GIB // page, 240 * GIB // page)
    many = replace(node, stated_pages=250 * GIB // page)
    assert many.free_pages == 240 * GIB // page
    ledger = Ledger("work")
    assert few.kept_memory(ledger, "kept").value == 156 * GIB
    assert ledger.entries["work.least_kept"].value == 16 * GIB
    stated = replace(few, stated_memory_bytes=200 * GIB)
    assert stated.free_pages == 56 * GIB // page
    unknown = replace(node, memory_bytes=None, cores=None)
    assert (unknown.memory_part(ledger, "a", "b"), unknown.core_part(ledger, "c")) == (None, None)
    assert unknown.free_cores == 0


# --- runs ---------------------------------------------------------------------------------------


def frameworks(asked: TrainingDemand, where: Site) -> set[str]:
    return {
        c.detail.run.prepared.subject.framework
        for _, group in tried(asked, where)
        for c in group
        if isinstance(c.detail, SizedRun)
    }


def test_the_engine_that_is_asked_for_runs_what_it_trains() -> None:
    """All weights, with AdamW; also what one node holds."""
    where = site(H100, node_count=4)
    own = replace(demand(run("meta-llama/Llama-3.1-8B", batch=64)), engine=BRIDGE, others=())
    assert frameworks(own, where) == {BRIDGE.name}
    assert frameworks(replace(own, optimizer="adamw-8bit"), where) == set()
    assert frameworks(replace(own, engine=demand(FULL_8B).engine), where) == {"trainer"}


@pytest.mark.parametrize(
    ("changes", "divided"),
    [
        ({}, True),
        ({"optimizer": "adamw-bf16"}, False),
        ({"command": ("train",)}, False),
        ({"others": ()}, False),
    ],
)
def test_other_engines_take_a_run_of_all_weights_that_no_node_holds(
    changes: dict[str, object], *, divided: bool
) -> None:
    asked = replace(demand(LLAMA_405B), **changes)  # type: ignore[arg-type]
    assert (BRIDGE.name in frameworks(asked, site(H100, node_count=128))) == divided


def test_what_nothing_divides_evenly_says_so() -> None:
    """1,000 GPUs and a batch of 1,024."""
    odd = demand(LLAMA_405B + "    overrides: {gpu_count: 1000}\n")
    (short,) = (
        c.shortfalls[0]
        for _, group in tried(odd, site(H100, node_count=128))
        for c in group
        if not c.feasible and c.shortfalls[0].lack == "undivided"
    )
    assert describe(short) == (
        "no layout divides its heads, layers, experts and batch evenly over so many GPUs"
    )


def test_groups_that_are_copies_need_a_network_between_them() -> None:
    text = run("Qwen/Qwen3-8B", batch=64, tokens="1e10")
    tray = Site(target="kubernetes", gpus=(offer(H100, node_count=4, nvlink_nodes=4),), fabric=None)
    asked = replace(demand(text), engine=BRIDGE, sharding="hsdp")
    assert frameworks(asked, tray) == set()
    assert frameworks(asked, site(H100, node_count=4)) == {BRIDGE.name}


def test_what_would_hold_a_run_is_said_of_the_gpus_that_compute_it() -> None:
    asked = replace(demand(LLAMA_405B), precision="fp8", others=())
    both = site("a100-sxm-80gb", H100, node_count=128)
    said = layouts.words(asked, both)
    assert f"× {H100} hold it with " in said
    assert said.endswith("which `engine: megatron-bridge` runs")
    assert layouts.words(asked, site("a100-sxm-80gb", node_count=128)) == ""
    assert layouts.words(replace(asked, method="lora"), both) == ""
    assert layouts.words(replace(asked, engine=BRIDGE), both) == ""
    assert layouts.words(asked, site(H100, node_count=1)) == ""


# --- services -----------------------------------------------------------------------------------


def test_what_is_too_slow_in_a_node_is_tried_over_those_that_nvlink_joins() -> None:
    """405 B weights at 12 ms a token; a network would make no token faster."""
    text = CHAT_70B.replace(
        "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.1-405B-Instruct"
    )
    text = text.replace("40 ms", "12 ms")

    def spans(**changes: object) -> set[int]:
        where = site("gb200-186gb", gpus_per_node=4, **changes)  # type: ignore[arg-type]
        ((_, group),) = tried(wanted(text), where)
        return {c.gpus // 4 for c in group if c.gpus > 4}

    assert spans(nvlink_nodes=4) >= {2}
    assert max(spans(nvlink_nodes=2)) == 2
    assert spans() == set()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (CHAT_8B + "    engine: tensorrt-llm\n", "tensorrt-llm is started on one node; vllm and"),
        (CHAT_8B + "    command: [serve]\n", "a 'command' of your own starts each replica on one"),
    ],
)
def test_why_a_replica_lies_on_one_node_is_said_where_nodes_are_too_small(
    text: str, why: str
) -> None:
    large = text.replace("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-405B-Instruct")
    engine = "tensorrt-llm" if "tensorrt" in text else None
    answer = size(wanted(large, engine), site(H100))
    assert isinstance(answer, tuple)
    assert any(why in (d.help or "") for d in answer)


def test_pools_are_of_whole_gpus_that_divide_the_model() -> None:
    shared = POOLS + "    tenancy: {isolation: shared}\n"
    ((_, group),) = tried(wanted(shared), site("a100-sxm-80gb"))
    assert group
    assert all(c.device.partition is None for c in group)
    odd = POOLS + "    overrides: {tensor_parallel_size: 3}\n"
    ((_, (one,)),) = tried(wanted(odd), site(H100))
    assert describe(one.shortfalls[0]) == "3 GPUs do not divide 64 attention heads"
    assert one.tensor_parallel_size == 3


def test_what_pools_serve_is_answered_beside_one_pool() -> None:
    asked = wanted(POOLS)
    assert isinstance(asked, ModelDemand)
    (both,) = capacities(asked, site(H100), 2)
    plain = wanted(CHAT_70B)
    assert isinstance(plain, ModelDemand)
    (one,) = capacities(plain, site(H100), 2)
    (told,) = capacities(plain, site(H100), 2, splitting=True)
    assert one.split is None
    assert told.split is not None
    assert both.split == told.split
    assert both.replicas == one.replicas


# --- messages -----------------------------------------------------------------------------------


def test_an_override_that_is_blamed_is_told_with_what_is_taken_without_it() -> None:
    """So many of a micro-batch no GPU holds; so small a part no user."""
    text = FULL_8B.replace("4096", "8192") + "    overrides: {micro_batch: 16}\n"
    found = failure(text, site(H100, node_count=2))
    assert found.rule == "GP011"
    assert ", with micro_batch " in found.help
    small = NOTEBOOKS.replace("9 GiB", "19 GiB") + "    overrides: {partition: 1g.10gb}\n"
    cut = failure(small, site("a100-sxm-80gb"))
    assert cut.help == (
        "without it: 10 × 1g.20gb of a100-sxm-80gb at $27.20/h, with partition 1g.20gb"
    )


def test_what_was_not_weighed_is_told_with_the_most_that_it_could_save() -> None:
    told = not_all_weighed(0.0123, 40, Origin("m.yaml", ("workloads",)))
    assert told.rule == "GP014"
    assert told.message.endswith(
        "of 40 workloads were weighed: another one would cost at most 1.2 % less"
    )


def test_a_whole_gpu_for_little_is_told_with_the_part_that_would_do() -> None:
    """Where isolation keeps it whole; not where the user has a part, or needs all of it."""

    def told(more: str, memory: str = "9 GiB", gpu: str = "a100-sxm-80gb") -> list[str]:
        text = NOTEBOOKS.replace("9 GiB", memory) + more
        answer = sized(text, site(gpu))
        return [d.help for d in answer.diagnostics if "gets a whole" in d.message]

    apart = "    tenancy: {isolation: gpu}\n"
    (said,) = told(apart)
    assert "(1g.10gb)" in said
    assert "(1g.20gb)" in told(apart, "15 GiB")[0]
    assert told("") == []
    assert told("    tenancy: {isolation: gpu, cut: true}\n") == []
    assert told(apart, "60 GiB") == []
    assert told(apart, gpu="l40s") == []


@pytest.mark.parametrize("case", ["learning", "run"])
def test_a_run_of_so_many_steps_takes_these(case: str) -> None:
    epochs, steps = ("epochs: 30", "steps: 77")
    text = KINDS[case].replace(epochs, steps).replace("tokens: 1e9", steps)
    answer = sized(text, site(H100))
    assert answer.workload.training is not None
    assert answer.workload.training.steps == 77
    known = figures(answer)
    assert known["time_to_finish"] == pytest.approx(77 * known["step_seconds"])


def test_a_batch_of_pictures_is_as_large_as_memory_holds() -> None:
    """Halved from 256 until it fits."""
    tiny = offer("l4")
    memory = replace(tiny.gpu.memory_bytes, value=3.0 * GIB)
    small = replace(tiny, gpu=replace(tiny.gpu, memory_bytes=memory))
    where = Site(target="kubernetes", gpus=(small,), fabric=IB)
    answer = sized(KINDS["pictures"].replace("60 ms", "900 ms"), where)
    assert answer.workload.serving is not None
    batch = answer.workload.serving.max_num_seqs
    assert batch in (2, 4, 8, 16, 32, 64, 128)
    known = figures(answer)
    assert known["used_bytes"] <= known["usable_bytes"]
    assert known["used_bytes"] + known["activations_bytes"] > known["usable_bytes"]


def test_users_may_be_as_many_as_there_is_room() -> None:
    asked = wanted(NOTEBOOKS.replace("9 GiB", "80 GiB"))
    assert isinstance(asked, NotebookDemand)
    exact = offer("a100-sxm-80gb").gpu.memory_bytes.value
    for more, fits in ((0, True), (1, False)):
        changed = replace(asked, gpu_memory=replace(asked.gpu_memory, value=exact + more))
        ((_, group),) = tried(changed, site("a100-sxm-80gb"))
        assert any(c.feasible for c in group) == fits
