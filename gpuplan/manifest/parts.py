"""The parts of a workload: its model, engine and data, a training run, notebooks, overrides."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gpuplan.frozen import frozen
from gpuplan.manifest.base import (
    Count,
    Document,
    EngineName,
    GpuName,
    ModelName,
    Name,
    Positive,
    Shorthand,
    Text,
    optional,
    required,
)
from gpuplan.manifest.quantities import Bytes, BytesPerSecond, Seconds
from gpuplan.manifest.traffic import ImageSize
from gpuplan.plan.times import LIMITS

if TYPE_CHECKING:
    LimitName = str
else:
    LimitName = Literal[LIMITS]


class Lora(Document):
    """Fine-tuning of small added matrices; the model's own weights stay as they are."""

    rank: Count = required("Rank of the added matrices.", 16)
    quantized: bool = Field(
        default=False, description="QLoRA: the frozen weights in nf4.", examples=[True]
    )


class Training(Document):
    """A training or fine-tuning run. One of `tokens`, `epochs` and `steps` says how long it is."""

    sequence_length: Count | None = optional(
        "Tokens of a sequence. Without it 4,096, within the model's context.", 8192
    )
    global_batch: Count | None = optional("Sequences per optimizer step. Without it 128.", 64)
    tokens: Positive | None = optional("Tokens to train on, over the whole run.", 2e9)
    epochs: Positive | None = optional("Passes over the dataset; needs `dataset.tokens`.", 3)
    steps: Count | None = optional("Optimizer steps.", 1000)
    optimizer: Literal["adamw", "adamw-8bit", "adamw-bf16"] | None = optional(
        "The optimizer, which decides the bytes of state for each weight. Without it adamw.",
        "adamw-8bit",
    )
    lora: Annotated[Lora, Shorthand("rank", "number")] | None = optional(
        "Train small added matrices instead of all weights.", {"rank": 16}, 16
    )
    recompute: Literal["none", "selective", "full"] | None = optional(
        "Which activations are made again instead of kept. Without it the search chooses.", "full"
    )
    sharding: Literal["none", "zero1", "zero2", "zero3", "hsdp"] | None = optional(
        "What is divided over the GPUs: nothing, the optimizer's states, also gradients, also "
        "weights; hsdp: all of them, inside groups of whole nodes that are copies of each other. "
        "Without it the search chooses.",
        "zero3",
    )
    spare_nodes: Annotated[int, Field(ge=0, le=64)] | None = optional(
        "Nodes that are bought beside those of the run, and take the place of one that fails. Time "
        "and goodput then count what it waits for repairs where more have failed. Without it none "
        "is bought: a node is taken to be at hand, and a note recommends a number.",
        2,
    )


class Dataset(Document):
    """What a training run reads."""

    name: Text | None = optional(
        "A dataset identifier or path the engine can read.", "example-org/support-dialogues"
    )
    size: Bytes | None = optional("All of its bytes; they get a place in storage.", "8 GB")
    tokens: Positive | None = optional("Tokens of one epoch.", 2e9)
    rate: BytesPerSecond | None = optional("Bytes per second the loader must get.", "200 MB/s")
    images: Count | None = optional("Images of one epoch, where a model reads images.", 1281167)
    pixels: ImageSize | None = optional(
        "Width and height of a mean image as it is stored: what is decoded.", "500x375"
    )


class Checkpoint(Document):
    """How a run is saved."""

    interval: Seconds = required(
        "Time between two checkpoints: the work at risk. Without it an hour.", "30 min"
    )


class Growth(Document):
    """Load is multiplied by `factor` by the end of `horizon`."""

    factor: Annotated[float, Field(ge=1, le=100)] = required(
        "The load at the end over the load now; the plan serves the load at the end.", 1.3
    )
    horizon: Seconds | None = optional("When the load has grown so far.", "365 d")


class Tenancy(Document):
    """Who owns the workload and what it may share with others."""

    team: Name | None = optional(
        "The owner: workloads of one team may share what `isolation` keeps from others. Without it "
        "the stack's name.",
        "platform",
    )
    isolation: Literal["shared", "gpu", "node", "vm"] | None = optional(
        "Whom it shares machines with. shared: anyone, on parts of one GPU too. gpu: only its own "
        "team is on its GPUs. node: only its own team is on its nodes. vm: anyone, but it runs in "
        "virtual machines of its own. Without it gpu; notebooks are shared.",
        "node",
    )
    cut: bool = Field(
        default=False,
        description="Whether GPUs that no other team may be on are cut for workloads of its own "
        "team: one GPU a team, cut inside. For isolation gpu and node.",
        examples=[True],
    )


class Secret(Document):
    """A reference: `config` names a secret of the stack's configuration, `secret` an object that
    exists already in the namespace, with its `key`. The value never stands in a manifest."""

    config: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")] | None = optional(
        "Name of a secret in the stack's configuration (`pulumi config set --secret`).", "hfToken"
    )
    secret: Name | None = optional("Name of an object that exists in the namespace.", "huggingface")
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")] | None = optional(
        "The key in that object. Without it the variable's name.", "token"
    )


class Engine(Document):
    """The serving or training program. `version` and `image` replace the bundled pins."""

    name: EngineName = required("Name of the engine (see `gpuplan catalog list engines`).", "vllm")
    version: Text | None = optional("Its version, in place of the bundled pin.", "0.19.0")
    image: Text | None = optional(
        "Its image, in place of the bundled pin.", "registry.example.org/vllm:0.19.0"
    )


class ModelDimensions(Document):
    """A model by name, by the path of a Hugging Face `config.json`, or by its dimensions (fields
    of such a file, under `config`)."""

    name: ModelName | None = optional(
        "A bundled name; beside `path` or `config`, what the engine loads the weights by.",
        "Qwen/Qwen3-8B",
    )
    path: Text | None = optional("Path of a config.json, relative to the manifest.", "config.json")
    config: dict[str, Any] | None = optional(
        "The fields of a config.json.",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
            "max_position_embeddings": 131072,
        },
    )
    revision: Text | None = optional(
        "Commit of the weights.", "0e9e39f249a16976918f6564b8830bc894c89659"
    )


@frozen
class ModelShorthand(Shorthand):
    """A bare text is a path when it looks like one, else a bundled name."""

    def expand(self, value: object) -> object:
        if isinstance(value, str) and (value.endswith(".json") or value.startswith((".", "/"))):
            return {"path": value}
        return Shorthand.expand(self, value)


class NotebookSpec(Document):
    """One interactive environment per user, each with its own GPU share."""

    users: Count = required("Environments that run at once.", 8)
    gpu_memory: Bytes = required("GPU memory that each user gets at least.", "10 GiB")


class Overrides(Document):
    """Values that replace derived ones. Each is reported as overridden, with what it replaced."""

    gpu: GpuName | None = optional("The GPU type.", "l40s")
    partition: Text | None = optional("A MIG profile or a vGPU type.", "3g.40gb")
    replicas: Count | None = optional("Copies of the model that serve.", 3)
    tensor_parallel_size: Count | None = optional("GPUs that split each layer of a replica.", 2)
    pipeline_parallel_size: Count | None = optional(
        "Stages that split the layers of a replica, inside a node or over whole ones. Derived: 1 "
        "inside a node.",
        2,
    )
    max_model_len: Count | None = optional(
        "Longest sequence the engine takes, in tokens. Derived: twice the 95th percentiles, in "
        "steps of 1,024.",
        16384,
    )
    max_num_seqs: Count | None = optional("Requests that a replica runs at once.", 64)
    max_num_batched_tokens: Count | None = optional(
        "Tokens that a step computes at most, of prompts and of running requests. Derived: the "
        "engine's default, and more where a long prompt must have its first token in time.",
        4096,
    )
    gpu_memory_utilization: Annotated[float, Field(gt=0, lt=1)] | None = optional(
        "Part of a GPU's memory that the engine takes. Derived: 0.9.", 0.85
    )
    kv_cache_dtype: Literal["auto", "fp8"] | None = optional(
        "Format of the KV cache. auto: as the model computes.", "fp8"
    )
    micro_batch: Count | None = optional("Sequences that a training GPU computes at once.", 2)
    gpu_count: Count | None = optional("GPUs of a training run.", 16)
    cpu_cores_per_gpu: Count | None = optional("Physical cores beside each GPU.", 4)
    host_memory_per_gpu: Bytes | None = optional("Host memory beside each GPU.", "24 GB")
    shared_memory: Bytes | None = optional("Size of /dev/shm of a pod or guest.", "12 GiB")
    scratch: Bytes | None = optional(
        "Space for compiled kernels, caches and temporary files of a pod or guest. Derived: "
        "50 GiB.",
        "200 GiB",
    )
    model_storage: Bytes | None = optional("Volume that holds the weights.", "500 GiB")
    dataset_storage: Bytes | None = optional("Volume that holds the dataset.", "1 TiB")
    checkpoint_storage: Bytes | None = optional("Volume that holds the checkpoints.", "2 TiB")
    home_storage: Bytes | None = optional("Volume of one user's files.", "50 GiB")
    accepted_misses: Annotated[list[LimitName], Field(min_length=1)] | None = optional(
        "Objectives under `slo` that may be missed: they decide nothing, and a miss is marked as "
        "accepted. A time stands for all limits that are written of it, `time.p99` for one. A "
        "budget is judged by a policy: a waiver accepts that it is exceeded.",
        ["time_to_first_token"],
        ["time_to_first_token.p99"],
        ["finish_within", "tokens_per_second"],
    )
