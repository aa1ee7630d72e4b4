"""Numbers of a plan, computed by hand: hosts, volumes, price, and what a start and a run move."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpuplan.plan.model import Fabric
from gpuplan.sizing.candidates.choose import best
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.units import GB, GIB
from tests.support.sizing_cases import (
    BATCH,
    CHAT_8B,
    FULL_8B,
    IMAGE_BATCH,
    LORA_70B,
    NOTEBOOKS,
    site,
    size,
    sized,
    wanted,
)

ALPACA = "dataset: {name: tatsu-lab/alpaca, tokens: 5e7, size: 1 GB}"
LLAMA_8B_BYTES = 2 * 8_030_261_248
LLAMA_70B_BYTES = 141_107_412_992  # 70,553,706,496 parameters in bf16


def numbers(answer: Sized) -> dict[str, float]:
    return {e.quantity.removeprefix("work."): e.value for e in answer.evidence}


def room(size_bytes: float) -> int:
    """A tenth more, in whole gibibytes."""
    return -int(-1.1 * size_bytes // GIB) * GIB


@pytest.mark.parametrize(
    ("node", "each"),
    [
        # 6 cores are wanted, and as much memory as the GPU has; 16 GiB may be shared
        ((192, 2048, 2), (6, 80, 16)),
        ((None, None, None), (6, 80, 16)),
        # (32 - 2 × 2) / 8 = 3.5 cores; 0.9 × 256 / 8 = 28.8 GiB, of which a quarter is shared
        ((32, 256, 2), (3, 28, 7)),
        # (48 - 2) / 8 = 5.75 where no NUMA node is named; 0.9 × 512 / 8 = 57.6
        ((48, 512, None), (5, 57, 14)),
        ((52, 512, 2), (6, 57, 14)),
        ((51, 512, 2), (5, 57, 14)),
        # one core at least; 16 GB at least, which take 15 GiB
        ((9, 100, 1), (1, 15, 3)),
    ],
)
def test_a_gpu_has_its_part_of_the_node(
    node: tuple[int | None, ...], each: tuple[int, ...]
) -> None:
    """Cores, GiB and NUMA nodes of a node with 8 GPUs; cores, GiB and shared GiB of one."""
    cores, memory_gib, numa_nodes = node
    where = site(
        "h100-sxm-80gb",
        cpu_cores_per_node=cores,
        memory_bytes_per_node=None if memory_gib is None else memory_gib * GIB,
        numa_nodes=numa_nodes,
    )
    got = numbers(sized(CHAT_8B, where))
    assert got["cpu_cores_per_gpu"] == got["cpu_cores"] == each[0]
    assert got["host_memory_per_gpu"] == got["host_memory_bytes"] == each[1] * GIB
    assert got["shared_memory_bytes"] == each[2] * GIB
    assert got["scratch_bytes"] == 50 * GIB


def test_a_gpu_of_little_memory_has_a_usual_host() -> None:
    """32 GB take 30 GiB, where the GPU has 24 GB."""
    text = CHAT_8B + "    overrides: {tensor_parallel_size: 2}\n"
    where = site("l4", cpu_cores_per_node=None, memory_bytes_per_node=None, gpus_per_node=4)
    answer = sized(text, where)
    got = numbers(answer)
    assert answer.workload.gpus_per_node == 2
    assert (got["host_memory_per_gpu"], got["host_memory_bytes"]) == (30 * GIB, 2 * 30 * GIB)
    assert (got["cpu_cores_per_gpu"], got["cpu_cores"]) == (6, 12)


def test_nodes_are_paid_whole_and_power_is_that_of_the_gpus() -> None:
    each_on_two = "    overrides: {replicas: 3, tensor_parallel_size: 2}\n"
    got = numbers(sized(CHAT_8B + each_on_two, site("l4")))
    assert (got["gpu_count"], got["taken_gpus"]) == (6, 6)
    assert got["paid_gpus"] == 8  # two nodes of four
    assert got["usd_per_hour"] == pytest.approx(8 * 0.8)
    assert got["watts"] == 6 * 72
    assert got["mean_load"] == pytest.approx(2 / got["requests_per_second"])


def test_notebooks_share_gpus_and_their_hosts() -> None:
    """Ten notebooks on sevenths of A100s of 80 GiB in nodes of 8."""
    answer = sized(NOTEBOOKS, site("a100-sxm-80gb"))
    got = numbers(answer)
    assert answer.workload.partition == "1g.10gb"
    assert (got["replicas"], got["gpu_count"], got["paid_gpus"]) == (10, 2, 8)
    assert got["usd_per_hour"] == pytest.approx(8 * 3.4)
    assert got["watts"] == pytest.approx(10 / 7 * 400)
    assert got["cpu_cores_per_gpu"] == 1
    assert got["host_memory_per_gpu"] == 12 * GIB  # 80 / 7 = 11.4
    assert got["shared_memory_bytes"] == 3 * GIB
    (home,) = answer.workload.volumes
    assert (home.name, home.size_bytes, home.per_replica) == ("home", 50 * GIB, True)
    assert not home.shared  # nobody else's notebook mounts it


def test_the_volumes_of_adapters_hold_downloads_checkpoints_and_what_is_made_of_the_dataset() -> (
    None
):
    answer = sized(LORA_70B, site("h200-sxm-141gb"))
    got = numbers(answer)
    assert got["run_tokens"] == 2 * 5e7
    assert got["steps"] == 382  # 1e8 / (64 × 4,096) = 381.5
    assert got["epochs_seen"] == pytest.approx(382 * 64 * 4096 / 5e7)
    assert got["download_bytes"] == LLAMA_70B_BYTES + GB
    checkpoint = 207_093_760 * (2 + 12)  # bf16, and fp32 states
    assert got["checkpoint_bytes"] == checkpoint
    assert got["checkpoints_kept_bytes"] == 3 * checkpoint
    # text twice its Parquet; tokens of 13 bytes, and packed ones of 21 twice
    assert got["dataset_kept_bytes"] == GB + 2 * GB + 5e7 * (13 + 21 + 21)
    assert {v.name: v.size_bytes for v in answer.workload.volumes} == {
        "models": room(LLAMA_70B_BYTES + GB),
        "checkpoints": room(3 * checkpoint),
        "dataset": room(5.75 * GB),
    }
    # a hundredth of the hour between checkpoints may go by
    assert got["needs.checkpoint_bytes_per_s"] == pytest.approx(checkpoint / 36)


def test_a_dataset_without_a_count_has_a_token_for_each_four_bytes_of_text() -> None:
    text = FULL_8B + "    dataset: {name: corpus, size: 1 GB}\n"
    got = numbers(sized(text, site("h100-sxm-80gb")))
    assert got["dataset_tokens"] == 2 * GB / 4
    assert got["dataset_kept_bytes"] == GB + 2 * GB + 5e8 * 55


def test_a_full_run_sends_and_keeps_what_its_sheet_says() -> None:
    answer = sized(FULL_8B, site("h100-sxm-80gb"))
    got = numbers(answer)
    assert got["steps"] == 1908  # 1e9 / (128 × 4,096) = 1,907.3
    checkpoint = 8_030_261_248 * (2 + 12)
    assert got["checkpoint_bytes"] == checkpoint
    assert got["checkpoint_storage_bytes"] == room(3 * checkpoint)
    assert got["model_storage_bytes"] == room(LLAMA_8B_BYTES)
    assert got["needs.data_bytes_per_s"] == pytest.approx(21 * got["tokens_per_second"])
    assert got["tokens_per_second"] == pytest.approx(128 * 4096 / got["step_seconds"])
    assert got["time_to_finish"] == pytest.approx(1908 * got["step_seconds"])
    assert got["usd_per_run"] == pytest.approx(got["usd_per_hour"] * got["time_to_finish"] / 3600)


@pytest.mark.parametrize("shared", [True, False])
def test_a_run_pays_for_the_storage_of_its_checkpoints_while_it_lasts(shared: bool) -> None:
    """By the decimal gigabyte and the month of 730 hours; of a volume for all nodes or one each."""
    price = Quantity(0.08, "USD/GB/month", "test")
    text = FULL_8B + "    overrides: {gpu_count: 16}\n"
    where = replace(site("h100-sxm-80gb"), storage_usd_per_gb_month=price, storage_shared=shared)
    answer = sized(text, where)
    got = numbers(answer)
    (volume,) = (v for v in answer.workload.volumes if v.purpose == "checkpoints")
    assert volume.shared == shared
    stored = got["checkpoint_storage_bytes"] / 1e9 * (1 if shared else 2)
    paid = stored * 0.08 * got["time_to_finish"] / (730 * 3600)
    assert got["usd_of_checkpoints"] == pytest.approx(paid)
    work = got["usd_per_hour"] * got["time_to_finish"] / 3600
    assert got["usd_per_run"] == pytest.approx(work + paid)


@pytest.mark.parametrize(
    ("text", "gpu"), [(FULL_8B, "h100-sxm-80gb"), (BATCH, "h200-sxm-141gb"), (IMAGE_BATCH, "l40s")]
)
def test_runs_are_ranked_by_what_they_cost_as_a_whole(text: str, gpu: str) -> None:
    """In dollars, with a time limit or without, on whole nodes."""
    for limited in (True, False):
        asked = wanted(text if limited else re.sub(" *slo: .*", "", text))
        ((_, group),) = tried(asked, site(gpu))
        winner = best(group)
        assert winner is not None
        answer = size(asked, site(gpu))
        assert isinstance(answer, Sized)
        got = numbers(answer)
        hours = got["time_to_finish"] / 3600
        assert winner.rank()[1] == pytest.approx(got["usd_per_hour"] * hours)
        costs = [c.rank()[1] for c in group if c.feasible]
        assert winner.rank()[1] == min(costs)


def test_a_start_reads_the_image_and_the_weights_and_sends_them_to_the_gpu() -> None:
    where = replace(site("h100-sxm-80gb"), storage_bytes_per_s=Quantity(2e9, "B/s", "test"))
    got = numbers(sized(CHAT_8B, where))
    start = 12.64e9 + LLAMA_8B_BYTES
    assert got["needs.start_bytes"] == start
    assert got["needs.host_to_gpu_seconds"] == pytest.approx(LLAMA_8B_BYTES / 64e9)
    assert got["load_seconds"] == pytest.approx(LLAMA_8B_BYTES / 2e9)
    assert got["needs.cold_start_seconds"] == pytest.approx(start / 2e9 + LLAMA_8B_BYTES / 64e9)
    # 4 bytes of text a token in, an event of 256 bytes for each token out
    sent = got["requests_per_second"] * (800 * 4 + 250 * 256)
    assert got["needs.request_bytes_per_s"] == pytest.approx(sent)


def test_a_run_over_nodes_sends_its_exchange_once_a_step() -> None:
    text = FULL_8B + "    overrides: {gpu_count: 16}\n"
    where = replace(
        site("h100-sxm-80gb"),
        fabric=Fabric(kind="infiniband", bytes_per_s_per_gpu=50e9, resource=None),
        storage_bytes_per_s=Quantity(1e9, "B/s", "test"),
    )
    got = numbers(sized(text, where))
    assert got["needs.network_bytes_per_s"] == pytest.approx(
        got["exchange_bytes"] / got["step_seconds"]
    )
    assert got["balance.dataset"] == pytest.approx(got["needs.data_bytes_per_s"] / 2e9)


def test_the_longest_sequence_is_twice_the_95th_percentiles_in_whole_blocks() -> None:
    """2 × 1,050 tokens are 2,100, of three blocks of 1,024; or what the model's context allows."""

    def longest(text: str) -> int:
        serving = sized(text).workload.serving
        assert serving is not None
        return serving.max_model_len

    assert longest(CHAT_8B) == 3 * 1024
    assert longest(CHAT_8B.replace("800", "774")) == 2 * 1024
    assert longest(CHAT_8B.replace("800", "{mean: 800, p95: 100000}")) == 131_072
