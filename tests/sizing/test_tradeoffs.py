"""The layouts that nothing beats, beside the chosen one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.cli.main import main
from gpuplan.plan.model import Tradeoff
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.candidates.tradeoffs import front
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import partitions
from gpuplan.sizing.hardware.offers import Site
from tests.support.plans import read_plan
from tests.support.sizing_cases import (
    BATCH,
    CHAT_8B,
    CHAT_70B,
    DEEPSEEK,
    FULL_8B,
    offer,
    site,
    size,
    wanted,
    work,
)

ROOT = Path(__file__).parents[2]
numbers = st.integers(0, 4).map(float)


def beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


@settings(max_examples=200)
@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=12))
def test_the_front_is_what_nothing_beats(points: list[tuple[float, ...]]) -> None:
    kept = [point for point, _ in front((p, None) for p in points)]
    assert kept == sorted({p for p in points if not any(beats(q, p) for q in points)})


def point(item: Tradeoff) -> tuple[float, ...]:
    assert item.usd_per_hour is not None
    return float(item.usd_per_hour), item.request_latency, -item.headroom


@pytest.mark.parametrize("case", [CHAT_70B, CHAT_8B, DEEPSEEK])
def test_tradeoffs_do_not_beat_each_other_and_hold_the_chosen_one(case: str) -> None:
    found = work(case)
    (chosen,) = [t for t in found.tradeoffs if t.chosen]
    assert (chosen.gpu, chosen.gpu_count, chosen.replicas) == (
        found.gpu,
        found.gpu_count,
        found.replicas,
    )
    others = [point(t) for t in found.tradeoffs if not t.chosen]
    assert not any(beats(a, b) for a in others for b in others)
    assert all(t.headroom >= 1 for t in found.tradeoffs)
    prices = [t.usd_per_hour for t in found.tradeoffs if t.usd_per_hour is not None]
    assert prices == sorted(prices)
    assert chosen.usd_per_hour == prices[0], "the chosen one is the cheapest"
    counted = [(t.gpu_count, *point(t)) for t in found.tradeoffs]  # of one price the fewest
    assert not any(beats(other, (chosen.gpu_count, *point(chosen))) for other in counted)
    limit = next((m.limit for m in found.metrics if m.name == "request_latency"), None)
    assert limit is None or all(t.request_latency <= limit for t in found.tradeoffs)


@settings(max_examples=60)
@given(
    model=st.sampled_from(
        [
            "meta-llama/Llama-3.1-8B-Instruct",
            "meta-llama/Llama-3.3-70B-Instruct",
            "Qwen/Qwen3-30B-A3B",
        ]
    ),
    gpus=st.dictionaries(
        st.sampled_from(["l40s", "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb"]),
        st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(1, 3), st.booleans()),
        min_size=1,
    ),
    peak=st.sampled_from([0.2, 1.0, 3.0, 8.0, 20.0, 60.0]),
    tokens=st.sampled_from([(200, 100), (1200, 300), (6000, 800)]),
    limit=st.sampled_from(["", "time_per_output_token: 40 ms", "request_latency: 20 s"]),
)
def test_no_layout_that_is_shown_beats_the_chosen_one(
    model: str,
    gpus: dict[str, tuple[int, int, bool]],
    peak: float,
    tokens: tuple[int, int],
    limit: str,
) -> None:
    """Over manifests at random: price, GPUs, room and latency together, on nodes that are bought
    and on machines that are there, at prices that are often equal."""
    precision = "bf16" if set(gpus) & {"a100-sxm-80gb"} else "fp8"
    text = f"""
    task: inference
    model: {model}
    precision: {precision}
    load: {{requests_per_second: {peak}, input_tokens: {tokens[0]}, output_tokens: {tokens[1]}}}
    slo: {{{limit}}}
"""
    offers = tuple(
        offer(
            gpu,
            gpus_per_node=per_node,
            usd_per_gpu_hour=Quantity(float(price), "USD/h", "test"),
            node_count=20 if owned else None,
        )
        for gpu, (per_node, price, owned) in gpus.items()
    )
    answer = size(wanted(text), Site(target="kubernetes", gpus=offers))
    if not isinstance(answer, Sized):
        return
    (chosen,) = [t for t in answer.workload.tradeoffs if t.chosen]
    taken = [(t.gpu_count, *point(t)) for t in answer.workload.tradeoffs if not t.chosen]
    assert not any(beats(other, (chosen.gpu_count, *point(chosen))) for other in taken)


SERVICES = {
    "images": """
    model: {model}
    load: {{requests_per_second: {rate}, images: {{mean: 1024x1024{p95}, steps: 20}}}}
""",
    "videos": """
    model: {model}
    load: {{requests_per_second: {rate},
           videos: {{mean: 640x352{p95}, frames: 49, steps: 30, memory: 8 GiB}}}}
""",
    "texts": """
    model: {model}
    load: {{requests_per_second: {rate}, input_tokens: 400, texts: 4}}
""",
    "speech": """
    model: {model}
    load: {{requests_per_second: {rate}, audio: 40 s}}
""",
}
MODELS = {
    "images": ("black-forest-labs/FLUX.1-schnell", "stabilityai/stable-diffusion-xl-base-1.0"),
    "videos": ("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "Wan-AI/Wan2.1-T2V-14B-Diffusers"),
    "texts": ("BAAI/bge-m3",),
    "speech": ("openai/whisper-large-v3",),
}
RATES = {"images": (0.1, 1.0, 4.0), "videos": (0.01, 0.1), "texts": (20, 2000), "speech": (2, 40)}


@settings(max_examples=80)
@given(st.data())
def test_no_service_takes_a_layout_that_another_beats(data: st.DataObject) -> None:
    """The same of images, videos, texts and speech, with percentiles and on parts of GPUs."""
    kind = data.draw(st.sampled_from(sorted(SERVICES)))
    p95 = data.draw(st.sampled_from(["", ", p95: 1280x1280"])) if kind == "images" else ""
    text = "    task: inference\n" + SERVICES[kind].format(
        model=data.draw(st.sampled_from(MODELS[kind])),
        rate=data.draw(st.sampled_from(RATES[kind])),
        p95=p95,
    ).strip("\n")
    if kind in ("images", "videos"):
        limits = ["", "{mean: 9 min}", "{p50: 5 min, p95: 9 min}", "{p99: 20 min}"]
        if limit := data.draw(st.sampled_from(limits)):
            unit = "s" if kind == "images" else "min"
            text += f"\n    slo: {{request_latency: {limit.replace('min', unit)}}}"
    text += f"\n    tenancy: {{isolation: {data.draw(st.sampled_from(['gpu', 'shared']))}}}\n"
    names = ["l40s", "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb"]
    gpus = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    offers = tuple(
        offer(
            gpu,
            gpus_per_node=data.draw(st.sampled_from([1, 4, 8])),
            usd_per_gpu_hour=Quantity(float(data.draw(st.integers(1, 3))), "USD/h", "test"),
            node_count=data.draw(st.sampled_from([None, 20])),
        )
        for gpu in gpus
    )
    where = Site(target="kubernetes", gpus=offers)
    answer = size(wanted(text), where)
    if not isinstance(answer, Sized):
        return
    parts = {(o.gpu.identifier, d.partition): d for o in offers for d in partitions(o, where)}

    def taken(item: Tradeoff) -> tuple[float, ...]:
        """GPUs, a part as its share of one, and the point."""
        part = parts.get((item.gpu, item.partition))
        gpus = item.replicas / part.per_gpu if part else item.gpu_count
        return (gpus, *point(item))

    (chosen,) = [t for t in answer.workload.tradeoffs if t.chosen]
    others = [taken(t) for t in answer.workload.tradeoffs if not t.chosen]
    assert not any(beats(other, taken(chosen)) for other in others)


@pytest.mark.parametrize("kind", ["images", "videos"])
def test_a_service_that_no_text_shows_its_trade_offs(kind: str) -> None:
    """H100 are faster and dearer: what would be had for more is shown."""
    rate = RATES[kind][0]
    text = "    task: inference\n" + SERVICES[kind].format(
        model=MODELS[kind][0], rate=rate, p95=""
    ).strip("\n")
    usd = {"l40s": 1.0, "h100-sxm-80gb": 4.0}
    offers = tuple(
        offer(gpu, gpus_per_node=1, usd_per_gpu_hour=Quantity(price, "USD/h", "test"))
        for gpu, price in usd.items()
    )
    answer = size(wanted(text), Site(target="kubernetes", gpus=offers))
    assert isinstance(answer, Sized)
    shown = {t.gpu: t for t in answer.workload.tradeoffs}
    assert set(shown) == set(usd)
    slow, fast = shown["l40s"], shown["h100-sxm-80gb"]
    assert fast.request_latency < slow.request_latency
    assert [t.gpu for t in shown.values() if t.chosen] == [answer.workload.gpu]


def test_of_gpus_at_one_price_the_fewest_are_taken() -> None:
    """Six of eight A100 or ten of twelve L40S, $24 either way."""
    text = """
    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    precision: bf16
    load: {requests_per_second: 4, input_tokens: 6000, output_tokens: 800}
"""
    usd = {"a100-sxm-80gb": 3.0, "l40s": 2.0}
    offers = tuple(
        offer(gpu, gpus_per_node=4, usd_per_gpu_hour=Quantity(price, "USD/h", "test"))
        for gpu, price in usd.items()
    )
    answer = size(wanted(text), Site(target="kubernetes", gpus=offers))
    assert isinstance(answer, Sized)
    assert (answer.workload.gpu, answer.workload.gpu_count) == ("a100-sxm-80gb", 6)


def test_a_run_uses_the_gpus_that_are_paid_for_with_its_own() -> None:
    """Four of eight would do in a day; eight of the same node cost the same an hour, for half."""
    text = FULL_8B.replace("tokens: 1e9", "tokens: 5e8").replace("2 d", "1 d")
    bought = replace(site("h100-sxm-80gb", gpus_per_node=8), fabric=None)
    (seconds,) = [
        m.estimate.value for m in work(text, bought).metrics if m.name == "time_to_finish"
    ]
    assert work(text, bought).gpu_count == 8
    assert seconds < 86_400 / 4
    there = work(text, site("h100-sxm-80gb", gpus_per_node=8, node_count=1))
    assert there.gpu_count == 8, "a machine that is there is paid whole as well"


def test_the_chosen_latency_is_the_one_that_is_expected() -> None:
    text = CHAT_70B.replace("40 ms}", "40 ms, request_latency: 60 s}")
    found = work(text)
    (chosen,) = [t for t in found.tradeoffs if t.chosen]
    (metric,) = [m for m in found.metrics if m.name == "request_latency"]
    assert chosen.request_latency == pytest.approx(metric.estimate.value, rel=0.03)
    (rate,) = [m for m in found.metrics if m.name == "requests_per_second"]
    assert rate.limit is not None
    assert chosen.headroom == pytest.approx(rate.estimate.value / rate.limit, rel=0.01)


def test_where_nothing_has_a_price_gpus_are_what_it_costs() -> None:
    found = work(CHAT_8B, site("l40s", usd_per_gpu_hour=None, node_count=1)).tradeoffs
    assert found
    assert all(t.usd_per_hour is None for t in found)
    counts = [t.gpu_count for t in found]
    assert counts == sorted(counts)


def test_what_has_no_price_is_left_out_where_others_have_one() -> None:
    where = site("l40s")
    both = (*where.gpus, offer("h100-sxm-80gb", usd_per_gpu_hour=None))
    assert {
        t.gpu for t in work(CHAT_8B, type(where)(target="kubernetes", gpus=both)).tradeoffs
    } == {"l40s"}


def test_a_batch_has_none() -> None:
    assert work(BATCH).tradeoffs == ()


def test_explain_shows_them_with_the_chosen_one_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = ROOT / "examples" / "chat.yaml"
    assert main(["compile", str(manifest), "-o", str(tmp_path)]) == 0
    stack = tmp_path / "chat"
    (found,) = read_plan(stack).workloads
    assert len(found.tradeoffs) > 1
    capsys.readouterr()
    assert main(["explain", str(stack)]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(n for n, line in enumerate(lines) if "trade-offs" in line) + 1
    shown = lines[start : start + len(found.tradeoffs)]
    assert all("a request" in line and "× the peak" in line for line in shown)
    assert [line.startswith("  →") for line in shown] == [t.chosen for t in found.tradeoffs]
