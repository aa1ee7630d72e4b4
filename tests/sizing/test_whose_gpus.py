"""Whose GPUs a program runs on, and which parts of a GPU a workload may have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.builds import barred, engine_on
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.decide.messages import describe
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.size import search
from gpuplan.sizing.decide.tried import moved
from gpuplan.sizing.hardware.efficiency import collective, unsupported
from gpuplan.sizing.hardware.offers import Site
from gpuplan.source import Origin
from tests.sizing.test_kinds_told import KINDS
from tests.sizing.test_offers import shaped
from tests.support.sizing_cases import CHAT_8B, IB, NOTEBOOKS, offer, site, wanted

AMD, NVIDIA = offer("mi300x-192gb"), offer("h100-sxm-80gb")
BOTH, ALONE = (Site(target="kubernetes", gpus=gpus) for gpus in ((AMD, NVIDIA), (AMD,)))


def gate(asked: Demand, where: Site = ALONE) -> str | None:
    refused = barred(asked, AMD, where)
    if refused is None:
        return None
    (short,) = refused.shortfalls
    assert (refused.passed, refused.gpus, short.requested, short.capacity) == (0, 1, 1.0, 0.0)
    return describe(short)


def test_an_engine_runs_where_it_has_an_image() -> None:
    """vLLM has one for AMD's GPUs, with variables of its own."""
    asked = wanted(CHAT_8B)
    assert gate(asked) is None
    there, here = engine_on(asked, AMD.gpu), engine_on(asked, NVIDIA.gpu)
    assert here == asked.engine
    assert "rocm" in there.image
    assert (there.name, there.version) == (here.name, here.version)
    assert {each.name for each in there.environment} >= {"VLLM_ROCM_USE_AITER"}
    assert not here.environment


def test_an_engine_without_an_image_for_a_gpu_is_not_run_there() -> None:
    asked = replace(wanted(CHAT_8B), builds=())
    known = f"vllm {asked.engine.version} is known for AMD's {AMD.gpu.architecture}"
    assert gate(asked) == f"no image of {known}"
    (build,) = wanted(CHAT_8B).builds
    for changes in ({"vendor": "other"}, {"architectures": ("cdna2",)}, {"tasks": ("batch",)}):
        other = replace(asked, builds=(replace(build, **changes),))
        assert gate(other) == f"no image of {known}"


@pytest.mark.parametrize("kind", ["images", "texts", "audio", "pictures", "run", "notebooks"])
def test_kinds_that_are_not_planned_on_a_vendors_gpus_say_so(kind: str) -> None:
    asked = wanted(KINDS[kind])
    assert gate(asked) == f"no {asked.kind} is planned on AMD GPUs"
    assert barred(asked, NVIDIA, BOTH) is None


def test_an_image_that_somebody_names_is_for_the_gpus_that_there_are() -> None:
    asked = wanted(CHAT_8B)
    own = replace(asked, engine=replace(asked.engine, source="manifest", image="my/image:1"))
    assert gate(own) is None
    assert gate(own, BOTH) == "no source says that my/image:1 is for AMD"
    assert barred(own, NVIDIA, BOTH) is None


def test_gpus_on_which_no_place_was_found_are_passed_over() -> None:
    asked = replace(wanted(CHAT_8B), passed_over=("mi300x-192gb",))
    assert gate(asked) == "no host with what it needs"
    assert barred(asked, NVIDIA, BOTH) is None


# --- parts of GPUs ------------------------------------------------------------------------------

VGPU = site("a100-sxm-80gb", target="libvirt")
MIG = site("a100-sxm-80gb")


def names(text: str, where: Site, **changes: object) -> list[str]:
    (one,) = where.gpus
    one = replace(one, **{n: v for n, v in changes.items() if n == "unshared"})  # type: ignore[arg-type]
    asked = replace(wanted(text), strangers=bool(changes.get("strangers")))
    return [str(d.partition or "whole") for d in devices(asked, one, where)]


@pytest.mark.parametrize("where", [VGPU, MIG])
def test_a_part_is_weighed_where_a_gpu_may_be_shared(where: Site) -> None:
    assert names(CHAT_8B, where) == ["whole"]
    shared = names(CHAT_8B + "    tenancy: {isolation: shared}\n", where)
    assert len(shared) > 2
    assert shared[-1] == "whole"
    assert names(CHAT_8B + "    tenancy: {cut: true}\n", where) == shared
    assert names(NOTEBOOKS, where) == shared
    guests = "    tenancy: {isolation: vm}\n"
    assert names(NOTEBOOKS + guests, where) == shared
    assert names(CHAT_8B + guests, where) == ["whole"]
    assert names(NOTEBOOKS + "    tenancy: {isolation: gpu}\n", where) == ["whole"]


def test_beside_strangers_a_guest_has_a_part_of_the_hardware() -> None:
    """Not turns on all of it, where the GPU can be cut."""
    alone, beside = names(NOTEBOOKS, VGPU), names(NOTEBOOKS, VGPU, strangers=True)
    assert set(beside) < set(alone)
    (one,) = VGPU.gpus
    turns = {t.name for t in one.gpu.vgpu_types if not t.mig_profile}
    assert turns & set(alone)
    assert not turns & set(beside)
    uncut = site("l40s", target="libvirt")
    assert names(NOTEBOOKS, uncut, strangers=True) == names(NOTEBOOKS, uncut)


def test_gpus_that_are_not_shared_are_taken_whole_unless_they_are_asked_for() -> None:
    unshared = Origin("m.yaml", ("platform",))
    assert names(NOTEBOOKS, VGPU, unshared=unshared) == ["whole"]
    forced = NOTEBOOKS + "    overrides: {gpu: a100-sxm-80gb}\n"
    assert len(names(forced, VGPU, unshared=unshared)) > 1


def test_a_partition_is_chosen_by_its_name_alone() -> None:
    profile = next(n for n in names(NOTEBOOKS, MIG) if n.startswith("3g."))
    chosen = NOTEBOOKS + f"    overrides: {{partition: {profile}}}\n"
    assert names(chosen, MIG) == [profile]
    assert names(CHAT_8B + f"    overrides: {{partition: {profile}}}\n", MIG) == [profile]


# --- gates of hardware --------------------------------------------------------------------------


def test_geforce_gpus_exchange_through_the_host_at_a_share_of_their_slot() -> None:
    """Twice the slot, twice the rate; cards that reach each other exchange faster."""
    slow, fast = (
        collective("all_reduce", offer(gpu).gpu, "vllm", 2)
        for gpu in ("rtx-4090-24gb", "rtx-5090-32gb")
    )
    assert fast["rate"].value == 2 * slow["rate"].value
    assert fast["launch"] == slow["launch"]
    peers = collective("all_reduce", replace(offer("rtx-4090-24gb").gpu, line="rtx"), "vllm", 2)
    assert peers["launch"].value < slow["launch"].value
    assert peers["rate"].value > slow["rate"].value


def test_an_engines_release_has_its_oldest_gpus() -> None:
    """TensorRT-LLM begins with Ampere."""
    turing = offer("t4").gpu
    (short,) = unsupported(turing, "fp16", "tensorrt-llm")
    assert short.resource == "compute capability for tensorrt-llm"
    assert (short.requested, short.capacity) == (8.0, 7.5)
    assert unsupported(turing, "fp16", "vllm") == ()
    assert unsupported(offer("a100-sxm-80gb").gpu, "fp16", "tensorrt-llm") == ()


# --- the same search on other nodes -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["chat", "pictures"])
def test_what_was_tried_holds_on_other_nodes_with_the_same_gpus(kind: str) -> None:
    """Though where the host's cores count it is tried anew."""
    asked = wanted(KINDS[kind])
    eight = Site(target="kubernetes", gpus=(shaped(8), shaped(1)), fabric=IB)
    before = search(asked, eight)
    assert isinstance(before, Search)
    spot = shaped(4, "spot")
    other = Site(target="kubernetes", gpus=(shaped(4), spot, offer("l4")), fabric=IB)
    after = moved(before, other)
    places = [o.gpus_per_node for o, _ in after.groups if o.gpu.identifier == "h100-sxm-80gb"]
    assert places == [4]
    assert {o.gpu.identifier for o, _ in after.groups} == {"h100-sxm-80gb"}
    fresh = search(asked, replace(other, gpus=other.gpus[:1]))
    assert isinstance(fresh, Search)
    sizes = [
        sorted({(c.gpus, c.replicas) for c in s.allowed if c.feasible and c.gpus <= 4})
        for s in (after, fresh)
    ]
    assert sizes[0] == sizes[1]
    assert sizes[0]
