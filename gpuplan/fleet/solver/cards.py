"""Which card each virtual function comes from: one on the GPU's switch first."""

from __future__ import annotations

from gpuplan.fleet.problem import Placed
from gpuplan.fleet.solver.state import OpenHost, State

Cards = dict[int, tuple[int, ...]]


def assign_cards(state: State, kept: dict[int, Placed]) -> Cards:
    """For each item one card number a function, node by node. Who stays keeps its cards."""
    chosen: Cards = {}
    for host in state.hosts.values():
        free = [[card.functions for card in node.cards] for node in host.chassis.host.nodes]
        wanted = [(item, _wanted(state, host, item)) for item in host.items]
        for item, needs in wanted:
            if item in kept:
                _keep(chosen, free, item, needs, kept[item].cards)
        for item, needs in wanted:
            if needs and item not in chosen:
                chosen[item] = tuple(c for need in needs for c in _take(host, free, need))
    return chosen


NodeNeed = tuple[int, int, int]  # node, functions, GPUs as bits


def _wanted(state: State, host: OpenHost, item: int) -> list[NodeNeed]:
    where = state.where[item]
    assert where is not None, "a host lists who stands on it"
    choice, _, mask, _, _ = where
    left, needs = choice.wanted[2], []
    for node, gpus in host.chassis.parts_of(mask):
        number = min(choice.on(gpus)[2], left)  # parts are rounded up, their sum may be more
        left -= number
        if number:
            needs.append((node, number, mask & host.chassis.masks[node]))
    return needs


def _keep(
    chosen: Cards, free: list[list[int]], item: int, needs: list[NodeNeed], cards: tuple[int, ...]
) -> None:
    if len(needs) != 1 or len(cards) != needs[0][1]:
        return
    room = free[needs[0][0]]
    if all(c < len(room) and cards.count(c) <= room[c] for c in cards):
        chosen[item] = cards
        for card in cards:
            room[card] -= 1


def _take(host: OpenHost, free: list[list[int]], need: NodeNeed) -> list[int]:
    """Functions from cards of a node: near ones first, then those with most left."""
    node, number, mask = need
    cards, room = host.chassis.host.nodes[node].cards, free[node]
    gpus = {host.chassis.numbers[g] for g in range(host.chassis.gpus) if mask >> g & 1}
    taken = []
    for _ in range(number):
        order = (
            (not gpus & set(card.gpus), -room[c], c) for c, card in enumerate(cards) if room[c]
        )
        card = min(order)[2]
        room[card] -= 1
        taken.append(card)
    return taken
