"""Manifests of services, drawn by number: models, lengths, rates, objectives, bursts, GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from gpuplan.errors import Rejected
from gpuplan.models.load import bundled, bundled_names
from gpuplan.models.model import Transformer
from gpuplan.plan.times import PLAIN, STATISTICS
from gpuplan.replay.numbers import uniform
from gpuplan.sizing.candidates.sized import Sized
from tests.support.sizing_cases import PRICES, site, size, wanted

T = TypeVar("T")
CHAT = ("Instruct", "chat", "Chat", "-it", "gpt-oss", "Qwen3", "DeepSeek-V3")
MODELS = [
    name
    for name in bundled_names()
    if isinstance(bundled(name), Transformer) and any(part in name for part in CHAT)
]
GPUS = list(PRICES)


LOOSE = "1000 s"  # met by all


def drawn(number: int, *, every_statistic: bool = False) -> tuple[str, str]:
    """A workload as in `sizing_cases`, and the GPU that it may have; with `every_statistic` beside
    its objectives loose ones for all others."""

    def part(stream: int) -> float:
        return uniform(7, stream, number)

    def chosen(stream: int, items: Sequence[T]) -> T:
        return items[int(part(stream) * len(items))]

    prompt, answer = int(50 * 2 ** (part(1) * 8)), int(20 * 2 ** (part(2) * 6))
    answer = 1 + int(12 * part(17)) if part(16) < 0.2 else answer
    prompt_p95, answer_p95 = int(prompt * (1 + part(3) * 2.5)), int(answer * (1 + part(4) * 2))
    load = f"requests_per_second: {0.1 * 10 ** (part(5) * 2.7):.3g}"
    load += f", input_tokens: {{mean: {prompt}, p95: {prompt_p95}}}"
    load += f", output_tokens: {{mean: {answer}, p95: {answer_p95}}}"
    load += f", burst: {1.5 + 2 * part(12):.2f}" if part(13) < 0.15 else ""
    load += f", prefix_cache: {part(14) * 0.9:.2f}" if part(15) < 0.15 else ""
    limits = {}
    if part(6) < 0.6 and answer > 1:
        limits["time_per_output_token"] = f"{int(20 + part(7) * 100)} ms"
    if part(8) < 0.5:
        limits["time_to_first_token"] = f"{int(300 * 10 ** (part(9) * 1.2))} ms"
    if part(10) < 0.2:
        limits["request_latency"] = f"{int((2 + answer * 0.04) * (1 + 2 * part(11)))} s"
    slo = [f"{time}: {limit}" for time, limit in limits.items()]
    if every_statistic:
        slo = [f"{time}: {_every(time, limits.get(time, LOOSE))}" for time in PLAIN]
    text = f"    task: inference\n    model: {chosen(0, MODELS)}\n    load: {{{load}}}\n"
    if slo:
        text += f"    slo: {{{', '.join(slo)}}}\n"
    return text, chosen(20, GPUS)


def _every(time: str, plain: str) -> str:
    stated = (f"{s}: {plain if s == PLAIN[time] else LOOSE}" for s in STATISTICS)
    return f"{{{', '.join(stated)}}}"


def sized_service(
    number: int, engine: str = "vllm", *, every_statistic: bool = False, over_nodes: bool = False
) -> Sized | None:
    """None where the model takes no such prompts, or nothing meets the objectives. Replicas may lie
    `over_nodes`; else nothing joins these."""
    text, gpu = drawn(number, every_statistic=every_statistic)
    where = site(gpu) if over_nodes else replace(site(gpu), fabric=None)
    try:
        answer = size(wanted(f"{text}    engine: {engine}\n"), where)
    except Rejected:
        return None
    return answer if isinstance(answer, Sized) else None
