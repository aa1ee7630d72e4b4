"""What an order does not say because nobody states it, and a driver that two would install."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic, note, warning
from gpuplan.plan.outside.order import Order, Subject
from gpuplan.source import Origin
from gpuplan.targets import making_machines_of

IN_WORDS: dict[Subject, str] = {
    "machines": "what these machines have",
    "prices": "its prices",
    "quotas": "what an account may run (its quotas)",
    "kubernetes": "which releases of Kubernetes it has",
    "driver": "who installs the GPU driver on its nodes",
    "network": "the network between its machines",
    "disks": "how large their own disks are",
    "spot": "how spare capacity is asked for",
}


def order_notes(orders: Sequence[Order], document: str) -> Iterator[Diagnostic]:
    at = Origin(document, ("platform",))
    for order in orders:
        if order.not_known:
            yield _unknown_to_order(order, at)
        if order.driver_by == "provider":
            yield _two_operators(order, at)


def _unknown_to_order(order: Order, at: Origin) -> Diagnostic:
    words = "; ".join(IN_WORDS[subject] for subject in order.not_known)
    made = making_machines_of(order.provider)
    return note(
        "GP014",
        f"no stack of this target makes machines: order.csv lists those of {order.name}. What no "
        f"source of the catalogue says of them: {words}",
        at,
        help="ask the provider before you order"
        + (f"; or write `target: {made}`, whose stacks make them" if made else ""),
    )


def _two_operators(order: Order, at: Origin) -> Diagnostic:
    said = next(s for s in order.statements if s.subject == "driver")
    return warning(
        "GP014",
        f"the stack installs GPU operator, and the nodes of {order.name} have driver and plugin of "
        f"their provider ({said.source}): a GPU would be offered twice",
        at,
        help="`pulumi config set installGpuOperator false` before the first `pulumi up`, and leave "
        "it out of the charts",
    )
