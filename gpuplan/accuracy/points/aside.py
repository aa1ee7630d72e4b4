"""Pages of a source that contradict each other, runs that drafted tokens, or may have, where a
table does not say so, and runs with settings that no plan writes: set aside, as points of
confidence C are. Each for a reason that can be read at the source, whatever is predicted;
docs/accuracy.md also shows what is left with them.
"""

from __future__ import annotations

from collections.abc import Mapping

# The page, as `source_repo` and `source_path` name it, and what is wrong with it.
ASIDE = {
    (
        "sgl-project/sgl-cookbook",
        "docs/autoregressive/Moonshotai/Kimi-K2.5.md",
    ): "the page of Kimi-K2.6 prints the same figures to the digit, on H200 as measured with K2.5 "
    "but under SGLang 0.5.9 where this page says 0.5.6.post2, and on MI350X as K2.6's own: "
    "which release, and which model, was measured is not known (commit 7b5bd9c05e3d, read "
    "2026-11-27)",
}

RunValues = Mapping[str, tuple[str, ...]]  # values of columns that tell it
Runs = tuple[tuple[RunValues, str], ...]

# InferenceX's runs in a table of aiconfigurator, which has no column for multi-token prediction:
# the values that tell runs, and what every version of SemiAnalysisAI/InferenceX,
# .github/configs/nvidia-master.yaml, says of them (2025-10-27 to 2026-07-14, read 2026-11-28). Runs
# of which it has lines with and without, and the table one value for each setting, are kept: which
# it was is not said.
TABLE = "aic-core/src/aiconfigurator_core/systems/silicon_sample.csv"
DRAFTED: Runs = (
    (
        {"engine": ("trtllm 1.2.0rc6.post3",), "model": ("deepseek-r1",)},
        (
            "every line of this release says `spec-decoding: mtp`; without, 1.2.0rc6.post2 was run "
            "(#1488, #1489)"
        ),
    ),
    (
        {
            "engine": ("sglang 0.5.9",),
            "model": ("qwen3.5-397b-a17b",),
            "precision": ("fp8",),
            "gpu": ("B200-SXM-180GB", "B300-SXM-270GB"),
            "tp": ("4",),
            "ep": ("1",),
        },
        (
            "with this release and layout every line says `spec-decoding: mtp` (B300 has no lines "
            "of its own; its runs are those of B200's lines, and 4 GPUs take 5.3 ms there where 8 "
            "take 7.9)"
        ),
    ),
    (
        {
            "engine": ("sglang 0.5.9",),
            "model": ("deepseek-r1", "deepseek-v3"),
            "precision": ("fp8",),
            "gpu": ("B200-SXM-180GB",),
            "tp": ("8",),
            "ep": ("1",),
        },
        (
            "of long prompts beyond 4 requests and of others beyond 64 every line says "
            "`spec-decoding: mtp`; elsewhere there are lines with and without, and the table has "
            "two values for a setting, not which is which"
        ),
    ),
    (
        {
            "engine": ("trtllm 1.1.0rc2.post2",),
            "model": ("deepseek-r1",),
            "precision": ("fp8",),
            "gpu": ("H200-SXM-141GB",),
            "tp": ("8",),
            "ep": ("8",),
        },
        (
            "there are lines with `spec-decoding: mtp` and without, and the table has two values "
            "for a setting, not which is which"
        ),
    ),
)

# Runs whose source says with which settings, one of which is in no plan: the values that tell runs.
UNPLANNED: Runs = (
    (
        {
            "source_repo": ("cloudrift-ai/deplodock",),
            "engine": ("sglang 0.5.9",),
            "model": ("kimi-k2.5",),
            "precision": ("nvfp4",),
        },
        (
            "`--quantization modelopt` (experiments/Kimi-K2.5-NVFP4/baseline_sglang/recipe.yaml "
            "and optimal_mcr_b200_sglang/recipe.yaml at 9da9d0401774), for which SGLang leaves "
            "experts to kernels of CUTLASS; a plan writes `modelopt_fp4`, for which FlashInfer's "
            "run (catalog/data/engines/sglang.yaml; read 2026-11-28)"
        ),
    ),
)


def aside(row: Mapping[str, str]) -> bool:
    """Whether a row is of such a page, or of such a run."""
    path = row.get("source_path", "")
    if (row.get("source_repo", ""), path) in ASIDE:
        return True
    runs = UNPLANNED + (DRAFTED if path == TABLE else ())
    return any(is_of(row, run) for run, _ in runs)


def is_of(row: Mapping[str, str], run: RunValues) -> bool:
    return all(row.get(column) in values for column, values in run.items())
