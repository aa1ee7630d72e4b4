"""Sample plans for what turns a plan into a stack, each with a feature of its own."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.plan.model import (
    Engine,
    EnvironmentVariable,
    GpuLayout,
    HostResources,
    ImageGeneration,
    MigInstance,
    NodeLayout,
    NodePool,
    Notebook,
    Parallelism,
    Partition,
    Plan,
    SecretRef,
    Speculative,
    Tenant,
    Volume,
)
from gpuplan.units import GIB
from tests.support.samples import (
    HOSTILE,
    libvirt_plan,
    serving_plan,
    serving_pool,
    serving_workload,
    training_plan,
)

SLICES = Partition(
    kind="mig",
    name="1g.10gb",
    count=7 * 8 * 2,
    per_gpu=7,
    memory_bytes=int(9.5 * GIB),
    resource="nvidia.com/mig-1g.10gb",
)
SEVENTHS = GpuLayout(
    gpus=tuple(range(8)),
    instances=tuple(MigInstance(profile="1g.10gb", start=n, size=1) for n in range(7)),
)


def cut_pool(**changes: object) -> NodePool:
    """Two nodes full of `SLICES`."""
    pool = serving_pool(partitions=(SLICES,), **changes)
    cut = NodeLayout(node_count=2, node_names=pool.node_names, gpus=(SEVENTHS,))
    return replace(pool, layouts=(cut,))


def hostile_plan() -> Plan:
    """Every free text of the plan tries to leave its place."""
    workload = serving_workload(
        description=HOSTILE,
        environment=(EnvironmentVariable(name="NOTE", value=HOSTILE),),
        command=("python3", "-c", HOSTILE),
    )
    return serving_plan(description=HOSTILE, workloads=(workload,))


def hostile_model_plan() -> Plan:
    base = serving_workload()
    model = replace(base.model, identifier=HOSTILE, revision=HOSTILE)
    return serving_plan(workloads=(replace(base, model=model),))


def notebook_plan() -> Plan:
    """Four users on slices of one node's GPUs, beside a small model on slices of the same pool."""
    notebooks = serving_workload(
        name="lab",
        task="notebook",
        model=None,
        precision=None,
        engine=Engine(
            name="jupyter",
            version="python-3.13.14",
            image="quay.io/jupyter/pytorch-notebook:cuda12-python-3.13.14",
            digest=None,
            source="sample",
        ),
        partition="1g.10gb",
        parallelism=Parallelism(),
        replicas=4,
        gpus_per_node=1,
        gpu_count=4,
        serving=None,
        notebook=Notebook(users=4, gpu_memory_bytes=9 * GIB),
        secrets=(
            SecretRef(environment="JUPYTER_TOKEN", store="secret", name="tokens", key="jupyter"),
        ),
        volumes=(
            Volume(
                name="home",
                size_bytes=20 * GIB,
                storage_class="fast",
                shared=False,
                mount_path="/home/jovyan",
                purpose="home",
            ),
        ),
        resources=HostResources(
            cpu_cores=2,
            host_memory_bytes=16 * GIB,
            shared_memory_bytes=2 * GIB,
            scratch_bytes=10 * GIB,
        ),
    )
    small = serving_workload(
        name="embedder",
        partition="1g.10gb",
        parallelism=Parallelism(),
        replicas=1,
        gpus_per_node=1,
        gpu_count=1,
    )
    return serving_plan(
        name="team",
        workloads=(notebooks, small),
        node_pools=(cut_pool(threads_per_core=2),),
        tenants=(
            Tenant(
                name="search",
                gpu_quota=0,
                partition_quota=((SLICES.resource, 5),),
                storage_quota_bytes=180 * GIB,
                isolation="shared",
            ),
        ),
    )


def halves_plan() -> Plan:
    """As `notebook_plan`, but only two GPUs of the second node are cut."""
    plan = notebook_plan()
    cut = NodeLayout(node_count=1, node_names=("gpu-02",), gpus=(replace(SEVENTHS, gpus=(6, 7)),))
    pool = replace(plan.node_pools[0], layouts=(cut,), partitions=(replace(SLICES, count=14),))
    return replace(plan, name="halves", node_pools=(pool,))


def image_plan() -> Plan:
    """A diffusion model; nodes are not known by name."""
    workload = serving_workload(
        name="painter",
        engine=Engine(
            name="vllm-omni",
            version="0.14.0",
            image="vllm/vllm-omni:v0.14.0",
            digest="sha256:" + "a" * 64,
            source="sample",
        ),
        precision="bf16",
        parallelism=Parallelism(),
        replicas=1,
        gpus_per_node=1,
        serving=None,
        image_generation=ImageGeneration(
            width=1024, height=1024, steps=28, max_num_seqs=1, port=8091
        ),
        metrics=(),
        isolation="node",
        priority="high",
    )
    return serving_plan(
        name="paint", workloads=(workload,), node_pools=(serving_pool(node_names=()),)
    )


def mixture_plan() -> Plan:
    """Expert and data parallelism in one 8-GPU replica, two replicas with a volume each."""
    volume = replace(serving_workload().volumes[0], shared=False)
    workload = serving_workload(
        name="moe",
        parallelism=Parallelism(data_parallel_size=8, expert_parallel_size=8),
        replicas=2,
        gpus_per_node=8,
        gpu_count=16,
        volumes=(volume,),
    )
    tenant = replace(serving_plan().tenants[0], gpu_quota=16, storage_quota_bytes=200 * GIB)
    return serving_plan(name="moe", workloads=(workload,), tenants=(tenant,))


def sglang_plan() -> Plan:
    base = serving_workload(
        engine=Engine(
            name="sglang",
            version="0.5.16",
            image="lmsysorg/sglang:v0.5.16-cu130",
            digest=None,
            source="sample",
        )
    )
    return serving_plan(workloads=(base,))


def modelopt_plan() -> Plan:
    """SGLang serves what NVIDIA's Model Optimizer made; another model drafts for it."""
    (base,) = sglang_plan().workloads
    assert base.model is not None
    assert base.serving is not None
    model = replace(
        base.model,
        identifier="nvidia/Qwen3-235B-A22B-NVFP4",
        revision=None,
        checkpoint_precision="nvfp4",
        quant_method="modelopt",
    )
    drafts = Speculative(method="draft_model", model="Qwen/Qwen3-0.6B", tokens=3)
    serving = replace(base.serving, speculative=drafts, moe_runner_backend="flashinfer_cutlass")
    return serving_plan(workloads=(replace(base, precision="nvfp4", model=model, serving=serving),))


def renamed_plan() -> Plan:
    """The workload of `serving_plan` under a new name."""
    return serving_plan(workloads=(serving_workload(name="helper", renamed_from=("assistant",)),))


def lora_plan() -> Plan:
    """A LoRA run on one node with a deadline and hostile names."""
    base = training_plan().workloads[0]
    assert base.training is not None
    assert base.model is not None
    training = replace(
        base.training,
        method="lora",
        sharding="none",
        lora_rank=16,
        dataset=HOSTILE,
        recompute="selective",
    )
    workload = replace(
        base,
        name="adapter",
        model=replace(base.model, identifier=HOSTILE),
        training=training,
        nodes_per_replica=1,
        parallelism=Parallelism(data_parallel_size=8),
        gpu_count=8,
        deadline_seconds=36_000.5,
        description=HOSTILE,
    )
    return serving_plan(name="adapter", workloads=(workload,), tenants=training_plan().tenants)


def batch_plan() -> Plan:
    workload = serving_workload(
        name="nightly",
        task="batch",
        replicas=1,
        command=("vllm", "run-batch", "--output-file=/models/$(date).jsonl"),
    )
    return serving_plan(name="nightly", workloads=(workload,))


KUBERNETES = {
    "serving": serving_plan,
    "training": training_plan,
    "hostile": hostile_plan,
    "hostile-model": hostile_model_plan,
    "notebook": notebook_plan,
    "halves": halves_plan,
    "image": image_plan,
    "mixture": mixture_plan,
    "sglang": sglang_plan,
    "renamed": renamed_plan,
    "lora": lora_plan,
    "batch": batch_plan,
}
LIBVIRT = {"libvirt": libvirt_plan}
