"""Latency against cost over every layout and batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.sizing.kinds.serving.frontier import frontier
from gpuplan.sizing.kinds.serving.limit import fits
from gpuplan.sizing.kinds.serving.search import replicas
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, offer, site, wanted

ROOT = Path(__file__).parents[2]
TIGHT = CHAT_8B + "    slo: {time_per_output_token: 12 ms, time_to_first_token: 1 s}\n"


def test_every_point_is_that_of_its_replica_and_none_beats_another() -> None:
    demand, where = wanted(TIGHT), site("l40s", "h100-sxm-80gb")
    made = {(r.device.gpu.identifier, r.gpus): r for r in replicas(demand, where)}
    found = frontier(demand, where)
    assert found.tried == 512 * len(made)
    assert len(found.operations) < found.held < found.tried
    for item in found.operations[::7]:
        one = made[item.gpu, item.tensor_parallel_size]
        times = one.times(item.sequences)
        assert item.time_per_output_token == pytest.approx(times["time_per_output_token"])
        assert item.time_to_first_token == pytest.approx(times["time_to_first_token"])
        assert item.meets == fits(one, item.sequences)
        rate = one.device.offer.usd_per_gpu_hour
        assert rate is not None
        tokens = item.requests_per_second * 250 * 3600
        assert item.usd_per_million_tokens == pytest.approx(rate.value * one.gpus / tokens * 1e6)
    times_ = [o.time_per_output_token for o in found.operations]
    costs = [o.usd_per_million_tokens or 0.0 for o in found.operations]
    assert times_ == sorted(times_)
    assert costs == sorted(costs, reverse=True)
    assert {o.meets for o in found.operations} == {True, False}


def test_no_layout_that_fits_is_cheaper_at_the_same_speed() -> None:
    """Against each replica alone, at some batches."""
    demand, where = wanted(CHAT_8B), site("a10", "l40s")
    curve = [
        (o.time_per_output_token, o.usd_per_million_tokens or 0.0)
        for o in frontier(demand, where).operations
    ]
    for one in replicas(demand, where):
        for batch in (1, 9, 60, 200):
            needs = one.needs(batch)
            if needs["used_bytes"] > needs["usable_bytes"] or needs["running"] > 512:
                continue
            times, rate = one.times(batch), one.device.offer.usd_per_gpu_hour
            assert rate is not None
            usd = rate.value * one.gpus / (times["replica_rate"] * 250 * 3600) * 1e6
            token = times["time_per_output_token"] * (1 + 1e-8)
            assert any(t <= token and c <= usd * (1 + 1e-8) for t, c in curve)


def test_without_prices_it_is_gpu_time_that_counts() -> None:
    found = frontier(wanted(CHAT_8B), site("l40s", usd_per_gpu_hour=None)).operations
    assert found
    assert all(o.usd_per_million_tokens is None for o in found)
    rates = [o.tokens_per_second_per_gpu for o in found]
    assert rates == sorted(rates)


def test_where_nothing_can_be_built_there_is_no_curve() -> None:
    demand = wanted(CHAT_70B + "    overrides: {kv_cache_dtype: fp8}\n")
    found = frontier(demand, site("a100-sxm-80gb"))
    assert (found.tried, found.operations) == (0, ())
    assert offer("a100-sxm-80gb").gpu.peak_fp8 is None


def test_the_verb_prints_a_curve(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = str(ROOT / "examples" / "assistant-70b.yaml")
    assert main(["capacity", manifest, "--frontier"]) == 0
    printed = capsys.readouterr().out
    assert "tokens/s a GPU" in printed
    assert "/M tokens" in printed
    assert main(["capacity", manifest, "--frontier", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["workloads"]
    operations = answer["frontier"]["operations"]
    assert len(operations) > 16
    shown = [line for line in printed.splitlines() if line.endswith(("met", "missed"))]
    assert 2 < len(shown) <= 17
    assert main(["capacity", str(ROOT / "examples" / "images.yaml"), "--frontier"]) == 2
