"""What a workload meets first: each thing that may run out, with what is needed of it, what there
is, and the cheapest way to more. It gathers what the ledger has; no figure is worked out here a
second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.plan.model import Metric, ResourceUse, Training
from gpuplan.plan.window import LEAST_CORES
from gpuplan.sizing.ask.demand import Demand, NotebookDemand, TrainingDemand, VisionRunDemand
from gpuplan.sizing.candidates.balance import remedies
from gpuplan.sizing.candidates.balance.gathered import Gathered
from gpuplan.sizing.candidates.balance.gpus import gpus
from gpuplan.sizing.candidates.balance.traffic import answered, exchanged, moved
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.resources import LEAST_MEMORY
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.hardware.power import record_node_watts
from gpuplan.targets import NO_RACKS, TARGETS
from gpuplan.units import plural

_CORES = constant(LEAST_CORES, "1", "physical cores a GPU, the least of 4 to 8")
_HELD = "a replica's node, at least"
_PART = "{} * devices / devices_per_gpu"
_IN_A_RACK = Formula("max(1, min(nodes, floor(rack_watts / node_watts)))", "1", "whole nodes")
_DRAWN = Formula("rack_nodes * node_watts", "W", "what the nodes of a rack draw at most")
_ALL_DRAWN = Formula("nodes * node_watts", "W", "what the nodes draw at most")


def record_balance(
    settled: Settled[Demand],
    site: Site,
    candidate: Candidate,
    *,
    metrics: Sequence[Metric],
    bound_by: str,
    training: Training | None,
) -> tuple[ResourceUse, ...]:
    """The rows of a workload that is recorded whole, what is nearest to its limit first, then
    what is advised and no limit, and last those of which something is unknown. Of notebooks, whose
    load nobody states, only power."""
    of = Gathered(settled.ledger, settled.demand, site, candidate, metrics, bound_by, training)
    rows = [_power(of)]
    if not isinstance(of.demand, NotebookDemand):
        rows += [*gpus(of), *_host(of), *_traffic(of)]
    return tuple(sorted(rows, key=_place))


def _place(row: ResourceUse) -> tuple[bool, bool, float]:
    share = row.share
    return share is None, row.resource == "cpu_cores", -(share or 0.0)


def _traffic(of: Gathered) -> Iterator[ResourceUse]:
    if isinstance(of.demand, TrainingDemand):
        return moved(of)
    return exchanged(of) if isinstance(of.demand, VisionRunDemand) else answered(of)


def _host(of: Gathered) -> Iterator[ResourceUse]:
    """Cores and memory of the node beside its GPUs: the least that keeps these fed, since more is
    given where there is more. Of cores that is advice, since a pod is given those there are; its
    memory is never less. Where images are decoded, that is what cores do."""
    devices = of.known("gpus_per_replica_node")
    if devices is None:
        return
    shared = Quantity(float(of.candidate.device.per_gpu), "1", "constant: devices that share a GPU")
    counts = {"devices": devices, "devices_per_gpu": shared}
    for resource, least, known, field, held in (
        ("cpu_cores", _CORES, "cores_for_a_gpu", "cpu_cores", "a replica's node"),
        ("host_memory", LEAST_MEMORY, "memory_for_a_gpu", "memory", _HELD),
    ):
        if resource == "cpu_cores" and of.known("decoded_images_per_second"):
            continue
        each = f"{resource}_of_a_gpu"
        part = Formula(_PART.format(each), least.unit, "of its devices")
        need = of.ledger.derive(f"needs.{resource}", part, **{each: least}, **counts)
        stated, supply = of.known(known), None
        if stated is not None:
            supply = of.ledger.derive(f"supply.{resource}", part, **{each: stated}, **counts)
        unknown = f"a node's is not stated (`platform.node.{field}`, or an inventory)"
        yield of.use(resource, held, need, supply, remedies.HOST[resource], unknown=unknown)


def _power(of: Gathered) -> ResourceUse:
    """Of whole servers where a source says so, in a rack where the manifest says what one feeds."""
    offer = of.candidate.device.offer
    rack = offer.rack_watts
    count = of.candidate.pool[0] if of.candidate.pool else of.candidate.nodes
    count += of.candidate.pool_spares if of.candidate.pool else of.candidate.spares
    nodes = Quantity(float(count), "1", "choice: nodes of its pool")
    watts = record_node_watts(of.ledger, offer)
    what = "whole" if offer.node_watts is not None else "GPU boards alone"
    if rack is None:
        need = of.ledger.derive("needs.power", _ALL_DRAWN, nodes=nodes, node_watts=watts)
        clouds = NO_RACKS in TARGETS[of.site.target].ignored_of_platform
        unknown = NO_RACKS.reason if clouds else "`platform.rack_power` is not stated"
        held = f"{plural(count, 'node')}, {what}"
        return of.use("power", held, need, None, "", unknown=unknown)
    inputs = {"nodes": nodes, "rack_watts": rack, "node_watts": watts}
    held_by = of.ledger.derive("needs.rack_nodes", _IN_A_RACK, **inputs)
    need = of.ledger.derive("needs.power", _DRAWN, rack_nodes=held_by, node_watts=watts)
    held = f"a rack with {int(held_by):,} of {plural(count, 'node')}, {what}"
    return of.use("power", held, need, rack, remedies.power(int(held_by)))
