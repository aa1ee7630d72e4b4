"""What a plan tells of every kind of workload beside its size: what it meets first, its figures
with their limits, and its volumes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from gpuplan.plan.model import Metric, ResourceUse
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import Site
from gpuplan.units import GIB
from tests.sizing.test_interruptions import BATCHES, HOURLY, SERVICES, figures
from tests.support.sizing_cases import (
    CHAT_8B,
    CHAT_70B,
    FULL_8B,
    IMAGES,
    READER,
    SPEECH,
    TAGGER,
    site,
    sized,
)

LEARN = """
    task: finetuning
    model: google/vit-large-patch16-224
    command: [train]
    training: {epochs: 30, global_batch: 1024}
    dataset: {name: uploads, images: 1300000, pixels: 500x375, size: 150 GB}
    overrides: {gpu_count: 8}
"""
SPAN = FULL_8B + "    overrides: {gpu_count: 16}\n"
KINDS = {
    **BATCHES,
    **SERVICES,
    "run": HOURLY,
    "run over nodes": SPAN,
    "learning": LEARN,
    "learning over nodes": LEARN.replace("8}", "16}"),
    "learning on one": LEARN.replace("8}", "1}"),
}


def where(*, stored: bool = True, **changes: Any) -> Site:
    rate = Quantity(2e9, "B/s", "test") if stored else None
    return replace(site("h100-sxm-80gb", **changes), storage_bytes_per_s=rate)


# --- what is met first --------------------------------------------------------------------------

DISK = "faster storage (`platform.storage.bandwidth`), before more nodes"
NO_DISK = "`platform.storage.bandwidth` is not stated"
NO_RACK = "`platform.rack_power` is not stated"
CARDS = "faster network cards, or more of them: more nodes share no card"
FASTER = "faster GPUs, or more of them: all else waits for them"
NO_BYTES = "the bytes of its requests are not counted"
NO_CARDS = "the rate of the nodes' cards is not stated (an inventory does)"
CACHE = "`overrides: {kv_cache_dtype: fp8}`, half the cache, before a larger GPU"
LARGER = "a GPU with more memory"
RECOMPUTE = "`training: {recompute: full}`, which takes time and no memory"
PIXELS = "images stored in fewer pixels, before nodes with more cores"
LINK = "GPUs behind a newer PCIe, or with NVLink"
AT_START = "full at a start alone ({} for the weights)"
BOUND = "all replicas, bound by {}"

ANY = {
    "gpu_memory": ("each GPU, with the margin", LARGER),
    "host_memory": ("a replica's node, at least", "more memory in each node, before more nodes"),
    "cpu_cores": ("a replica's node", "nodes with more cores, or fewer GPUs"),
    "power": ("1 node, GPU boards alone", NO_RACK),
}
ANSWERED = ANY | {
    "gpu_time": (BOUND, "one more replica, {}"),
    "network": ("all nodes", NO_BYTES),
    "pcie": ("each GPU", AT_START),
}
# A batch that fills its nodes keeps them busy until it ends.
FILLED = {n: row for n, row in ANSWERED.items() if n != "gpu_time"}
SEEN = {n: row for n, row in ANSWERED.items() if n != "cpu_cores"} | {
    "gpu_time": ("all GPUs", "one more replica, {}"),
    "decoding": ("all their cores", PIXELS),
}
RUN = ANY | {
    "gpu_memory": ("each GPU, with the margin", RECOMPUTE),
    "gpu_time": ("a step", FASTER),
    "time_to_finish": ("the run", "more GPUs: `gpuplan capacity` says how many end it when"),
    "pcie": ("each GPU", LINK),
    "dataset": ("all nodes", DISK),
    "checkpoint": ("nodes that write", DISK),
}
LEARNS = {n: row for n, row in ANY.items() if n != "cpu_cores"} | {
    "gpu_time": ("all GPUs", FASTER),
    "decoding": ("all their cores", PIXELS),
    "storage": ("all nodes", DISK),
}
TEXT = {"gpu_memory": ("each GPU, with the margin", CACHE), "network": ("all nodes", NO_CARDS)}
TOLD = {
    "batch": ANSWERED
    | TEXT
    | {
        "pcie": (
            "each GPU",
            f"{AT_START}; what its GPUs send each other is in the times",
        )
    },
    **dict.fromkeys(("batch of images", "batch of texts", "batch of audio"), FILLED),
    "batch of pictures": SEEN | {"storage": ("all nodes", DISK)},
    "chat": ANSWERED | TEXT,
    "images": ANSWERED,
    "texts": ANSWERED,
    "audio": ANSWERED,
    "pictures": SEEN,
    "notebooks": {"power": ANY["power"]},
    "run": RUN,
    "run over nodes": RUN
    | {"power": ("2 nodes, GPU boards alone", NO_RACK), "network": ("each node", CARDS)},
    "learning": LEARNS | {"links": ("a step", CARDS)},
    "learning on one": LEARNS,
    "learning over nodes": LEARNS
    | {"power": ("2 nodes, GPU boards alone", NO_RACK), "network": ("a step", CARDS)},
}


def told(row: ResourceUse) -> str:
    """Its remedy, or why it has none."""
    assert (row.remedy is None) != (row.unknown is None)
    return row.remedy or row.unknown or ""


@pytest.mark.parametrize("case", KINDS)
@pytest.mark.parametrize("stored", [True, False])
def test_each_kind_has_the_rows_of_what_it_takes(case: str, stored: bool) -> None:
    answer = sized(KINDS[case], where(stored=stored))
    work = answer.workload
    assert {row.resource for row in work.balance} == set(TOLD[case])
    known = [row for row in work.balance if row.share is not None]
    assert list(work.balance[: len(known)]) == known
    limits = [row.share or 0.0 for row in known if row.resource != "cpu_cores"]
    assert limits == sorted(limits, reverse=True)
    assert all(row.resource != "cpu_cores" for row in known[:-1])  # advice, after all limits
    for row in work.balance:
        of, said = TOLD[case][row.resource]
        if said == DISK and not stored:
            said = NO_DISK
        assert row.of == of.format(work.bound_by)
        if "{}" in said:
            first, last = said.split("{}")
            assert told(row).startswith(first), row
            assert told(row).endswith(last), row
        else:
            assert told(row) == said, row


@pytest.mark.parametrize("case", [case for case in KINDS if case != "notebooks"])
def test_what_is_needed_and_there_is_that_of_its_node_and_its_times(case: str) -> None:
    """The host's least is 4 cores and 16 GB a GPU; a node of 8 GPUs has 104 cores and 1.8 TB left;
    a board draws 700 W."""
    answer = sized(KINDS[case], where())
    work, known = answer.workload, figures(answer)
    rows = {row.resource: (row.need, row.supply) for row in work.balance}
    here = work.gpus_per_node
    assert rows["gpu_memory"] == (known["used_bytes"], known["usable_bytes"])
    assert rows["host_memory"] == (16e9 * here, 225e9 * here)
    assert rows.get("cpu_cores", (4.0 * here, 13.0 * here)) == (4 * here, 13 * here)
    nodes = 2 if "nodes" in case else 1
    assert rows["power"] == (nodes * 5600, None)
    if "pcie" in rows:
        assert rows["pcie"][1] == 64e9
    if case.startswith("run"):
        step = known["modelled_step_seconds"]
        busy = known["gradient_accumulation_steps"] * known["device_seconds"]
        assert rows["gpu_time"] == pytest.approx((busy, step))
        assert rows["time_to_finish"] == (known["time_to_finish"], 2 * 86400)
        data = known["tokens_per_second"] * 21
        assert rows["dataset"] == pytest.approx((data, 2e9 * nodes))
        every = known.get("saved_every", 7200)
        saved = known["checkpoint_bytes"] / (0.01 * every)
        assert rows["checkpoint"] == pytest.approx((saved, 2e9 * nodes))
    elif case.startswith("learning"):
        if case != "learning on one":
            name = "network" if nodes > 1 else "links"
            assert rows[name] == (known["exchange_seconds"], known["step_seconds"])
        assert rows["gpu_time"][1] == known["gpu_images_per_second"]
        assert rows["decoding"] == (known["images_per_second"], known["decoded_images_per_second"])
    elif "pictures" in case:
        each = work.replicas * known["gpu_images_per_second"]
        asked = known.get("sized_rate", known["images_per_second"])
        assert rows["gpu_time"] == pytest.approx((asked, each))
    elif "gpu_time" in rows:
        rate = next(m for m in work.metrics if m.name.endswith("s_per_second"))
        assert rows["gpu_time"] == (known["sized_rate"], rate.estimate.value)
    if case in ("chat", "batch"):
        text = 4 * (known["load.input_tokens.mean"] + known["load.output_tokens.mean"])
        assert (rows["network"][0] or 0) > text * known["requests_per_second"] / 20


@pytest.mark.parametrize("case", ["chat", "images", "texts", "audio", "pictures", "batch"])
def test_one_more_replica_has_its_price(case: str) -> None:
    priced = sized(KINDS[case], where()).workload
    (row,) = (r for r in priced.balance if r.resource == "gpu_time")
    assert priced.usd_per_hour is not None
    assert row.remedy == f"one more replica, ${priced.usd_per_hour / priced.replicas:.2f}/h"
    free = sized(KINDS[case], where(usd_per_gpu_hour=None)).workload
    (row,) = (r for r in free.balance if r.resource == "gpu_time")
    assert row.remedy == "one more replica"


def test_what_makes_room_is_not_offered_where_it_is_taken() -> None:
    def remedy(text: str) -> str | None:
        (row,) = (r for r in sized(text, where()).workload.balance if r.resource == "gpu_memory")
        return row.remedy

    assert remedy(CHAT_8B + "    overrides: {kv_cache_dtype: fp8}\n") == LARGER
    assert remedy(CHAT_8B + "    overrides: {kv_cache_dtype: auto}\n") == LARGER
    full = HOURLY.replace("tokens: 1e9", "tokens: 1e9, recompute: full")
    assert remedy(full) == "more GPUs to divide the states, before GPUs with more memory"


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        # 8,030,261,248 weights x 14 B in a hundredth of 2 h are 1.561 GB/s
        (1.6e9, DISK),
        (1e9, "storage of 1.56 GB/s a node (`platform.storage.bandwidth`), before more nodes"),
    ],
)
def test_a_disk_that_is_short_says_how_fast_it_must_be(rate: float, said: str) -> None:
    slow = replace(where(), storage_bytes_per_s=Quantity(rate, "B/s", "test"))
    (row,) = (r for r in sized(HOURLY, slow).workload.balance if r.resource == "checkpoint")
    assert row.remedy == said


# --- figures ------------------------------------------------------------------------------------

SERVED = ("requests_per_second", "at_least")
FIGURES = {
    "batch": ["time_to_finish", "requests_per_second", "output_tokens_per_second", "gpu_memory"],
    "batch of images": ["time_to_finish", "images_per_second"],
    "batch of texts": [
        "time_to_finish",
        "requests_per_second",
        "input_tokens_per_second",
        "gpu_memory",
    ],
    "batch of audio": ["time_to_finish", "requests_per_second", "audio_rate", "gpu_memory"],
    "chat": [
        "time_per_output_token",
        "time_to_first_token",
        "requests_per_second",
        "output_tokens_per_second",
        "gpu_memory",
    ],
    "images": ["request_latency", "images_per_second"],
    "texts": ["request_latency", "requests_per_second", "input_tokens_per_second", "gpu_memory"],
    "audio": ["request_latency", "requests_per_second", "audio_rate", "gpu_memory"],
    "run": ["tokens_per_second", "step_seconds", "time_to_finish", "gpu_memory"],
}
FIGURES["run over nodes"] = FIGURES["run"]


def metrics(text: str) -> dict[str, Metric]:
    return {m.name: m for m in sized(text, where()).workload.metrics}


@pytest.mark.parametrize("case", FIGURES)
def test_each_kind_has_its_figures_and_what_is_asked_of_them(case: str) -> None:
    """Of a service at least the peak, of what ends at most its limit."""
    answer = sized(KINDS[case], where())
    known, found = figures(answer), {m.name: m for m in answer.workload.metrics}
    assert [m.name for m in answer.workload.metrics] == FIGURES[case]
    limits = {"time_to_finish": 172800.0 if "run" in case else 86400.0}
    limits |= {"gpu_memory": known["usable_bytes"]}
    if case in SERVICES:
        limits["requests_per_second"] = limits["images_per_second"] = known["sized_rate"]
        limits["request_latency"] = {"images": 15.0, "texts": 0.08, "audio": 20.0}.get(case, 0.0)
    for name, one in found.items():
        assert one.limit == limits.get(name), name
        assert (one.probability is None) == (one.limit is None)
        rate = name.endswith("per_second") or name == "audio_rate"
        assert one.sense == ("at_least" if rate else "at_most")
        if name in known and name != "gpu_memory":
            assert one.estimate.value == pytest.approx(known[name])
        assert one.estimate.low <= one.estimate.value <= one.estimate.high


@pytest.mark.parametrize("case", BATCHES)
def test_what_nothing_limits_has_no_limit(case: str) -> None:
    text = BATCHES[case]
    line = next(row for row in text.splitlines() if "finish_within" in row)
    found = metrics(text.replace(f"{line}\n", ""))
    assert found["time_to_finish"].limit is None
    sooner = metrics(text.replace(line, f"{line}\n    deadline: 20 h"))
    assert sooner["time_to_finish"].limit == 20 * 3600
    later = metrics(text.replace(line, f"{line}\n    deadline: 30 h"))
    assert later["time_to_finish"].limit == 24 * 3600


@pytest.mark.parametrize(
    ("text", "limit", "name", "value"),
    [
        (CHAT_70B, "time_per_output_token", "time_per_output_token", 0.04),
        (CHAT_70B, "time_to_first_token", "time_to_first_token", 1.0),
        (IMAGES, "request_latency", "request_latency", 15.0),
        (READER, "request_latency", "request_latency", 0.08),
        (SPEECH, "request_latency", "request_latency", 20.0),
        (TAGGER, "request_latency", "request_latency", 0.06),
        (FULL_8B, "finish_within", "time_to_finish", 172800.0),
        *((text, "finish_within", "time_to_finish", 86400.0) for text in BATCHES.values()),
    ],
)
def test_a_limit_that_may_be_missed_is_shown_and_decides_nothing(
    text: str, limit: str, name: str, value: float
) -> None:
    """What is met though it may be missed is said; one that nothing meets is marked."""
    may = f"    overrides: {{accepted_misses: [{limit}]}}\n"
    answer = sized(text + may, where())
    (one,) = (m for m in answer.workload.metrics if m.name == name)
    assert one.limit == value
    met = [d for d in answer.diagnostics if f"a miss of '{limit}' is accepted" in d.message]
    assert (one.probability or 0) >= 0.8 - 1e-6 or one.accepted_miss
    assert bool(met) != bool(one.accepted_miss)
    line = next(row for row in text.splitlines() if limit in row)
    before, _, after = line.partition(f"{limit}: ")
    asked = after.replace("}", ",").partition(",")[0]
    tight = text.replace(f"{limit}: {asked}", f"{limit}: 1 ms")
    assert before in tight
    (missed,) = (m for m in sized(tight + may, where()).workload.metrics if m.name == name)
    assert missed.limit == 0.001
    assert missed.accepted_miss
    assert (missed.probability or 0) < 0.8
    others = (m for m in answer.workload.metrics if m.name != name)
    assert not any(m.accepted_miss for m in others)


POOLS = CHAT_70B.replace("peak: 20", "peak: 60") + "    disaggregation: prefill_decode\n"


@pytest.mark.parametrize("case", [*KINDS, "pools", "busy chat"])
def test_requests_at_once_are_those_of_the_peak_or_all_places_of_a_batch(case: str) -> None:
    """Little's law; a run is one, and each user has an environment."""
    busy = CHAT_8B.replace("requests_per_second: 2", "requests_per_second: 400")
    answer = sized((KINDS | {"pools": POOLS, "busy chat": busy})[case], where())
    work, known = answer.workload, figures(answer)
    rate = known.get("sized_rate", 0.0)
    if case == "pools":
        assert work.disaggregation is not None
        decodes = work.disaggregation.decode_replicas
        assert decodes > 1
        expected = math.ceil(known["sequences"] * decodes)
        answers = rate * known["load.output_tokens.mean"] * known["decode.seconds"]
        assert known["sequences"] * decodes == pytest.approx(answers, rel=0.001)
    elif "chat" in case:
        expected = math.ceil(rate * known["request_seconds"])
    elif case in SERVICES and case != "notebooks":
        expected = math.ceil(rate * known["request_latency"])
    elif case in BATCHES:
        places = {
            "batch": known.get("max_num_seqs", 0.0),
            "batch of images": known.get("max_num_seqs", 0.0),
            "batch of audio": known.get("max_num_seqs", 0.0),
        }
        expected = int(work.replicas * places.get(case, 1.0))
    else:
        expected = 10 if case == "notebooks" else 1
    assert work.concurrency == expected


# --- volumes ------------------------------------------------------------------------------------

FILES = {
    "models": "/models",
    "requests": "/requests",
    "results": "/results",
    "home": "/home/jovyan",
    "checkpoints": "/checkpoints",
    "dataset": "/data",
}
MANY = {
    "batch": BATCHES["batch"],
    "batch of images": BATCHES["batch of images"],
    "batch of texts": BATCHES["batch of texts"],
    "images": IMAGES,
    "run over nodes": SPAN,
    "learning over nodes": KINDS["learning over nodes"],
}
ALONE = {
    "chat": CHAT_8B,
    "audio": SPEECH,
    "pictures": TAGGER,
    "run": HOURLY,
    "learning": LEARN,
    **{
        case: BATCHES[case].replace("finish_within: 24 h", "finish_within: 900 d")
        + "    overrides: {replicas: 1}\n"
        for case in BATCHES
    },
}


def volumes(text: str, *, shared: bool | None) -> dict[str, tuple[bool, bool]]:
    found = sized(text, replace(where(), storage_shared=shared)).workload.volumes
    assert all(v.name == v.purpose and v.mount_path == FILES[v.purpose] for v in found)
    return {v.purpose: (v.shared, v.per_replica) for v in found}


@pytest.mark.parametrize("case", MANY)
def test_what_several_mount_is_shared_unless_the_storage_class_has_none(case: str) -> None:
    run = "nodes" in case
    for stated in (None, True):
        assert set(volumes(MANY[case], shared=stated).values()) == {(True, False)}
    own = volumes(MANY[case], shared=False)
    assert own.pop("models") == (False, not run)  # each replica has the weights for itself
    assert set(own.values()) <= {(False, False)}


@pytest.mark.parametrize("case", ALONE)
def test_what_one_mounts_is_its_own_unless_the_storage_class_shares_all(case: str) -> None:
    answer = sized(ALONE[case], where()).workload
    assert (answer.replicas, answer.nodes_per_replica) == (1, 1)
    assert set(volumes(ALONE[case], shared=None).values()) == {(False, False)}
    assert set(volumes(ALONE[case], shared=True).values()) == {(True, False)}


def test_each_user_has_a_home() -> None:
    for stated in (None, True, False):
        assert volumes(KINDS["notebooks"], shared=stated) == {"home": (False, True)}


@pytest.mark.parametrize("case", [case for case in KINDS if case != "notebooks"])
def test_volumes_hold_what_lies_there_and_a_tenth_more(case: str) -> None:
    answer = sized(KINDS[case], where())
    known = figures(answer)
    lies = {
        "models": known.get("model_bytes", known["checkpoint_bytes"]),
        "requests": known.get("request_file_bytes", 0.0),
        "results": known.get("result_file_bytes", 0.0),
        "checkpoints": known.get("checkpoints_kept_bytes", 0.0),
        "dataset": 150e9,
    }
    for volume in answer.workload.volumes:
        size = math.ceil(1.1 * lies[volume.purpose] / GIB) * GIB
        assert volume.size_bytes == size, volume.name


# --- what is said beside ------------------------------------------------------------------------

NO_PRICE = "the storage of the checkpoints of 'work' is not priced"
NO_RATE = "the bandwidth of the storage is not stated"
IDLE = "'work' is idle 10 h a day, $320 a day: nothing scales it"  # of a node at $32 an hour
DRAFTS = CHAT_8B + "    speculative: {accepted_tokens: 2, draft_tokens: 3, draft_cost: 0.1}\n"
UNTOLD = "'work' is sized with speculative decoding, which nothing turns on"
READS = HOURLY + "    dataset: {name: corpus, rate: 10 MB/s}\n"
NO_SIZE = "the size of the dataset is not stated"
SAID: dict[str, tuple[str, list[str]]] = {
    **{case: (text, []) for case, text in KINDS.items()},
    "images": (IMAGES, [IDLE]),
    "run": (HOURLY, [NO_PRICE]),
    "run over nodes": (SPAN, [NO_PRICE]),
    "pools": (POOLS, []),
    "drafts": (DRAFTS, [UNTOLD]),
    "drafts of one's own program": (DRAFTS + "    command: [serve]\n", []),
    "drafts that are named": (DRAFTS.replace("{acc", "{method: ngram, acc"), []),
    "a dataset of unknown size": (READS, [NO_PRICE, NO_SIZE]),
    "a dataset of known size": (READS.replace("rate", "size: 1 GB, rate"), [NO_PRICE]),
    "adapters over nodes": (
        SPAN.replace("tokens: 1e9", "tokens: 1e9, lora: 8"),
        [NO_PRICE],
    ),
}
# And where the bandwidth of the storage is not stated.
ASKED = ("run over nodes", "a dataset of unknown size", "a dataset of known size")


@pytest.mark.parametrize("case", SAID)
def test_no_more_is_said_than_a_person_should_know(case: str) -> None:
    text, expected = SAID[case]
    answer = sized(text, where())
    assert sorted(d.message for d in answer.diagnostics) == sorted(expected)
    without = [d.message for d in sized(text, where(stored=False)).diagnostics]
    more = [NO_RATE] if case in ASKED else []
    assert sorted(without) == sorted([*expected, *more])


def test_what_has_a_price_is_not_called_unpriced_and_what_has_none_not_counted() -> None:
    price = Quantity(0.1, "USD/GB/month", "test")
    priced = replace(where(), storage_usd_per_gb_month=price)
    assert [d.message for d in sized(HOURLY, priced).diagnostics] == []
    free = sized(IMAGES, where(usd_per_gpu_hour=None))
    assert [d.message for d in free.diagnostics] == ["'work' is idle 10 h a day: nothing scales it"]


def test_caches_that_go_over_the_fabric_are_held_against_it() -> None:
    """Of each GPU that takes prompts; the cards of a node carry what its GPUs have of the fabric,
    or what an inventory says."""
    answer = sized(POOLS, where())
    known, work = figures(answer), answer.workload
    rows = {row.resource: row for row in work.balance}
    assert work.disaggregation is not None
    prompts = known["sized_rate"] / work.disaggregation.prefill_replicas
    sent = prompts * work.disaggregation.prompt_cache_bytes
    assert rows["fabric"].need == pytest.approx(sent)
    assert rows["fabric"].supply == 50e9
    assert (rows["fabric"].of, rows["fabric"].remedy) == ("each GPU that takes prompts", CARDS)
    nodes = -(-work.gpu_count // 8)
    assert rows["network"].supply == 8 * 50e9 * nodes
    assert rows["network"].remedy == CARDS
    cards = sized(POOLS, where(cards_bytes_per_s=100e9)).workload
    (row,) = (r for r in cards.balance if r.resource == "network")
    assert row.supply == 100e9 * nodes
    chat = sized(CHAT_8B, where(cards_bytes_per_s=100e9)).workload
    (row,) = (r for r in chat.balance if r.resource == "network")
    assert (row.supply, row.remedy) == (100e9, CARDS)
    assert "fabric" not in {r.resource for r in chat.balance}


def test_racks_and_whole_servers_are_counted_where_they_are_stated() -> None:
    """Two servers of 10.2 kW in a rack of 30 kW; boards of 8 GPUs draw 5.6 kW."""

    def power(text: str, **changes: float) -> ResourceUse:
        given = {name: Quantity(value, "W", "test") for name, value in changes.items()}
        work = sized(text, where(**given)).workload
        (row,) = (r for r in work.balance if r.resource == "power")
        return row

    two = SPAN
    four = SPAN.replace("16}", "32}")
    row = power(two, node_watts=10.2e3)
    assert (row.of, row.need, row.supply) == ("2 nodes, whole", 20.4e3, None)
    row = power(two, node_watts=10.2e3, rack_watts=30e3)
    assert (row.of, row.need, row.supply) == ("a rack with 2 of 2 nodes, whole", 20.4e3, 30e3)
    assert row.remedy == "fewer nodes in each rack"
    row = power(four, node_watts=10.2e3, rack_watts=30e3)
    assert (row.of, row.need) == ("a rack with 2 of 4 nodes, whole", 20.4e3)
    row = power(four, rack_watts=11.1e3)
    assert (row.of, row.need) == ("a rack with 1 of 4 nodes, GPU boards alone", 5600.0)
    assert row.remedy == "one more rack"
    row = power(four, rack_watts=11.2e3)
    assert row.of == "a rack with 2 of 4 nodes, GPU boards alone"
    row = power(HOURLY, rack_watts=50e3)
    assert (row.of, row.need) == ("a rack with 1 of 1 node, GPU boards alone", 5600.0)


@pytest.mark.parametrize("case", [c for c in KINDS if "run" in c or "learning" in c])
def test_a_run_has_the_price_of_its_hours_and_without_one_none(case: str) -> None:
    answer = sized(KINDS[case], where())
    known = figures(answer)
    hours = known["time_to_finish"] / 3600
    assert known["usd_per_run"] == pytest.approx(known["usd_per_hour"] * hours)
    assert answer.workload.usd_per_run is not None
    assert float(answer.workload.usd_per_run) == pytest.approx(known["usd_per_run"], rel=1e-4)
    free = sized(KINDS[case], where(usd_per_gpu_hour=None))
    assert free.workload.usd_per_run is None
    assert not {"usd_per_run", "usd_per_hour"} & set(figures(free))
