"""What a plan has others order: each fact with its source, over the plan's plain tree."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.wording import Tree
from gpuplan.units import HOURS_PER_MONTH, format_usd

NAME = "order"


def short(plan: Tree) -> str:
    """A line a pool; empty where nothing is ordered."""
    lines = [line for order in plan.get("orders", ()) for line in _machines(plan, order)]
    return "\n".join(["to order: gpuplan explain STACK order", *lines, ""]) if lines else ""


def whole(plan: Tree) -> str:
    """All that is known of each provider, and what is not."""
    blocks = ("\n".join(_order(plan, order)) + "\n" for order in plan.get("orders", ()))
    return "\n".join(blocks)


def _order(plan: Tree, order: Tree) -> Iterator[str]:
    yield order["name"]
    yield from _machines(plan, order)
    for said in order.get("statements", ()):
        yield f"  {said['subject']:<11} {said['about']}"
        yield f"  {'':<11} {said['source']}"
    for page in order.get("pages", ()):
        yield f"  {page['subject']:<11} {page['url']} ({page['title']}, read {page['date']})"
    if unknown := order.get("not_known"):
        yield f"  not known   {', '.join(unknown)}"


def _machines(plan: Tree, order: Tree) -> Iterator[str]:
    pools = {pool["name"]: pool for pool in plan["node_pools"]}
    for machine in order["machines"]:
        pool = pools[machine["pool"]]
        usd = pool.get("usd_per_hour")
        yield (
            f"  {pool['node_count']} × {pool.get('node_type') or pool['name']} of {order['name']}: "
            + ("unpriced" if usd is None else _price(pool, float(usd)))
        )


def _price(pool: Tree, usd: float) -> str:
    hour = usd * pool["node_count"]
    listed = f" ({pool['priced_at']})" if pool.get("priced_at") else ""
    return f"{format_usd(hour)}/h, {format_usd(hour * HOURS_PER_MONTH)}/month{listed}"
