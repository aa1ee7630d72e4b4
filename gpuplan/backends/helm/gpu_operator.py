"""Values of NVIDIA's GPU operator: MIG layouts, driver, metrics."""

from __future__ import annotations

from gpuplan.backends.helm.mirrors import DISCOVERY, with_mirrors
from gpuplan.engines.start import RUNS
from gpuplan.kubernetes import mig, naming, nodes
from gpuplan.kubernetes.addons import charts
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.plan.partitions import MIG_CONFIG_LABEL
from gpuplan.render.commented import Because, Tree
from gpuplan.vendors import vendor_of

# Names: go-dcgm's field list. All of these exist on partitioned GPUs too; the `…_UTIL` fields do
# not (dcgm-exporter #430).
METRICS = (
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Share of time the compute engine is active."),
    ("DCGM_FI_PROF_SM_ACTIVE", "gauge", "Share of cycles an SM has a warp assigned."),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Share of cycles the tensor cores are active."),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Share of cycles the memory interface is active."),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "PCIe bytes sent per second."),
    ("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "PCIe bytes received per second."),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Memory used (MiB)."),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "Memory free (MiB)."),
    ("DCGM_FI_DEV_FB_RESERVED", "gauge", "Memory reserved (MiB)."),
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock (MHz)."),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (C)."),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (C)."),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power (W)."),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy since the driver was loaded (mJ)."),
    ("DCGM_FI_DEV_XID_ERRORS", "gauge", "The last XID error."),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe retries."),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped after correctable errors."),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped after other errors."),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether a row could not be remapped."),
)
NAME = "gpu-operator"
CONTROL_PLANE = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Equal",
    "value": "",
    "effect": "NoSchedule",
}
UTILIZATION = ("DCGM_FI_DEV_GPU_UTIL", "gauge", "Share of time any kernel runs (%).")
NVLINK = ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "NVLink traffic of all lanes.")


def values(plan: Plan) -> Tree:
    """Only keys that differ from the chart's defaults, each with its reason. The driver's version
    is among the defaults unless the manifest asks for another one."""
    tree: Tree = {}
    if mig.needed(plan):
        tree |= _partitions(plan)
    if plan.cloud and plan.cloud.driver_on_nodes:
        tree |= _on_nodes(plan.cloud)
    elif driver := _driver(plan):
        tree["driver"] = driver
    tree |= _tolerations(plan)
    tree["dcgmExporter"] = {"config": _metrics(plan)}
    return with_mirrors(tree | _discovery(plan), plan.network)


def _discovery(plan: Plan) -> Tree:
    """It discovers the features of other vendors' nodes, too, whose operators bring none then. The
    list replaces the chart's own, which begins it."""
    own = vendor_of(None)
    taints = {p.maker.taint for p in plan.node_pools} - {own.taint}
    if not taints:
        return {}
    tolerations = nodes.tolerations([own.taint, *sorted(taints)])
    reason = "other vendors' nodes are discovered by it, too"
    return {DISCOVERY: {"worker": {"tolerations": Because([CONTROL_PLANE, *tolerations], reason)}}}


def _partitions(plan: Plan) -> Tree:
    """The map replaces the profiles that MIG manager generates, the chart's default among them. It
    is an object of its own: other stacks' nodes are cut by it, too. A cloud's machine is booted to
    switch MIG. Source: NVIDIA, GPU Operator with MIG, cloud service providers."""
    strategy = Because(
        "mixed",
        "pods ask for a MIG profile by name; GPUs that are not cut are asked for as a whole",
    )
    if mig.by_cloud(plan):
        own = {"enabled": Because(False, "the cloud cuts the GPUs of a pool")}  # noqa: FBT003
        return {"mig": {"strategy": strategy}, "migManager": own}
    reason = (
        f"the map in {charts.MAP_FILE}; a node takes the profile that its label"
        f" {MIG_CONFIG_LABEL} names"
    )
    config = {"name": Because(mig.map_name(plan), reason)}
    manager: Tree = {"config": config}
    if plan.cloud:
        boot = [{"name": "WITH_REBOOT", "value": "true"}]
        manager["env"] = Because(boot, "a node boots to switch MIG")
    return {"mig": {"strategy": strategy}, "migManager": manager}


def _tolerations(plan: Plan) -> Tree:
    """The chart's own know the taint of GPUs alone. Source: NVIDIA/gpu-operator #577."""
    own = (pool for pool in plan.node_pools if pool.maker == vendor_of(None))
    keys = dict.fromkeys(key for pool in own for key in nodes.taints(plan, pool))
    if len(keys) <= 1:
        return {}
    tolerations = nodes.tolerations(keys)
    reason = "as the chart has them, and the taints that the cloud puts on spare capacity"
    worker = {"worker": {"tolerations": Because([CONTROL_PLANE, *tolerations], reason)}}
    return {
        "daemonsets": {"tolerations": Because(tolerations, reason)},
        DISCOVERY: worker,
    }


def _on_nodes(cloud: Cloud) -> Tree:
    """The driver and the toolkit are in the image of the nodes."""
    has = "the image of the nodes has it"
    chart: Tree = {"driver": {"enabled": Because(False, has)}}  # noqa: FBT003
    chart["toolkit"] = {"enabled": Because(False, has)}  # noqa: FBT003
    if cloud.runtime_class:
        reason = "as the nodes' container runtime has it"
        chart["operator"] = {"runtimeClass": Because(cloud.runtime_class, reason)}
    return chart


def _driver(plan: Plan) -> Tree:
    tree: Tree = {}
    for component in (c for c in plan.components if c.name == NAME and c.driver_asked_for):
        tree["version"] = Because(component.driver, "as platform.versions asks for")
    if plan.fabric and plan.fabric.kind in ("infiniband", "roce"):
        reason = (
            f"GPUs and {plan.fabric.kind} adapters share memory by DMA-BUF, which needs the open"
            " modules. The older way, driver.rdma, waits for OFED on the node"
        )
        tree["kernelModuleType"] = Because("open", reason)
    if any(w.task in RUNS for w in plan.workloads):
        selector = (
            f"app.kubernetes.io/managed-by={naming.MANAGER},"
            f"app.kubernetes.io/component in ({', '.join(RUNS)})"
        )
        reason = "a driver upgrade waits for runs to end instead of deleting their pods"
        wait = {"podSelector": Because(selector, reason)}
        tree["upgradePolicy"] = {"waitForCompletion": wait}
    return tree


def _metrics(plan: Plan) -> Tree:
    """The exporter reads its list at start: a new name makes new pods."""
    rows = [*METRICS]
    if not mig.needed(plan):
        rows.append(UTILIZATION)
    if any(p.interconnect.startswith("nvlink") for p in plan.node_pools):
        rows.append(NVLINK)
    text = "".join(f"{name}, {kind}, {words}\n" for name, kind, words in rows)
    reason = "tensor and memory activity show which bound holds; supported on partitions too"
    return {
        "create": True,
        "name": f"gpuplan-metrics-{naming.fingerprint(text)}",
        "data": Because(text, reason),
    }
