"""Training points as runs: frameworks, parallelism, precisions and methods of rows.

What rows leave out is told by their source. Megatron-Bridge writes virtual stages into the notes.
MLPerf Training logs name neither precision nor, often, parallelism: `submissions` has both.
"""

from __future__ import annotations

import re
from functools import cache

from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.points.submissions import submission
from gpuplan.models.model import Transformer
from gpuplan.plan.model import record
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.physics.training.division import Division, Method, Recompute, Sharding
from gpuplan.sizing.physics.training.speed import MIDDLE

MLPERF = "mlperf"  # the framework of runs of MLPerf Training
TRAINER_STEPS = 8  # micro-batches of a step on each GPU in the HF Trainer's points
TRAINER_RANK = 64
TITAN = "torchtitan"
MXFP8 = 10.0  # the least compute capability for it (TransformerEngine, check_mxfp8_support)
SAMPLE = 256.0  # tokens of a packed sample of fine-tuning, of SQuAD's order
# NeMo 24.07's table of fine-tuning has no column for virtual stages; its own scripts state them:
# NVIDIA/NeMo-Framework-Launcher, examples/peft/llama/h100: 13b_1node.sh, 70b_2node.sh (26e42fa9).
INTERLEAVED = {
    ("NVIDIA/NeMo", "llama2-13b sft"): 10,
    ("NVIDIA/NeMo", "llama2-70b sft"): 20,
}
# The releases of Megatron-Bridge, in steps of about two months.
RELEASES = {"25.09": 0.0, "25.11": 1.0, "26.02": 2.0, "26.04": 3.0, "26.06": 4.0, "26.08": 4.5}


@record
class Setting:
    """A row as a run; `recipe` is what its framework calls the method. `power` and `eager` are
    those of `speed.Traits`; `attended` the part of a sequence that a sample fills, where several
    are packed."""

    framework: str
    recipe: str
    release: float
    micro: int
    length: int
    batch: float
    division: Division
    method: Method
    power: float = 1.0
    eager: bool = False
    attended: float = 1.0


def setting(case: Case) -> Setting | str:
    if not isinstance(case.model, Transformer):
        return "no language model"
    if case.number("seq_len") < 1:
        return "the sequence length is not given"
    name = framework(case)
    if name == MLPERF and case.number("global_batch") < 1:
        return "the global batch is not given"
    run = _mlperf(case) if name == MLPERF else _stated(case, name)
    if isinstance(run, Setting) and run.division.replicas < 1:
        return "the parallelism does not divide the GPUs"
    return run


def framework(case: Case) -> str:
    engine = case.row["engine"]
    if "MLPerf" in case.row["notes"]:
        return MLPERF
    known = (("HF", "trainer"), ("Megatron-Bridge", "megatron-bridge"), ("torchtune", "torchtune"))
    for start, name in known:
        if engine.startswith(start):
            return name
    return engine.split()[0].lower() if engine.split() else "bare"


def _stated(case: Case, name: str) -> Setting:
    gpus, micro = int(case.number("n_gpus", 1)), max(1, int(case.number("batch", 1)))
    tensor, pipeline, context, expert = (
        max(1, int(case.number(c, 1))) for c in ("tp", "pp", "cp", "ep")
    )
    division = Division(
        gpus,
        _sharding(case, gpus),
        _recompute(case),
        tensor=tensor,
        pipeline=pipeline,
        virtual=_virtual(case) if pipeline > 1 else 1,
        context=context,
        expert=expert,
    )
    batch = case.number("global_batch", micro * division.replicas)
    if name == "trainer":
        micro, batch = 1, float(TRAINER_STEPS * gpus)
    if name == TITAN and pipeline > 1:
        micro = 1  # its pipeline takes the sequences of a local batch one by one
    batch = max(batch, micro * division.replicas)
    return Setting(
        framework=name,
        recipe=recipe(case, name),
        release=release(case.row["engine"]) if name == "megatron-bridge" else MIDDLE,
        micro=micro,
        length=int(case.number("seq_len")),
        batch=batch,
        division=division,
        method=method(case, precision(case)),
        power=_power(case),
        eager=eager(case, name),
        attended=_attended(case, name),
    )


def _virtual(case: Case) -> int:
    """Stages of a GPU in a pipeline: those of `INTERLEAVED`, else what notes say."""
    row = case.row
    known = INTERLEAVED.get((row.get("source_repo", ""), row.get("locator", "")))
    stages = re.search(r"VP=(\d+)", row["notes"])
    return known or (int(stages[1]) if stages else 1)


def _recompute(case: Case) -> Recompute:
    """Selective recomputation is named by torchtitan's rows alone."""
    text = case.row["recompute"]
    return "full" if text == "full" else "selective" if text == "selective" else "none"


def eager(case: Case, name: str) -> bool:
    """torchtitan's table adds one option after the other: FSDP alone is not compiled."""
    notes = case.row["notes"]
    return name == TITAN and "FSDP" in notes and "compile" not in notes


def _power(case: Case) -> float:
    """Of the card's power, what notes say that it may draw."""
    stated, own = re.search(r"at (\d+) W\b", case.row["notes"]), case.gpu.watts.value
    return min(1.0, float(stated[1]) / own) if stated else 1.0


def _attended(case: Case, name: str) -> float:
    """NeMo's fine-tuning is measured on samples of a few hundred tokens, packed (column "packed
    sequence length" of its performance summary): attention sees one sample."""
    tuned = name == "megatron-bridge" and recipe(case, name) in ("sft", "lora")
    return min(1.0, SAMPLE / case.number("seq_len", SAMPLE)) if tuned else 1.0


def release(engine: str) -> float:
    """Steps of two months since NeMo 25.09, before it negative; of later releases than those known
    at most 5."""
    released = version(engine)
    if released is None:
        return MIDDLE
    months = 12 * (int(released) - 25) + round(100 * released) % 100 - 9
    late = 0.5 if months > 2 else 0.0  # 26.02 came three months after 25.11
    return RELEASES.get(f"{released:.2f}", min(5.0, months / 2 - late))


def version(engine: str) -> float | None:
    """Year and hundredths for the month of a release: 26.02."""
    match = re.search(r"\d\d\.\d\d", engine)
    return float(match[0]) if match else None


def _mlperf(case: Case) -> Setting | str:
    """What a GPU has of a global batch, a step and a replica's GPUs together is its micro-batch."""
    run = submission(case)
    if isinstance(run, str):
        return run
    gpus, batch = int(case.number("n_gpus", 1)), case.number("global_batch")
    accumulation = noted(case, "grad_accum", 1.0)
    division = Division(
        gpus,
        "zero1" if gpus > 1 else "none",
        "none",
        tensor=run.tensor,
        pipeline=run.pipeline,
        virtual=run.virtual,
        context=run.context,
    )
    return Setting(
        framework=MLPERF,
        recipe=recipe(case, MLPERF),
        release=mlperf_round(case),
        micro=max(1, round(batch * run.replica / (gpus * accumulation))),
        length=int(case.number("seq_len")),
        batch=batch,
        division=division,
        method=method(case, run.precision),
    )


def mlperf_round(case: Case) -> float:
    note = re.search(r"Training v(\d+\.\d+)", case.row["notes"])
    return float(note[1]) if note else 0.0


def noted(case: Case, name: str, default: float) -> float:
    note = re.search(rf"{name}=([\d.]+)", case.row["notes"])
    return float(note[1]) if note else default


def precision(case: Case) -> str:
    """Weights in 4 bits beside adapters are computed in bf16."""
    text = case.row["precision"].lower()
    if "nvfp4" in text or text == "fp4":
        return "nvfp4"
    if "fp8" in text:
        scaled = "mx" in text or "alt" in text
        able = float(case.gpu.compute_capability or 0) >= MXFP8
        return "mxfp8" if scaled and able else "fp8"
    return "bf16"


def recipe(case: Case, framework: str) -> str:
    """The trainer's methods by the planner's names: adapters beside embeddings that train in full
    are a method of their own."""
    text = case.row["method"].lower()
    if framework != "trainer":
        return text.split()[0] if text else ""
    own = method(case, "bf16").name
    return f"{own} embeddings" if "(emb)" in text else own


def method(case: Case, computed: str) -> Method:
    """In the precision `computed`."""
    text = case.row["method"].lower()
    quantized = text.startswith(("q-lora", "qlora"))
    return _method(quantized or "lora" in text, quantized, computed)


@cache
def _method(adapter: bool, quantized: bool, precision: str) -> Method:
    return Method(
        adapter=adapter,
        quantized=quantized,
        precision=precision,
        optimizer="adamw",
        lora_rank=constant(TRAINER_RANK, "1", "recipe") if adapter else None,
    )


def _sharding(case: Case, gpus: int) -> Sharding:
    sharding, text = case.row["sharding"], case.row["method"].lower()
    if gpus == 1:
        return "none"
    if "FSDP" in sharding or sharding == "zero3" or text.startswith("full-parameter"):
        return "zero3"
    return "zero2" if "zero2" in sharding else "zero1"
