"""The manifest, version 1: what a person writes.

Few fields are required. A field that is not written is None here, unless its default is a plain
fact of the format; derived values are made by the sizing engine, which names each default it used.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, WithJsonSchema

from gpuplan.manifest.base import (
    VARIABLE,
    ClassName,
    Count,
    Document,
    GpuName,
    GpusOfNode,
    LabelKey,
    Later,
    Name,
    QueueName,
    Shorthand,
    Text,
    optional,
    required,
)
from gpuplan.manifest.cluster import ClusterSpec
from gpuplan.manifest.network import NetworkSpec
from gpuplan.manifest.parts import (
    Checkpoint,
    Dataset,
    Engine,
    Growth,
    ModelDimensions,
    ModelShorthand,
    NotebookSpec,
    Overrides,
    Secret,
    Tenancy,
    Training,
)
from gpuplan.manifest.quantities import (
    Bytes,
    BytesPerSecond,
    Seconds,
    UsdPerGbMonth,
    UsdPerHour,
    Watts,
)
from gpuplan.manifest.regions import RegionsSpec
from gpuplan.manifest.schedule import Schedule
from gpuplan.manifest.slurm import SlurmSpec
from gpuplan.manifest.traffic import Load, Slo, Speculative
from gpuplan.targets import TARGETS, implemented

if TYPE_CHECKING:
    TargetName = str
else:
    TargetName = Annotated[
        Literal[tuple(TARGETS)],
        WithJsonSchema(
            {"oneOf": [{"const": t.name, "description": t.emits} for t in TARGETS.values()]}
        ),
    ]
Precision = Literal["bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]
VariableName = Annotated[str, Field(pattern=VARIABLE)]


class Workload(Document):
    """One thing that runs: a service, a batch, a training run, notebooks."""

    name: Name = required(
        "Its name in the plan, in messages and in the cluster: lower-case letters, digits and "
        "'-', at most 40 characters, a letter first.",
        "assistant",
    )
    description: str | None = optional("What it is for, in a sentence.", "Company-wide assistant")
    task: Literal["inference", "training", "finetuning", "batch", "notebook"] = required(
        "What it does. inference: a service. batch: a fixed number of requests. training: from "
        "the first weights. finetuning: of published weights. notebook: people at work.",
        "inference",
    )
    model: Annotated[ModelDimensions, ModelShorthand("name", "string", "model")] | None = optional(
        "The model: a bundled name (see `gpuplan catalog list models`), the path of a config.json, "
        "or a mapping.",
        "meta-llama/Llama-3.3-70B-Instruct",
        {"name": "Qwen/Qwen3-8B"},
    )
    precision: Precision | None = optional(
        "Format of the weights in the products. Without it as the weights are published.", "fp8"
    )
    pooling: Literal["embed", "score"] | None = optional(
        "What a text becomes where no text is written. embed: a vector. score: a relevance, as "
        "rerankers give it. Without it as the model's architecture says; a decoder then writes.",
        "embed",
    )
    engine: Annotated[Engine, Shorthand("name", "string", "engine")] | None = optional(
        "What serves or trains, by name or as a mapping. Without it the task's usual one.", "sglang"
    )
    command: list[str] | None = optional(
        "Replaces the engine's own command.", ["vllm", "serve", "--help"]
    )
    environment: dict[VariableName, str] = Field(
        {},
        description="Variables of its containers.",
        examples=[{"VLLM_LOGGING_LEVEL": "DEBUG"}],
    )
    public_variables: list[VariableName] = Field(
        [],
        description="Variables of `environment` that look like secrets and are none.",
        examples=[["SIGNING_KEY"]],
    )
    secrets: dict[VariableName, Secret] = Field(
        {},
        description="Variables whose values are kept elsewhere.",
        examples=[{"HF_TOKEN": {"config": "hfToken"}}],
    )
    load: Load | None = optional("What arrives.", {"requests": 100000})
    slo: Slo | None = optional("Objectives.", {"confidence": 0.9})
    speculative: Later[Speculative] | None = optional(
        "Speculative decoding, as it was measured.",
        {"method": "ngram", "accepted_tokens": 2.1, "draft_tokens": 4, "draft_cost": 0},
    )
    disaggregation: Literal["prefill_decode"] | None = optional(
        "Prefill and decode in replicas of their own, with a router; a cache goes from one to the "
        "other over `platform.fabric`. Without it every replica does both.",
        "prefill_decode",
    )
    training: Later[Training] | None = optional("The run.", {"global_batch": 64, "tokens": 2e9})
    dataset: Later[Dataset] | None = optional("What the run reads.", {"size": "8 GB"})
    checkpoint: Later[Checkpoint] | None = optional("How the run is saved.", {"interval": "30 min"})
    notebook: Later[NotebookSpec] | None = optional(
        "The environments.", {"users": 8, "gpu_memory": "10 GiB"}
    )
    growth: Annotated[Growth, Shorthand("factor", "number")] | None = optional(
        "How the load grows; the plan serves what it grows to.", 1.3
    )
    tenancy: Tenancy | None = optional(
        "Who owns it, and what it may share.", {"team": "platform", "isolation": "node"}
    )
    priority: Literal["low", "normal", "high", "critical"] | None = optional(
        "Who is scheduled first, and who gives way. Without it normal.", "high"
    )
    preemptible: bool | None = optional(
        "Whether it may be stopped for others at any time. Without it no.", *[True]
    )
    deadline: Seconds | None = optional(
        "When it must have ended, counted from its start; it is stopped then.", "3 d"
    )
    after: list[Name] = Field(
        [],
        description="Workloads of this manifest that must have ended well before it starts; each "
        "is one that ends.",
        examples=[["prepare"]],
    )
    schedule: Schedule | None = optional(
        "When it starts again and again, in cron's five fields: minute, hour, day of the month, "
        "month, day of the week. What is `after` it follows each time.",
        "30 2 * * 1-5",
    )
    overrides: Later[Overrides] | None = optional(
        "Values that replace derived ones.", {"replicas": 3}
    )
    renamed_from: list[Name] = Field(
        [],
        description="Names it had before, so that what exists is kept.",
        examples=[["helper"]],
    )


class NodeShape(Document):
    """One node, where no inventory describes it. Cores are physical."""

    gpus: GpusOfNode = required("GPUs of a node.", 4)
    cpu_cores: Count | None = optional("Physical cores of a node.", 64)
    memory: Bytes | None = optional("Memory of a node.", "1 TiB")
    count: Count | None = optional("Nodes there are.", 12)
    nvlink_nodes: Count | None = optional(
        "Nodes of a rack whose GPUs NVLink joins, 18 of an NVL72. Without it NVLink ends at the "
        "node.",
        18,
    )


class FabricSpec(Document):
    """The network between nodes over which GPUs exchange data."""

    kind: Literal["infiniband", "roce", "efa", "ethernet"] = required(
        "What it is; efa is that of AWS.", "roce"
    )
    bandwidth_per_gpu: BytesPerSecond = required("What each GPU has of it.", "200 Gb/s")
    resource: Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")] | None = optional(
        "The name under which the cluster's device plugin offers a RDMA device.",
        "rdma/rdma_shared_device_a",
    )
    oversubscription: Annotated[float, Field(ge=1, le=1000)] | None = optional(
        "How many times less than their own rate the nodes of a switch have together to all "
        "others. Without it every node has its whole rate to every other one.",
        3,
    )
    nodes_per_switch: Count | None = optional(
        "Nodes of one switch, which have their whole rate to each other. Without it each node "
        "counts as behind a switch of its own.",
        32,
    )
    switch_label: LabelKey | None = optional(
        "The label of nodes that names their switch; pods of one run are kept together by it.",
        "example.com/leaf-switch",
    )


class StorageSpec(Document):
    """Where volumes come from."""

    storage_class: ClassName | None = Field(
        None,
        alias="class",
        description="The storage class. Without it the cluster's default.",
        examples=["models-rwx"],
    )
    shared: bool | None = optional(
        "Whether volumes can be mounted by several nodes at once. Without it they are "
        "asked to where several pods need one.",
        *[True],
    )
    bandwidth: BytesPerSecond | None = optional("Read bandwidth of one node.", "5 GB/s")
    type: Text | None = optional(
        "What the class provides (see `gpuplan catalog list storage`); checkpoints are priced by "
        "it.",
        "aws-fsx-lustre-125",
    )
    price: UsdPerGbMonth | None = optional(
        "What it costs, where that is known better than by its type.", "$0.08/GB/month"
    )


class VersionSpec(Document):
    """A version in place of a pin, as a text or with the reason why one is taken that no source
    states."""

    version: Text = required("The version.", "v25.10.1")
    untested: Text | None = optional(
        "Why it is taken though no source states it with the others; the plan and `gpuplan check` "
        "show it.",
        "our mirror has no other",
    )


class Platform(Document):
    """Where it may run."""

    target: TargetName = required(
        f"{' or '.join(implemented())}. No backend is implemented yet for "
        f"{', '.join(name for name in TARGETS if name not in implemented())}: "
        "`gpuplan compile --plan-only` sizes for them.",
        "kubernetes",
    )
    region: Text | None = optional("Region of a cloud's target.", "us-east-2")
    inventory: Text | None = optional(
        "Path of an inventory, relative to the manifest.", "inventories/rack-7.yaml"
    )
    gpus: Annotated[list[GpuName], Field(min_length=1)] | None = optional(
        "GPU types that may be used (see `gpuplan catalog list gpus`). Without it all.",
        ["h100-sxm-80gb", "l40s"],
    )
    provider: Text | None = optional(
        "Whose machines may be rented (see `gpuplan catalog list instances`).", "aws"
    )
    nodes: Annotated[list[Text], Field(min_length=1)] | None = optional(
        "Instance types and servers that may be used, of those of the catalogue; without it, of "
        "each number of GPUs the cheapest.",
        ["p5.48xlarge"],
    )
    node: Later[NodeShape] | None = optional(
        "The nodes there are, all alike.", {"gpus": 4, "cpu_cores": 64, "memory": "1 TiB"}
    )
    fabric: Later[FabricSpec] | None = optional(
        "The network between nodes; without it nothing spans several.",
        {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s"},
    )
    storage: Later[StorageSpec] | None = optional(
        "Where volumes come from.", {"class": "models-rwx"}
    )
    rack_power: Watts | None = optional(
        "What a rack feeds to its servers; `gpuplan explain` says how many nodes that is.", "40 kW"
    )
    network: Later[NetworkSpec] | None = optional(
        "How pods reach names, servers and images, where a cluster is not the usual one.",
        {"dns": "openshift"},
    )
    cluster: Later[ClusterSpec] | None = optional(
        "The cluster of a cloud's target.", {"zones": ["us-east-2a", "us-east-2b"]}
    )
    regions: Later[RegionsSpec] | None = optional(
        "Several regions in place of one, each with a stack of its own: services are divided so "
        "that any one region may be lost, other work is in one of them, the budget is of all.",
        {"places": [{"region": "eu-west-1"}, {"region": "eu-central-1"}], "count": 2},
    )
    queue: QueueName | None = optional(
        "The cluster's queue, a ClusterQueue of Kueue: it admits all pods at once of a run, and of "
        "a service's replica, over several nodes. Without it they are scheduled one by one.",
        "gpus",
    )
    jobs: Literal["job", "jobset"] | None = optional(
        "What a run over several nodes is. job, or nothing: an indexed Job of Kubernetes itself. "
        "jobset: a JobSet, whose operator comes with the stack; when a pod fails, all of them come "
        "anew at once, where those of a Job wait for NCCL's timeout of ten minutes.",
        "jobset",
    )
    operators: Literal["here", "separate", "elsewhere"] | None = optional(
        "Which Pulumi stack installs the cluster's operators. here, or nothing: the workloads', "
        "which takes them with it when it is destroyed. separate: one beside it, in `operators`. "
        "elsewhere: that of another stack of this cluster.",
        "separate",
    )
    ansible: bool | None = Field(
        None,
        description="Whether the stack has an Ansible role for its hosts, beside the Pulumi "
        "program and `apply.sh`; target libvirt.",
        examples=[True],
    )
    slurm: Later[SlurmSpec] | None = optional(
        "The cluster of the target `slurm`, which needs it.",
        {"controller": "slurm-01", "storage": "/lustre/gpuplan", "containers": "pyxis"},
    )
    quadlet: bool | None = optional(
        "Whether Podman's units stand beside the Compose project of the target `docker`. Without "
        "it they do not.",
        True,  # noqa: FBT003 - an example
    )
    budget: UsdPerHour | None = optional(
        "What the stack may cost; a dearer one is found by `gpuplan check`.", "$20,000/month"
    )
    calibration: Text | None = optional(
        "Folder of anchors that `gpuplan accuracy --calibrate` wrote, relative to the manifest.",
        "anchors",
    )
    prices: dict[GpuName, UsdPerHour] = Field(
        {}, description="Price of one GPU, by GPU type.", examples=[{"l40s": "$1.20/hour"}]
    )
    vgpu_subscription: UsdPerHour | None = optional(
        "What NVIDIA's licence for vGPUs costs of each GPU that guests share, instead of the list "
        "price; target libvirt.",
        "$4,500/year",
    )
    versions: dict[str, Annotated[VersionSpec, Shorthand("version", "string")]] = Field(
        {},
        description="Versions that replace the pins: of components (see `gpuplan catalog list "
        "components`), of the GPU `driver`, and of `kubernetes`, which the cluster has. Only those "
        "that sources state together are taken.",
        examples=[{"gpu-operator": "v25.10.1", "driver": "580.126.16", "kubernetes": "1.34.2"}],
    )


class Manifest(Document):
    """One stack: a platform and the workloads on it."""

    api_version: Literal["gpuplan.dev/v1"] = Field(
        alias="apiVersion", description="The version of this format.", examples=["gpuplan.dev/v1"]
    )
    name: Name = required(
        "The stack's name, and that of its folder: lower-case letters, digits and '-', at most 40 "
        "characters, a letter first.",
        "chat",
    )
    description: str | None = optional("What it is for, in a sentence.", "Support's assistants")
    platform: Platform = required(
        "Where the stack may run.", {"target": "kubernetes", "gpus": ["h100-sxm-80gb", "l40s"]}
    )
    workloads: Annotated[list[Workload], Field(min_length=1)] = required(
        "What runs.",
        [{"name": "desks", "task": "notebook", "notebook": {"users": 8, "gpu_memory": "10 GiB"}}],
    )
