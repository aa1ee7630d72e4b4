"""Rules about NVLink domains of several nodes."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import Workload, by_name
from gpuplan.plan.outside.objects import JOB
from gpuplan.plan.partitions import DOMAIN_LABEL
from gpuplan.policy.api import Block, Finding, Subject
from gpuplan.targets import TARGETS
from gpuplan.units import plural

KEYS = ("topologyKey", "topology_key")  # of a mapping, and of the SDK's class
REQUIRED = ("requiredDuringScheduling", "required_during_scheduling")
SEGMENT = "--segment"


def one_domain(subject: Subject) -> Iterator[Finding]:
    """Nothing keeps the nodes of a run or of a replica in one NVLink domain.

    Why: the plan counts on NVLink between all its nodes, 900 GB/s a GPU on GB200. Spread over two
    racks they exchange over the network, 50 GB/s: every token and every step takes many times as
    long, and nothing fails.

    Looks at: the pod templates of the generated program (a required `podAffinity` on
    `nvidia.com/gpu.clique` in each), or `--segment` of the batch script, of each workload that the
    plan puts into one domain; and the nodes that a domain of its pool joins, which are to be as
    many as the run has with those that stand by for it.

    Threshold: none.

    Fix: compile the manifest again. Where the cluster's nodes do not have the label, remove
    `nvlink_nodes` from the manifest, or `nvlink_domain` from the inventory: then the plan stays
    inside a node.

    Silent: about pods, where the stack has no program; about whether the nodes have the label;
    about pods that somebody else's scheduler binds.
    """
    for work in (w for w in subject.plan.workloads if w.one_domain):
        if lacking := _lacking(subject, work):
            yield Finding(
                resource=f"workload/{work.name}",
                path=f"workloads[{work.name}].one_domain",
                message=f"{work.name} counts on NVLink between {work.nodes_per_replica} nodes, but "
                f"{lacking}",
                help="compile the manifest again; without the label on the nodes, remove"
                " 'nvlink_nodes' from it, or 'nvlink_domain' from the inventory",
                origin=work.origin,
            )


def _lacking(subject: Subject, work: Workload) -> str:
    """What does not keep it inside a domain; empty where all does."""
    joined = by_name(subject.plan.node_pools, work.node_pool).domain_nodes
    if joined < work.nodes_per_replica + work.spare_nodes:
        spare = work.spare_nodes
        beside = f", and {plural(spare, 'node')} may take a place" if spare else ""
        return f"in its pool it joins {joined}{beside}"
    if TARGETS[subject.plan.target].lists_machines:
        jobs = (i for i in subject.written if i.kind == JOB and i.name == work.name)
        kept = all(_segment(item.get(SEGMENT)) == work.nodes_per_replica for item in jobs)
        return "" if kept else f"no {SEGMENT}={work.nodes_per_replica} keeps its job in a block"
    if not any(f.path.endswith(".py") for f in subject.files):
        return ""
    templates = 2 if work.serving else 1  # of the leader and of the others
    kept_pods = sum(_keeps(block, work.name) for block in subject.blocks)
    return "" if kept_pods >= templates else f"not all its pods require nodes of one {DOMAIN_LABEL}"


def _segment(setting: object) -> int | None:
    value = getattr(setting, "value", "")
    return int(value) if value.isdecimal() else None


def _keeps(block: Block, name: str) -> bool:
    """Whether it is a rule of the workload's pods that binds none of them elsewhere."""
    required = any(part in block.path for part in REQUIRED)
    labels = [e.value for k in KEYS if (e := block.get(k)) is not None and e.known]
    return required and block.resource.endswith(f"[{name}]") and DOMAIN_LABEL in labels
