"""How many sequences a replica takes, at each limit and not one before; what stops it is named."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gpuplan.catalog.kernels import Whole
from gpuplan.plan.model import Flip, Shortfall
from gpuplan.sizing.kinds.serving.limit import (
    first_gate,
    fits,
    gate,
    holds,
    kept_apart,
    largest,
)
from tests.support.sizing_cases import failure, site, sized


@dataclass
class Stand:
    """A replica that takes 10 bytes a sequence beside 50, of 200, and a second for each 4. Prompts
    keep it busy for `busy` of the time a sequence; at times `crowd` times as many run. Steps of
    none of its `graph_sizes` take `slower` times as long."""

    usable: float = 200.0
    own: float = 5.0
    each: float = 10.0
    max_num_seqs: int | None = None
    limits: tuple[tuple[str, float, float], ...] = ()
    slowness: float = 1.25
    busy: float = 0.0
    crowd: float = 1.0
    graph_sizes: Whole | None = None
    slower: float = 1.0
    random: bool = False
    device: Any = field(
        default_factory=lambda: SimpleNamespace(memory_bytes=SimpleNamespace(value=250.0))
    )

    @property
    def places(self) -> int:
        return 512 if self.max_num_seqs is None else self.max_num_seqs

    @property
    def service(self) -> Any:
        return SimpleNamespace(random=self.random)

    def needs(self, sequences: float) -> dict[str, float]:
        return {
            "running": self.crowd * sequences,
            "weights_bytes": 40.0,
            "activations_bytes": 5.0,
            "own_bytes": self.own,
            "kv_cache_bytes": self.each * sequences,
            "used_bytes": 45.0 + self.own + self.each * sequences,
            "usable_bytes": self.usable,
            "driver_bytes": 3.0,
            "gpu_memory_utilization": 0.8,
        }

    def times(self, sequences: float) -> dict[str, float]:
        sizes = self.graph_sizes
        whole = sizes is None or sizes.below(sequences) == sequences
        rate = sequences if whole else sequences / self.slower
        times = {"time_per_output_token": sequences / 4, "replica_rate": rate}
        return times | {"prefill_load": self.busy * sequences}


def replica(**changes: Any) -> Any:
    return Stand(**changes)


def test_memory_may_be_filled_to_the_last_byte() -> None:
    assert holds(replica(), 15)
    assert not holds(replica(), 15.1)


def test_an_engine_takes_as_many_as_it_is_told() -> None:
    """Those that run at times count, also where it is told to take one; untold, it takes 512."""
    few = replica(max_num_seqs=3)
    assert [holds(few, n) for n in (2, 3, 3.5)] == [True, True, False]
    one = replica(max_num_seqs=1, crowd=2.0)
    assert [holds(one, n) for n in (0.5, 0.5625, 1)] == [True, False, False]
    untold = replica(each=0.0, crowd=2.0)
    assert [holds(untold, n) for n in (256, 256.5)] == [True, False]


def test_an_objective_may_be_met_exactly() -> None:
    """Two seconds with a quarter more are as many as 6.4 sequences take."""
    limited = replica(limits=(("time_per_output_token", 2.0, 1.25),))
    assert [fits(limited, n) for n in (6.3, 6.4, 6.5)] == [True, True, False]
    assert not fits(replica(limits=(("time_per_output_token", 99.0, 1.0),)), 15.1)
    assert fits(replica(), 15)


def test_prompts_keep_a_service_busy_for_nine_tenths_of_the_time_at_most() -> None:
    """Nine tenths are what 8 sequences take; a batch has no queue that must be worked off."""
    busy = replica(busy=0.9 / 8, random=True)
    assert [fits(busy, n) for n in (7.9, 8, 8.1)] == [True, True, False]
    assert fits(replica(busy=0.9 / 8), 15)


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({}, 15),
        ({"random": True}, 15),
        ({"usable": 206.0}, 15),
        ({"usable": 206.0, "random": True}, 15.5625),  # in sixteenths
        ({"usable": 209.9, "random": True}, 15.9375),
        ({"usable": 59.0}, 0),
        ({"usable": 60.0}, 1),
        ({"usable": 59.0, "random": True}, 0.875),
        ({"usable": 50.625, "random": True}, 0.0625),
        ({"usable": 50.6, "random": True}, 0),
        ({"max_num_seqs": 4}, 4),
        ({"max_num_seqs": 4, "random": True}, 4),
        ({"limits": (("time_per_output_token", 2.0, 1.0),)}, 8),
        ({"limits": (("time_per_output_token", 2.2, 1.0),), "random": True}, 8.75),
        ({"busy": 0.118, "random": True}, 7.625),  # 0.9 / 0.118 = 7.627
        ({"busy": 0.118}, 15),
        ({"busy": 15.0, "random": True}, 0),  # not even a sixteenth
        ({"max_num_seqs": 1, "crowd": 2.0, "random": True}, 0.5),
    ],
)
def test_the_most_sequences(changes: dict[str, Any], most: float) -> None:
    assert largest(replica(**changes)) == most


def test_the_cache_that_does_not_fit_is_named() -> None:
    """20 sequences need 250 bytes, 80 % of 312.5, beside three that the driver holds."""
    short = Shortfall(resource="kv_cache", requested=200.0, used=50.0, capacity=200.0, unit="B")
    flip = Flip(quantity="gpu_memory_bytes", now=250.0, needed=316.0, unit="B")
    assert gate(replica(), 20) == ((short,), flip)
    assert gate(replica(), 15) == ((), None)


def test_weights_that_do_not_fit_are_memory() -> None:
    assert gate(replica(usable=50.0), 2)[0][0].resource == "kv_cache"
    ((short,), flip) = gate(replica(usable=49.0), 2)
    assert short == Shortfall(
        resource="gpu_memory", requested=70.0, used=0.0, capacity=49.0, unit="B"
    )
    assert flip is not None
    assert flip.needed == 90.0


def test_an_objective_that_is_missed_says_by_how_much() -> None:
    limits = (("time_per_output_token", 2.0, 1.25),)
    short = Shortfall(
        resource="time_per_output_token", requested=2.5, used=0.0, capacity=2.0, unit="s"
    )
    flip = Flip(quantity="slo.time_per_output_token", now=2.0, needed=2.5, unit="s")
    assert gate(replica(limits=limits), 8) == ((short,), flip)
    assert gate(replica(limits=limits), 6.4) == ((), None)
    slow = replica(limits=(("time_per_output_token", 0.3, 1.0),))
    assert (
        first_gate(slow)[0][0].requested == 0.3125
    )  # one sequence, as slow as the confidence asks


def test_requests_may_be_kept_apart_by_a_few_idle_replicas_but_not_by_hundreds() -> None:
    few = replica(random=True, limits=(("time_per_output_token", 0.2, 1.25),))
    most = largest(few)
    assert most == 0.625
    assert kept_apart(few, most, 40) == ((), None), "15 idle"
    (short,), flip = kept_apart(few, most, 50)
    assert (short.requested, short.capacity) == (1 / 4 * 1.25, 0.2)
    assert flip == Flip(quantity="slo.time_per_output_token", now=0.2, needed=0.3125, unit="s")
    assert kept_apart(replica(random=True), 1.5, 10_000) == ((), None), "they share its time"


SLOW = """
    task: inference
    model: meta-llama/Llama-3.3-70B-Instruct
    precision: fp8
    engine: {name: sglang}
    load: {requests_per_second: RATE, input_tokens: 1200, output_tokens: 50}
    slo: {time_to_first_token: 8 s, time_per_output_token: 54 ms}
"""


def test_a_fleet_that_is_idle_all_the_time_is_no_plan() -> None:
    """Thousands of replicas would meet the objective, each 6 % of the time at work."""
    where = site("l40s", node_count=10_000)
    one = sized(SLOW.replace("RATE", "0.1"), where).workload
    assert one.replicas <= 8
    said = failure(SLOW.replace("RATE", "60"), where).label
    (needed,) = re.findall(r"time_per_output_token: (\d+\.?\d*) ms where 54 ms is asked", said)
    assert float(needed) > 54
    enough = 1.005 * float(needed)  # it is told to three digits
    eased = SLOW.replace("RATE", "60").replace("54 ms", f"{enough:.1f} ms")
    assert sized(eased, where).workload.replicas < 300


@pytest.mark.parametrize(("slower", "most"), [(1.0, 15), (1.87, 15), (1.88, 8)])
def test_a_batch_takes_fewer_places_where_whole_graphs_answer_more(
    slower: float, most: int
) -> None:
    """15 fit; their steps are in pieces, and those of 8 are not: 15 / 1.875 is 8."""
    sizes = Whole(since=(0, 11), sizes=((1, 1), (2, 2), (4, 4), (8, 8)))
    assert largest(replica(graph_sizes=sizes, slower=slower)) == most
