"""Hand-made plans with round numbers, for tests of what comes after the sizing engine."""

from __future__ import annotations

from decimal import Decimal

from gpuplan.plan.model import (
    Alternative,
    Component,
    Core,
    Cost,
    CpuPin,
    Digest,
    Disk,
    Engine,
    EnvironmentVariable,
    Estimate,
    Evidence,
    Fabric,
    GuestCell,
    GuestDevice,
    Host,
    HostResources,
    Input,
    MemoryBudget,
    Metric,
    ModelRef,
    NodePool,
    NumaNode,
    Parallelism,
    PciDevice,
    Plan,
    Provenance,
    SecretRef,
    Serving,
    Shortfall,
    Tenant,
    Training,
    VirtualMachine,
    Volume,
    Workload,
)
from gpuplan.source import Origin
from gpuplan.units import GB, GIB, TIB

HOSTILE = 'it\'s "quoted"\nline {{ x }} ]]> $(HOME) ${y} `z` <b> & \\ # % é 漢'

PROVENANCE = Provenance(
    gpuplan_version="0.1.0",
    catalog_sha256="0" * 64,
    inputs=(Digest(name="chat.yaml", sha256="1" * 64),),
)
OPERATOR = Component(
    name="gpu-operator",
    version="v26.3.3",
    app_version="v26.3.3",
    repository="https://helm.ngc.nvidia.com/nvidia",
    chart="gpu-operator",
    digest=None,
    namespace="gpu-operator",
    kubernetes_minimum="1.32",
    driver="580.126.20",
    source="sample",
)


def estimate(value: float) -> Estimate:
    return Estimate(value=value, low=value * 0.8, high=value * 1.25, basis="derived")


def serving_workload(**changes: object) -> Workload:
    values: dict[str, object] = {
        "name": "assistant",
        "task": "inference",
        "tenant": "search",
        "description": "Answers questions",
        "model": ModelRef(
            identifier="meta-llama/Llama-3.3-70B-Instruct",
            revision="6f6073b423013f6a7d4d9f39144961bfbfbc386b",
            architecture="LlamaForCausalLM",
            parameters=70_553_706_496,
            active_parameters=70_553_706_496,
            source="sample",
        ),
        "precision": "fp8",
        "engine": Engine(
            name="vllm",
            version="0.11.0",
            image="vllm/vllm-openai:v0.11.0",
            digest=None,
            source="sample",
        ),
        "environment": (EnvironmentVariable(name="NOTE", value="plain"),),
        "secrets": (
            SecretRef(environment="HF_TOKEN", store="config", name="hfToken", key="HF_TOKEN"),
        ),
        "gpu": "h100-sxm-80gb",
        "node_pool": "h100-sxm-80gb",
        "parallelism": Parallelism(tensor_parallel_size=2),
        "replicas": 3,
        "gpus_per_node": 2,
        "memory": MemoryBudget(
            weights_bytes=36 * GIB,
            activations_bytes=3 * GIB,
            kv_cache_bytes=30 * GIB,
            overhead_bytes=2 * GIB,
            capacity_bytes=79 * GIB,
            usable_bytes=71 * GIB,
        ),
        "metrics": (
            Metric(
                name="time_to_first_token",
                unit="s",
                estimate=estimate(0.4),
                limit=1.0,
                probability=0.97,
            ),
            Metric(
                name="time_per_output_token",
                unit="s",
                estimate=estimate(0.025),
                limit=0.04,
                probability=0.95,
            ),
        ),
        "bound_by": "memory bandwidth",
        "resources": HostResources(
            cpu_cores=12,
            host_memory_bytes=160 * GIB,
            shared_memory_bytes=16 * GIB,
            scratch_bytes=50 * GIB,
        ),
        "volumes": (
            Volume(
                name="models",
                size_bytes=100 * GIB,
                storage_class=None,
                shared=True,
                mount_path="/models",
                purpose="models",
            ),
        ),
        "serving": Serving(
            max_model_len=8192,
            max_num_seqs=128,
            max_num_batched_tokens=8192,
            gpu_memory_utilization=0.9,
            kv_cache_dtype="auto",
            port=8000,
        ),
        "isolation": "shared",
        "priority": "normal",
        "preemptible": False,
        "deadline_seconds": None,
        "concurrency": 128,
        "gpu_count": 6,
        "usd_per_hour": Decimal("17.70"),
        "watts": 6000.0,
        "alternatives": (
            Alternative(
                gpu="l40s",
                gpu_count=12,
                tensor_parallel_size=4,
                replicas=3,
                usd_per_hour=Decimal("18.58"),
                gate="time_per_output_token",
                shortfalls=(
                    Shortfall(
                        resource="time_per_output_token",
                        requested=0.06,
                        used=0.0,
                        capacity=0.04,
                        unit="s",
                    ),
                ),
            ),
        ),
        "origin": Origin("chat.yaml", ("workloads", 0)),
    }
    return Workload(**(values | changes))  # type: ignore[arg-type]


def serving_pool(**changes: object) -> NodePool:
    values: dict[str, object] = {
        "name": "h100-sxm-80gb",
        "node_type": "dgx-h100",
        "gpu": "h100-sxm-80gb",
        "node_count": 2,
        "node_names": ("gpu-01", "gpu-02"),
        "gpus_per_node": 8,
        "gpu_memory_bytes": 79 * GIB,
        "gpu_product": "NVIDIA-H100-80GB-HBM3",
        "cpu_cores": 112,
        "memory_bytes": 2 * TIB,
        "numa_nodes": 2,
        "interconnect": "nvlink",
        "interconnect_bytes_per_s": 450 * GB,
        "usd_per_hour": Decimal("23.60"),
        "watts": 10200.0,
        "origin": Origin("chat.yaml", ("platform", "gpus")),
    }
    return NodePool(**(values | changes))  # type: ignore[arg-type]


def serving_plan(**changes: object) -> Plan:
    values: dict[str, object] = {
        "name": "chat",
        "target": "kubernetes",
        "workloads": (serving_workload(),),
        "tenants": (
            Tenant(name="search", gpu_quota=8, storage_quota_bytes=100 * GIB, isolation="shared"),
        ),
        "node_pools": (serving_pool(),),
        "components": (OPERATOR,),
        "cost": Cost(
            usd_per_hour=Decimal("47.20"),
            budget_usd_per_hour=Decimal("60"),
            watts=20400.0,
            price_source="sample",
            price_date="2026-06-18",
        ),
        "provenance": PROVENANCE,
        "evidence": (
            Evidence(
                quantity="assistant.weights_bytes",
                value=70e9,
                unit="B",
                formula="parameters * bytes_per_parameter",
                source="sizing.md",
                inputs=(
                    Input(name="parameters", value=70e9, unit="1", source="catalog: models"),
                    Input(name="bytes_per_parameter", value=1, unit="B", source="constant: fp8"),
                ),
            ),
        ),
    }
    return Plan(**(values | changes))  # type: ignore[arg-type]


def training_plan() -> Plan:
    """A 2-node full fine-tune on Kubernetes."""
    workload = serving_workload(
        name="tune",
        task="finetuning",
        engine=Engine(
            name="axolotl",
            version="0.13.0",
            image="axolotlai/axolotl:0.13.0",
            digest=None,
            source="sample",
        ),
        precision="bf16",
        parallelism=Parallelism(data_parallel_size=16),
        replicas=1,
        nodes_per_replica=2,
        gpus_per_node=8,
        memory=MemoryBudget(
            weights_bytes=1 * GIB,
            gradients_bytes=1 * GIB,
            optimizer_bytes=6 * GIB,
            activations_bytes=40 * GIB,
            overhead_bytes=3 * GIB,
            capacity_bytes=79 * GIB,
            usable_bytes=75 * GIB,
        ),
        metrics=(
            Metric(
                name="tokens_per_second",
                unit="1/s",
                estimate=estimate(120_000.0),
                sense="at_least",
            ),
        ),
        bound_by="compute",
        serving=None,
        training=Training(
            method="full",
            sequence_length=4096,
            global_batch=128,
            micro_batch=2,
            gradient_accumulation_steps=4,
            steps=1000,
            optimizer="adamw",
            recompute="full",
            sharding="zero3",
            checkpoint_interval_seconds=3600.0,
            dataset="tatsu-lab/alpaca",
        ),
        volumes=(
            Volume(
                name="checkpoints",
                size_bytes=500 * GIB,
                storage_class="fast",
                shared=True,
                mount_path="/checkpoints",
                purpose="checkpoints",
            ),
        ),
        gpu_count=16,
        concurrency=1,
        preemptible=True,
        priority="low",
    )
    return serving_plan(
        name="tune",
        workloads=(workload,),
        tenants=(
            Tenant(name="search", gpu_quota=16, storage_quota_bytes=500 * GIB, isolation="shared"),
        ),
        fabric=Fabric(kind="infiniband", bytes_per_s_per_gpu=50e9, resource="rdma/hca"),
    )


def _cores(first: int, count: int, stride: int) -> tuple[Core, ...]:
    return tuple(Core(cpus=(c, c + stride)) for c in range(first, first + count))


def sample_host() -> Host:
    """Two sockets of 56 cores with two threads, eight GPUs, eight NICs, 1 TiB a node."""
    gpus = ["1b", "43", "52", "61", "9d", "c3", "d1", "df"]
    nics = ["18", "40", "4f", "5e", "9a", "c0", "ce", "dc"]
    devices = [
        PciDevice(
            kind="gpu",
            model="h100-sxm-80gb",
            address=f"0000:{bus}:00.0",
            numa_node=i // 4,
            iommu_group=100 + i,
            switch=f"switch-{i}",
        )
        for i, bus in enumerate(gpus)
    ] + [
        PciDevice(
            kind="nic",
            model="connectx-7",
            address=f"0000:{bus}:00.0",
            numa_node=i // 4,
            iommu_group=200 + i,
            switch=f"switch-{i}",
            virtual_functions=8,
        )
        for i, bus in enumerate(nics)
    ]
    return Host(
        name="hv-01",
        sockets=2,
        threads_per_core=2,
        numa_nodes=tuple(
            NumaNode(
                node=n,
                cores=_cores(56 * n, 56, 112),
                memory_bytes=1024 * GIB,
                reserved_cores=_cores(56 * n, 2, 112),
                hugepages=960,
                distances=(10, 21) if n == 0 else (21, 10),
            )
            for n in (0, 1)
        ),
        devices=tuple(devices),
        hugepage_bytes=GIB,
        kernel_parameters=("intel_iommu=on", "iommu=pt"),
        cpu_vendor="intel",
        physical_address_bits=46,
    )


def sample_vm() -> VirtualMachine:
    """Four GPUs and 32 cores on node 0."""
    pins = tuple(
        CpuPin(vcpu=2 * i + t, cpu=core.cpus[t])
        for i, core in enumerate(_cores(2, 32, 112))
        for t in (0, 1)
    )
    return VirtualMachine(
        name="tune-0",
        uuid="6ba7b810-9dad-51d1-80b4-00c04fd430c8",
        host="hv-01",
        workload="tune",
        cells=(
            GuestCell(
                cell=0,
                host_node=0,
                pins=pins,
                memory_bytes=512 * GIB,
                emulator_cpus=(0,),
                iothread_cpus=(112,),
            ),
        ),
        threads_per_core=2,
        memory_bytes=512 * GIB,
        hugepage_bytes=GIB,
        devices=tuple(
            GuestDevice(
                name=f"gpu{i}",
                kind="gpu",
                address=f"0000:{bus}:00.0",
                cell=0,
                group=i,
                managed=True,
                bar_bytes=128 * GIB,
            )
            for i, bus in enumerate(("1b", "43", "52", "61"))
        ),
        disks=(Disk(name="root", source="/dev/vg0/tune-0-root", size_bytes=200 * GIB),),
        bridge="br0",
        mac="52:54:00:6a:00:01",
        physical_address_bits=46,
    )


def libvirt_plan() -> Plan:
    """A LoRA run in one VM with four GPUs passed through."""
    base = training_plan()
    workload = base.workloads[0]
    values = {f: getattr(workload, f) for f in workload.__dataclass_fields__}
    values |= {"nodes_per_replica": 1, "gpus_per_node": 4, "gpu_count": 4, "isolation": "vm"}
    return serving_plan(
        name="tune",
        target="libvirt",
        workloads=(Workload(**values),),
        tenants=(),
        components=(),
        node_pools=(serving_pool(node_names=("hv-01",), node_count=1),),
        hosts=(sample_host(),),
        virtual_machines=(sample_vm(),),
    )
