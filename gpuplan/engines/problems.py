"""What of a plan engines cannot do, one constructor a message."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Change, Diagnostic, error, remedied, warning
from gpuplan.plan.model import Workload


def _warning(message: str, workload: Workload, remedy: str) -> Diagnostic:
    return warning("GP017", f"{workload.name}: {message}", workload.origin, help=remedy)


def _refused(
    message: str, workload: Workload, remedy: str, *changes: tuple[str, str | None]
) -> Diagnostic:
    """`changes`: fields below the workload, each a remedy of its own with the value there."""
    at = workload.origin
    problem = error("GP016", f"{workload.name}: {message}", at, help=remedy)
    if at is None:
        return problem
    return remedied(problem, *((Change(at.child(*f.split(".")), v),) for f, v in changes))


def unknown_engine(workload: Workload, known: tuple[str, ...]) -> Diagnostic:
    return _refused(
        f"{workload.engine.name} has no known start for {workload.task}",
        workload,
        f"write 'command', or use one of: {', '.join(known)}",
        *(("engine", name) for name in known),
    )


def network_file(workload: Workload, path: str) -> Diagnostic:
    return _warning(
        f"serves {path}, which must be there first; clients send it the numbers of scaled images",
        workload,
        "export the network with a first dimension of any size (torch.onnx.export, or optimum-cli"
        " export onnx); the cores that decode images are planned for a server that does so: one of"
        " your own is named in 'command'",
    )


def no_trainer(workload: Workload) -> Diagnostic:
    ranks = workload.gpus_per_node
    return error(
        "GP016",
        f"{workload.name}: {workload.engine.name} has torchrun and no trainer of its own",
        workload.origin,
        help=f"write `command: [torchrun, --nproc-per-node={ranks}, /data/train.py]`, the program"
        " that reads /data and saves to /checkpoints",
    )


def unsupported_parallelism(workload: Workload, kind: str, known: Sequence[str]) -> Diagnostic:
    """`known` are engines that have it."""
    fields = {o.quantity.partition(".")[2] for o in workload.overrides}
    field = f"{kind}_parallel_size"
    return _refused(
        f"{workload.engine.name} has no setting for {kind} parallelism here",
        workload,
        (f"write 'engine: {known[0]}'" if known else "use another engine") + ", or write 'command'",
        *([(f"overrides.{field}", None)] if field in fields else []),
    )


def batch_without_command(workload: Workload) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: {workload.engine.name} has no command for a file of requests",
        workload.origin,
        help="write 'command', the program that reads the requests and writes the results",
    )


def no_videos(workload: Workload) -> Diagnostic:
    return _refused(
        f"{workload.engine.name} {workload.engine.version} is not known to serve videos",
        workload,
        "leave 'engine' out, or write 'command'",
        ("engine", None),
    )


def unlimited_videos(workload: Workload) -> Diagnostic:
    made = workload.image_generation
    assert made is not None
    return _warning(
        f"{workload.engine.name} makes videos of any size that a request asks for",
        workload,
        f"let requests ask for at most {made.width}x{made.height} and {made.frames} frames: 'size'"
        " and 'num_frames' of POST /v1/videos; larger ones may not fit",
    )


def videos_apart(workload: Workload) -> Diagnostic:
    return _warning(
        f"a video of POST /v1/videos is kept by the one of {workload.replicas} replicas that made"
        " it; another answers 404 to who asks for it",
        workload,
        "ask at POST /v1/videos/sync (600 s at most, or VLLM_OMNI_VIDEO_SYNC_TIMEOUT of"
        " 'environment'), or let a proxy send a client to the same replica each time",
    )


def batch_files(workload: Workload, requests: str, results: str) -> Diagnostic:
    return _warning(
        f"reads its requests from {requests}/requests-0.jsonl, which must be there first",
        workload,
        f"put one such file in OpenAI's batch format there for each of {workload.replicas}"
        f" replicas; {results}/results-0.jsonl … are its results. Or write 'command'",
    )


def no_audio(workload: Workload) -> Diagnostic:
    return _warning(
        f"image {workload.engine.image} leaves the libraries for audio out, for their licences",
        workload,
        "build one FROM it with `RUN uv pip install --system vllm[audio]==VERSION` (vLLM,"
        " docs/deployment/docker.md) and name that in 'engine.image'",
    )


def no_dataset(workload: Workload) -> Diagnostic:
    return _warning(
        "no dataset is named, so the run cannot start", workload, "name it in 'dataset.name'"
    )


def goes_on_again(workload: Workload, checkpoints: str) -> Diagnostic:
    return _warning(
        f"each start goes on from what the one before left in {checkpoints}: where that had taken"
        " its last step, it ends at once",
        workload,
        "have the folder emptied before its time, by whoever takes the result away; a 'command' of"
        " one's own may write to another folder each time",
    )


def megatron_files(workload: Workload, data: str, pretrained: str | None) -> Diagnostic:
    """What Megatron-Bridge reads has its own form."""
    if pretrained is None:
        what = f"reads its corpus from {data}.bin and .idx, which must be there first"
        remedy = "make them with tools/preprocess_data.py of Megatron-LM, --append-eod"
    else:
        what = f"reads {data}/training.jsonl and the weights in {pretrained}: both must be there"
        model = workload.model.identifier if workload.model else "MODEL"
        remedy = (
            "make the weights with examples/conversion/convert_checkpoints.py import --hf-model"
            f" {model} --megatron-path {pretrained}; samples are not packed: the run is sized for"
            f" {workload.training.sequence_length if workload.training else 0:,} tokens in each"
        )
    return _warning(what, workload, remedy)


def no_recipe(workload: Workload, model: str) -> Diagnostic:
    return _refused(
        f"{workload.engine.name} {workload.engine.version} has no recipe for {model}"
        f" ({layout(workload)})",
        workload,
        "its recipes are those of src/megatron/bridge/recipes at tag v0.4.0: take a model of them,"
        " write 'command', or keep the plan alone with --plan-only",
    )


def unsized_recipe(workload: Workload) -> Diagnostic:
    return _refused(
        f"{workload.engine.name} is started in bf16 or fp8 with adamw only, not in"
        f" {workload.precision} ({layout(workload)})",
        workload,
        "write 'precision: bf16' or 'command', or keep the plan alone with --plan-only",
        ("precision", "bf16"),
    )


def layout(workload: Workload) -> str:
    """`tensor parallel 8, pipeline parallel 4, data parallel 16`."""
    of = workload.parallelism
    sizes = {
        "tensor": of.tensor_parallel_size,
        "context": of.context_parallel_size,
        "pipeline": of.pipeline_parallel_size,
        "expert": of.expert_parallel_size,
        "data": of.data_parallel_size,
    }
    return ", ".join(f"{n} parallel {size}" for n, size in sizes.items() if size > 1) or "one GPU"


def optimizer_of_another_kind(workload: Workload, optimizer: str) -> Diagnostic:
    return _refused(
        f"{workload.engine.name} cannot run optimizer '{optimizer}' with"
        f" sharding '{workload.training.sharding if workload.training else 'none'}'",
        workload,
        "use 'adamw' or 'adamw-8bit', or write 'command'",
        ("training.optimizer", "adamw"),
        ("training.optimizer", "adamw-8bit"),
    )
