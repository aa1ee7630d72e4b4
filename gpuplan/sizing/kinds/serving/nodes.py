"""Replicas over several nodes: which services may have them, and how a model is divided over them.

Tensor parallelism stays where NVLink joins GPUs: inside a node, or on the nodes of one NVLink
domain. A pipeline has whole stages on each of them; a mixture may have data-parallel attention
instead, with its experts over all GPUs. Only engines whose own
documentation starts a replica so are asked: vLLM (docs/serving/parallelism_scaling.md,
data_parallel_deployment.md, expert_parallel_deployment.md), SGLang (docs/references/multi_node).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.models.model import Transformer
from gpuplan.sizing.ask.demand import Demand, LanguageDemand, ServingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import Device, fabric_rate, quantity
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving.limit import LimitedReplica, gate
from gpuplan.sizing.physics.serving.service import Division
from gpuplan.targets import TARGETS
from gpuplan.vendors import vendor_of

ENGINES = ("vllm", "sglang")
MOST_NODES = 6  # of a replica: the largest bundled model in bf16, on nodes of 8 × 80 GB
MEMORY = ("gpu_memory", "kv_cache")
LATENCY = ("time_to_first_token", "time_per_output_token", "request_latency")
MOST_TENSOR = 16  # over nodes: the largest all-reduce that was measured there


def possible(demand: LanguageDemand, site: Site) -> bool:
    """Whether its engine starts a replica over nodes, and the target brings those together."""
    starts = demand.engine.name in ENGINES and not demand.command
    return starts and isinstance(demand, ServingDemand) and TARGETS[site.target].groups


def apart(demand: Demand, site: Site) -> str:
    """Why no replica of what the site's nodes are too small for lies on several; empty where
    nothing of the workload or its target keeps it from that."""
    if not isinstance(demand, LanguageDemand) or possible(demand, site):
        return ""
    if not isinstance(demand, ServingDemand):
        return "each replica of a batch lies on one node"
    if not TARGETS[site.target].groups:
        return f"each replica of a service lies on one machine of target '{site.target}'"
    if demand.command:
        return "a 'command' of your own starts each replica on one node"
    return f"{demand.engine.name} is started on one node; {' and '.join(ENGINES)} on several"


def most(demand: LanguageDemand, device: Device, site: Site) -> int:
    """Nodes that a replica may have."""
    if device.partition is not None or not possible(demand, site):
        return 1
    if not vendor_of(device.gpu.vendor).groups:
        return 1
    limit = min(device.offer.node_count or MOST_NODES, MOST_NODES)
    return min(limit, device.offer.nvlink_nodes) if site.fabric is None else limit


def rate(device: Device, site: Site, division: Division) -> Quantity | None:
    """What a GPU has to those of other nodes; None inside a node."""
    if division.nodes == 1:
        return None
    if in_domain(device, division.nodes):
        link = quantity(device.gpu.link_bytes_per_s)
        joins = f"NVLink joins {device.offer.nvlink_nodes} nodes"
        return Quantity(link.value, link.unit, f"{link.source}, {joins}")
    assert site.fabric is not None, "nodes that nothing joins have no division"
    return fabric_rate(device.offer, site.fabric, division.nodes)


def short_of_memory(inside: Iterable[Candidate]) -> bool:
    """Whether memory, and nothing else, limits a whole node: it holds no replica, or several nodes
    hold replicas that had more requests if they had more room."""
    return any(map(_short, _largest(list(inside))))


def too_slow(inside: Iterable[Candidate]) -> bool:
    """Whether a whole node misses an objective of the latency that more GPUs may reach."""
    tried = list(inside)
    return not any(c.feasible for c in tried) and any(
        c.shortfalls[0].resource in LATENCY for c in _largest(tried)
    )


def _largest(tried: list[Candidate]) -> list[Candidate]:
    """Those on most GPUs."""
    most = max((c.gpus for c in tried), default=0)
    return [c for c in tried if c.gpus == most]


def _short(candidate: Candidate) -> bool:
    """Whether memory limits it where it takes most of a node, so that no larger group inside one
    has more room, or several nodes, of which larger replicas may take fewer."""
    lacking = "" if candidate.feasible else candidate.shortfalls[0].resource
    whole = 2 * candidate.gpus > candidate.device.offer.gpus_per_node
    if lacking in (*MEMORY, "gpus_per_node"):
        return whole
    several = candidate.nodes > 1 if lacking in ("", "nodes") else whole and lacking == "replicas"
    layout = candidate.detail
    if not several or not isinstance(layout, LimitedReplica):
        return False
    shortfalls, _ = gate(layout.replica, layout.limit + 1)
    return bool(shortfalls) and shortfalls[0].resource in MEMORY


def divisions(
    demand: LanguageDemand, device: Device, nodes: int, *, networked: bool = True
) -> Iterator[Division]:
    """Those over `nodes` whole nodes that divide heads and experts: a pipeline of the largest
    groups that split a layer, as the engines advise, which a search refuses where its stages do not
    divide the layers, and attention in groups of any size. No engine drafts in a pipeline (vLLM,
    docs/features/speculative_decoding). Nodes that are not `networked` have NVLink between them, or
    nothing."""
    near = in_domain(device, nodes)
    if not near and not networked:
        return
    room, model, chosen = device.offer.gpus_per_node, demand.model, demand.overrides
    most = min(nodes * room, MOST_TENSOR) if near else room
    sizes = [1 << n for n in range(most.bit_length()) if (nodes * room) % (1 << n) == 0]
    sizes = [n for n in sizes if uneven(model, n) is None and _whole_nodes(n, room)]
    if chosen.tensor_parallel_size is not None:
        sizes = [n for n in sizes if n == chosen.tensor_parallel_size.value]
    stages = None if chosen.pipeline_parallel_size is None else demand.overrides.stages
    for tensor in sizes:
        groups = nodes * room // tensor
        piped = tensor in (sizes[-1], room) and (groups == 1 or demand.drafts is None)
        if piped and stages in (None, groups):
            yield Division(tensor_parallel_size=tensor, pipeline_stages=groups, nodes=nodes)
        if groups > 1 and _experts_divide(model, nodes * room) and stages in (None, 1):
            yield Division(
                tensor_parallel_size=tensor,
                data_parallel_size=groups,
                expert_parallel_size=nodes * room,
                nodes=nodes,
            )


def _whole_nodes(tensor: int, room: int) -> bool:
    """Whether a group lies in a node, or takes whole ones."""
    return room % tensor == 0 or tensor % room == 0


def uneven(model: Transformer, gpus: int) -> tuple[int, str] | None:
    """The dimension that `gpus` do not split evenly, if any."""
    width = model.experts.intermediate_size if model.experts else model.intermediate_size
    if model.attention_heads % gpus:
        return model.attention_heads, "attention heads"
    kv_heads = model.kv_heads
    if not model.latent and kv_heads % gpus and gpus % kv_heads:
        return kv_heads, "KV heads"
    return (width, "rows of the MLP") if width % gpus else None


def _experts_divide(model: Transformer, gpus: int) -> bool:
    return model.experts is not None and model.experts.count % gpus == 0
