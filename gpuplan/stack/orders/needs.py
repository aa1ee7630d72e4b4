"""What a plan needs of machines that somebody orders, in sentences of Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes import nodes
from gpuplan.plan.model import Component, Order, Plan
from gpuplan.render.markdown import code, escape
from gpuplan.stack.orders.lines import Line
from gpuplan.targets import TARGETS
from gpuplan.units import format_bytes, format_rate, plural

FABRICS = {"infiniband": "InfiniBand", "roce": "RoCE", "efa": "EFA", "ethernet": "Ethernet"}
WITHOUT = "`pulumi config set installGpuOperator false`"


def needs(plan: Plan, order: Order, own: list[Line]) -> Iterator[str]:
    """Of one provider's machines, in the order in which somebody decides."""
    if TARGETS[plan.target].installs_components:
        yield from _release(plan)
        yield from _driver(plan, order)
    for line in own:
        yield from _machine(plan, line)


def _release(plan: Plan) -> Iterator[str]:
    tested = (c for c in plan.components if c.kubernetes_tested)
    releases = (
        f"{' to '.join(c.kubernetes_tested)}, with which {escape(c.name)} {escape(c.version)} was "
        "tested"
        for c in tested
    )
    stated = plan.kubernetes_version
    text = escape(stated) if stated else next(releases, "")
    if text:
        yield f"Kubernetes {text}"


def _driver(plan: Plan, order: Order) -> Iterator[str]:
    """Exactly one installs it."""
    operator = next((c for c in plan.components if c.driver), None)
    if operator is None:
        return
    installs = _installs(operator)
    if order.driver_by == "provider":
        yield f"the provider's own GPU driver, so leave the stack's GPU operator out: {WITHOUT}"
    elif order.driver_by == "nobody":
        yield f"no GPU driver: {installs}"
    elif order.driver_by == "choice":
        yield f"nodes without the provider's GPU driver: {installs}"
    else:
        yield (
            f"one GPU driver: {installs}, and no source says what the provider's nodes come with. "
            f"Where they come with driver and plugin: {WITHOUT}"
        )


def _installs(operator: Component) -> str:
    return (
        f"the stack's {escape(operator.name)} {escape(operator.version)} installs "
        f"{escape(operator.driver or '')}"
    )


def _machine(plan: Plan, line: Line) -> Iterator[str]:
    pool, machine = line.pool, line.machine
    name = code(pool.node_type or pool.name)
    if machine.architecture == "arm64":
        yield f"{name} has an Arm CPU: node images, and all that runs there, are of arm64"
    if machine.together and plan.fabric:
        rate = format_rate(plan.fabric.bytes_per_s_per_gpu)
        has = f"; the machine's is {escape(machine.rdma)}" if machine.rdma else ""
        yield (
            f"{plural(pool.node_count, 'machine')} {name} in one network of "
            f"{FABRICS[plan.fabric.kind]}, {rate} for each GPU{has}"
        )
    if TARGETS[plan.target].installs_components:
        for count, label in nodes.wanted(plan, pool):
            yield f"the label {code(label)} on {plural(count, 'node')} of {name}"
    if machine.scratch_bytes:
        yield f"{_disk(line)} on the own disk of each {name}, beside the images"


def _disk(line: Line) -> str:
    text = format_bytes(line.machine.scratch_bytes)
    if line.machine.nvme_bytes:
        return f"{text} (its drives have {format_bytes(line.machine.nvme_bytes)})"
    if line.machine.nvme_drives:
        return f"{text} (it has {plural(line.machine.nvme_drives, 'drive')})"
    return text
