"""What tables of memory call precisions, libraries, frameworks and methods."""

from __future__ import annotations

import re

from gpuplan.accuracy.points.points import Case

# In this order: the first that the text holds.
_FORMS = (
    (("nf4-dq", "fp4-dq"), "nf4-dq"),
    (("nvfp4",), "nvfp4"),
    (("mxfp4",), "mxfp4"),
    (("gptq-int4", "int4 (gptq)", "int4 (auto_gptq)", "gptq.int4"), "gptq-int4"),
    (("gptq-int8", "int8 (gptq)", "int8 (auto_gptq)", "gptq.int8"), "gptq-int8"),
    (("nf4", "fp4"), "nf4"),
    (("awq",), "awq"),
    (("fp8",), "fp8"),
    (("int8",), "int8"),
    (("int4",), "int4"),
    (("fp32", "32-true", "float32"), "fp32"),
)
# Releases of transformers from which `generate` allocates otherwise.
_RELEASES = ((45, "transformers 4.38"), (50, "transformers 4.46"), (1000, "transformers 4.51"))
_FRAMEWORKS = (
    ("swift", "swift"),
    ("litgpt", "litgpt"),
    ("torchtune", "torchtune"),
    ("torchtitan", "torchtitan"),
)
# Their code of that time had no FlashAttention or SDPA, whatever was asked for.
_SCORES_STORED = ("chatglm", "baichuan2-13b", "baichuan-13b", "zephyr", "mistral", "mixtral")
_ADAPTERS = ("lora", "dora", "ia3", "boft", "vera", "pissa", "reft")
# torchtune's table adds one of them after the other.
_ADDED = ("compile", "chunked", "checkpoint", "fuse", "offload", "8bit")


def form(text: str) -> str:
    """A name of `memory_body.BITS`; bf16 where nothing else is said."""
    low = text.lower().replace("8-bit", "8bit")
    return next((name for words, name in _FORMS if any(w in low for w in words)), "bf16")


def library(engine: str) -> str | None:
    """Whose `generate` it is: a key of `data.memory.GENERATE`."""
    release = re.search(r"transformers (\d+)\.(\d+)", engine)
    if release:
        minor = int(release[2]) + (100 if int(release[1]) > 4 else 0)
        return next(name for below, name in _RELEASES if minor < below)
    if "litgpt" in engine:
        return "litgpt"
    if "transformers" in engine:
        return "nvidia-smi 2023" if "SDPA" in engine else "transformers 2023"
    return None


def framework(engine: str) -> str | None:
    """A key of `data.memory.FINETUNE`."""
    if engine.startswith("HF Trainer"):
        return "trainer"
    return next((name for word, name in _FRAMEWORKS if word in engine), None)


def gibibytes(case: Case) -> bool:
    """Whether the row's unit means 2^30. Tables of Qwen print bytes / 1024^3 as GB."""
    if "GiB" in case.row["unit"]:
        return True
    engine = case.row["engine"]
    return engine.startswith("HF Trainer") or "torch 2.0.1" in engine


def method(text: str) -> str:
    low = text.lower()
    for name in ("adapter_v2", "adapter"):
        if name in low:
            return name
    return "lora" if any(name in low for name in _ADAPTERS) else "full"


def rank(text: str, default: float) -> float:
    match = re.search(r"(?:rank=|\br)(\d+)", text.lower())
    return float(match[1]) if match else default


def targets(text: str, where: str) -> str:
    """Which layers have adapters; each framework has its own default."""
    low = text.lower()
    if where == "trainer" or "targets=all" in low or low.endswith(" all"):
        return "all"
    return "attention" if where == "swift" else "qv"


def embeddings_trained(text: str) -> bool:
    """Qwen's fine-tuning of a base model trains them in full beside the adapters."""
    return "emb" in text.lower() and "targets=" not in text.lower()


def stores_scores(case: Case) -> bool:
    if "no-FA" in case.row["engine"]:
        return True
    return any(name in case.row["model"].lower() for name in _SCORES_STORED)


def number(case: Case, column: str, default: float = 0.0) -> float:
    """A column's number, or `default` where a word stands there ("alpaca")."""
    try:
        return case.number(column, default)
    except ValueError:
        return default


def tune_options(case: Case) -> frozenset[str]:
    """What torchtune's recipes switch on: its table adds options, its configurations for a card of
    24 GB take all that save memory."""
    text = case.row["method"].lower().replace("8-bit", "8bit")
    if "cpu" in text:
        return frozenset(("cpu", "fused", "chunked"))
    if "+" in text or "baseline" in text:
        last = max((n for n, word in enumerate(_ADDED) if word in text), default=-1)
        names = ((1, "chunked"), (3, "fused"), (4, "offloaded"), (5, "8bit"))
        options = {name for needed, name in names if last >= needed}
        return frozenset(options if last >= 0 else {"eager"})
    options = {"reserved"} if "reserved" in case.row["notes"] or text.startswith("init") else set()
    if number(case, "seq_len"):
        options.add("chunked")
        if method(text) == "full" and case.number("n_gpus", 1) == 1:
            options |= {"fused", "paged"}  # configurations *_full_single_device
        if "ao)" in text or "4090" in case.row["gpu"]:
            options.add("offloaded")
    return frozenset(options)


def tune_recomputes(case: Case) -> bool:
    """On a larger card torchtune's single-device configurations keep every activation."""
    if case.row["recompute"] != "full":
        return False
    text = case.row["method"]
    chosen = "+" in text or "(" in text or "4090" in case.row["gpu"]
    return chosen or case.number("n_gpus", 1) > 1 or not number(case, "seq_len")


def sharding(text: str) -> str:
    """ZeRO-2 and ZeRO-3 in one word is plain data parallelism of adapters, or what a full run
    chose."""
    low = text.lower()
    if "fsdp" in low:
        return "fsdp"
    if low.startswith("zero3"):
        return "zero3"
    return "zero2" if "zero" in low else "none"
