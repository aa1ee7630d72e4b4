"""What no packing costs less than, by the linear program over contents of whole nodes."""

from __future__ import annotations

from math import ceil, gcd

from gpuplan.fleet.solver.nodes.contents import NodeSite
from gpuplan.fleet.solver.nodes.cover import Answer
from gpuplan.fleet.solver.nodes.generate import Generator
from gpuplan.fleet.solver.outline.formulate import EPSILON, SCALE

SLACK = 1e-7  # of the cost, for the solver's tolerances


def proven(generator: Generator, answer: Answer, cost: int) -> int:
    """The bound, in micro-USD, where every packing is made of contents; `cost` is that of one
    that places all.

    The program has not all contents. One that it has not can lower its cost by what it is worth
    beyond its node, on as many nodes as a packing has that costs no more than `cost`. Source: the
    Lagrangian bound in Lübbecke and Desrosiers, Selected topics in column generation (2005).
    """
    fleet, least = generator.fleet, answer.objective
    for site, pricing in generator.priced.items():
        price = answer.price[site]
        beyond = pricing.ceiling(answer.at(site[0]), price) - price
        if beyond > 0:
            least -= beyond * _nodes(generator, site, cost)
    least *= (1 - SLACK) * (1 - EPSILON)
    step = gcd(*(chassis.cost for chassis in fleet.chassis)) or 1
    return ceil(least * SCALE / step) * step


def _nodes(generator: Generator, site: NodeSite, cost: int) -> int:
    """Of a site, in a packing that costs no more."""
    chassis = generator.fleet.chassis[site[0]]
    hosts = cost // max(chassis.cost, 1)
    if chassis.available is not None:
        hosts = min(hosts, chassis.available)
    return hosts * generator.cover.on_host(site)
