"""How runs on images are divided, what their files take, and when they are late."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest
from ruamel.yaml import YAML

from gpuplan.catalog.load import load_catalog
from gpuplan.manifest.v1 import Manifest
from gpuplan.models.load import known
from gpuplan.sizing.ask.read import demand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.data import loading
from gpuplan.sizing.decide.messages import describe
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.vision.runs import SizedLooking
from tests.sizing.test_interruptions import figures
from tests.sizing.test_kinds_told import LEARN
from tests.support.sizing_cases import IB, offer, sized, wanted

H100 = "h100-sxm-80gb"
FREE = LEARN.replace("    overrides: {gpu_count: 8}\n", "")
ODD = FREE.replace("global_batch: 1024", "global_batch: 96")


def where(nodes: int | None = 3, *, joined: bool = True) -> Site:
    made = Site(
        target="kubernetes", gpus=(offer(H100, node_count=nodes),), fabric=IB if joined else None
    )
    return replace(made, storage_bytes_per_s=Quantity(2e9, "B/s", "test"))


def weighed(text: str, site: Site) -> dict[int, Candidate]:
    ((_, group),) = tried(wanted(text), site)
    return {candidate.gpus: candidate for candidate in group}


def layout(candidate: Candidate) -> SizedLooking:
    assert isinstance(candidate.detail, SizedLooking)
    return candidate.detail


def test_a_run_has_a_part_of_a_node_or_whole_ones_and_its_ranks_divide_the_batch() -> None:
    """96 images on three nodes of 8: 12 GPUs would be one and a half."""
    found = weighed(ODD, where())
    assert sorted(found) == [1, 2, 3, 4, 6, 8, 16, 24]
    assert {n: layout(c).micro_batch for n, c in found.items() if n < 24} == {
        n: 96 // n for n in (1, 2, 3, 4, 6, 8, 16)
    }
    assert all(layout(c).gpus == n for n, c in found.items())
    nodes = {n: layout(c).run.load["nodes"].value for n, c in found.items()}
    assert nodes == {n: -(-n // 8) for n in found}


def test_who_has_fewer_images_at_a_time_updates_its_weights_more_often() -> None:
    """34 bytes of each parameter, for 4 images at a time as for 96; nothing else of an image is
    another."""
    found = weighed(ODD, where())
    few, many = (layout(found[n]) for n in (24, 1))
    assert (few.micro_batch, many.micro_batch) == (4, 96)
    more = few.values["image_seconds"] - many.values["image_seconds"]
    each = more / (1 / 4 - 1 / 96) * few.values["bandwidth"] / few.values["parameters"]
    assert each == pytest.approx(34, abs=0.6)


def test_over_nodes_that_nothing_joins_no_run_is_planned() -> None:
    found = weighed(ODD, where(joined=False))
    for gpus, candidate in found.items():
        assert candidate.feasible == (gpus <= 8)
        if gpus > 8:
            (gate,) = candidate.shortfalls
            assert describe(gate) == "several nodes need platform.fabric, which is not stated"


@pytest.mark.parametrize(
    ("override", "gpus", "said"),
    [
        ("gpu_count: 5", 5, "5 GPUs do not divide 96 images"),
        ("gpu_count: 8, micro_batch: 5", 8, "5 images at a time do not divide 12 images"),
        ("gpu_count: 8, micro_batch: 4", 8, ""),
        ("gpu_count: 6", 6, ""),
    ],
)
def test_what_does_not_divide_the_batch_says_so(override: str, gpus: int, said: str) -> None:
    found = weighed(f"{ODD}    overrides: {{{override}}}\n", where())
    assert [*found] == [gpus]
    gates = [describe(gate) for gate in found[gpus].shortfalls]
    assert gates == ([said] if said else [])


def test_files_are_as_large_as_the_data_over_its_images_or_as_their_pixels_say() -> None:
    known = figures(sized(LEARN, where()))
    assert known["file_bytes"] == pytest.approx(150e9 / 1.3e6)
    told = figures(sized(LEARN.replace(", size: 150 GB", ""), where()))
    assert told["file_bytes"] == round(500 * 375 * loading.FILE_BYTES_PER_PIXEL)
    stored = 1024 * told["file_bytes"] / 2e9
    assert told["stored_seconds"] == pytest.approx(stored)


def test_a_run_is_late_by_what_confidence_asks_for() -> None:
    """It may take the seconds that are not exceeded with the confidence, and no less."""
    (one,) = weighed(LEARN, where()).values()
    slow = layout(one).run.interval[0][1]
    seconds = layout(one).values["time_to_finish"]
    assert slow > 1
    assert one.hours == pytest.approx(seconds / 3600)
    for factor, fits in ((1.001, True), (0.999, False)):
        within = f"finish_within: {seconds * slow * factor:.0f} s, confidence: 0.95"
        (judged,) = weighed(f"{LEARN}    slo: {{{within}}}\n", where()).values()
        assert judged.feasible == fits, factor
        if not fits:
            (gate,) = judged.shortfalls
            assert gate.resource == "time_to_finish"
            assert gate.requested == pytest.approx(seconds * slow, rel=1e-3)
            assert judged.flip is not None
            assert judged.flip.quantity == "slo.finish_within"
            assert (judged.flip.now, judged.flip.needed) == (gate.capacity, gate.requested)


@pytest.mark.parametrize(("target", "schedule"), [("kubernetes", "0 2 * * *"), ("libvirt", None)])
def test_a_run_starts_again_by_its_schedule_where_the_target_has_a_clock(
    target: str, schedule: str | None
) -> None:
    """Guests run from the start, and once."""
    work = YAML(typ="safe").load(f"name: work\n{dedent(LEARN)}schedule: 0 2 * * *\n")
    manifest = Manifest.model_validate(
        {
            "apiVersion": "gpuplan.dev/v1",
            "name": "stack",
            "platform": {"target": target},
            "workloads": [work],
        }
    )
    model, pin = known(work["model"]), load_catalog().engine("pytorch")
    assert model is not None
    assert pin is not None
    assert demand(manifest, 0, model, pin, "m.yaml").schedule == schedule
