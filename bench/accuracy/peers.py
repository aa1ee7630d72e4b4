"""llm-analysis on the public points that it can express, beside gpuplan.

    pip install llm-analysis
    python -m bench.accuracy.peers CSV... > docs/accuracy/peers.md

Dense language models alone: served in bf16 or fp8 by tensor parallelism, and trained in bf16. GPUs
that llm-analysis does not bundle are described to it by the catalogue. Of its two efficiencies, of
floating-point peak and of memory bandwidth, it is given the pair with the least median error on
these very points. gpuplan is scored on them by cross-validation.
"""

from __future__ import annotations

import logging
import statistics
import sys
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import DtypeConfig, GPUConfig, ModelConfig, ParallelismConfig

from gpuplan.accuracy.fit.validate import fields, without
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.show.score import score
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate

VERSION = "0.2.2"
METRICS = {
    "tpot": "time per output token, dense",
    "tokens_per_s_per_gpu": "training tokens/s, dense",
}
Efficiencies = tuple[float, float]


def analysis(case: Case, given: Efficiencies) -> LLMAnalysis:
    model, gpu = case.model, case.gpu
    assert isinstance(model, Transformer)
    bits = 8 if case.precision == "fp8" else 16
    link = gpu.nvlink_bytes_per_s or gpu.pcie_bytes_per_s
    low = gpu.peak_fp8 or gpu.peak_bf16
    return LLMAnalysis(
        ModelConfig(
            name=model.identifier,
            num_layers=model.layers,
            n_head=model.attention_heads,
            hidden_dim=model.hidden_size,
            vocab_size=model.vocabulary,
            num_key_value_heads=model.kv_heads,
            # It counts two matrices of an MLP: a gated one has half as much again.
            ffn_embed_dim=model.intermediate_size * 3 // 2
            if model.gated_mlp
            else model.intermediate_size,
            expansion_ratio=1,
            max_seq_len=10**7,
        ),
        GPUConfig(
            name=gpu.identifier,
            mem_per_GPU_in_GB=1e6,  # only times are compared
            hbm_bandwidth_in_GB_per_sec=gpu.memory_bytes_per_s.value / 1e9,
            intra_node_bandwidth_in_GB_per_sec=link.value / 1e9,
            intra_node_min_message_latency=8e-6,
            peak_fp16_TFLOPS=gpu.peak_bf16.value / 1e12,
            peak_i8_TFLOPS=low.value / 1e12,
        ),
        DtypeConfig(name="", weight_bits=bits, activation_bits=bits, embedding_bits=16),
        ParallelismConfig(tp_size=int(case.number("tp", 1))),
        flops_efficiency=given[0],
        hbm_memory_efficiency=given[1],
    )


def token_milliseconds(case: Case, given: Efficiencies) -> float:
    times = analysis(case, given).inference(
        batch_size_per_gpu=int(case.number("batch", 1)),
        seq_len=int(case.number("input_len")),
        num_tokens_to_generate=int(case.number("output_len")),
    )
    return 1e3 * float(times["decode_latency"])


def training_rate(case: Case, given: Efficiencies) -> float:
    times = analysis(case, given).training(
        batch_size_per_gpu=int(case.number("batch", 1)),
        gradient_accumulation_steps=1,
        seq_len=int(case.number("seq_len")),
        total_num_tokens=10**9,
        activation_recomputation=ActivationRecomputation.FULL
        if case.row["recompute"] == "full"
        else ActivationRecomputation.NONE,
        ds_zero=DSZeRO.NONE,
    )
    tokens = case.number("batch", 1) * case.number("seq_len")
    return tokens / float(times["latency_per_iter"])


PREDICTORS: dict[str, Callable[[Case, Efficiencies], float]] = {
    "tpot": token_milliseconds,
    "tokens_per_s_per_gpu": training_rate,
}


def expressed(case: Case) -> bool:
    model = case.model
    if not isinstance(model, Transformer) or model.experts or model.latent:
        return False
    if case.metric == "tpot":
        return case.precision in ("bf16", "fp8") and _plain(case, ("pp", "ep", "dp"))
    bf16 = case.row["precision"] in ("bf16", "amp_bf16") and case.row["method"] == "pretrain"
    return bf16 and _plain(case, ("tp", "pp", "ep", "cp")) and case.number("batch") > 0


def _plain(case: Case, columns: tuple[str, ...]) -> bool:
    return all(case.number(c, 1) == 1 for c in columns)


def guesses(cases: Iterable[Case], given: Efficiencies) -> list[float]:
    return [PREDICTORS[case.metric](case, given) for case in cases]


def main() -> None:
    logging.disable(logging.CRITICAL)
    points = read_points([Path(a) for a in sys.argv[1:]])
    wanted = [
        p
        for p in points
        if p.metric in PREDICTORS and p.confidence != "C" and isinstance(p.case, Case)
    ]
    anchors = fields(wanted, alone=True)
    pairs = [
        (p, e)
        for p, e in without(wanted, "group", anchors)
        if isinstance(e, Estimate) and isinstance(p.case, Case) and expressed(p.case)
    ]
    print(
        "llm-analysis 0.2.2 (PyPI), by `bench/accuracy/peers.py`: its two efficiencies are the "
        "best pair for these very points.\n"
    )
    print("| prediction | n | gpuplan MdAPE | P90 | llm-analysis MdAPE | P90 | its efficiencies |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for metric, name in METRICS.items():
        print(line(name, [(p, e) for p, e in pairs if p.metric == metric]))


def line(name: str, pairs: list[tuple[Point, Estimate]]) -> str:
    cases = [p.case for p, _ in pairs if isinstance(p.case, Case)]
    values = [p.value for p, _ in pairs]
    tried = []
    for given in product((0.3, 0.4, 0.5, 0.6, 0.7), (0.5, 0.6, 0.7, 0.8, 0.9)):
        errors = [abs(g / v - 1) for g, v in zip(guesses(cases, given), values, strict=True)]
        tried.append((statistics.median(errors), sorted(errors)[int(0.9 * len(errors))], given))
    median, ninety, given = min(tried)
    own = score(pairs, "", planned=True)
    return (
        f"| {name} | {len(pairs)} | {own.error:.1%} | {own.ninety:.1%} | {median:.1%} "
        f"| {ninety:.1%} | compute {given[0]}, bandwidth {given[1]} |"
    )


if __name__ == "__main__":
    main()
