"""A second opinion on a packed fleet: what must hold, from the problem and the answer alone.

Nothing of the solver but its records is used here, so that a mistake there is not repeated.
Counts are made from scratch, item by item; nothing is fast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from gpuplan.fleet.problem import HostType, Option, Placed, Problem, Request, Result
from gpuplan.sharing.modes import Mode, Part

Where = tuple[str, int]


@dataclass
class Room:
    """A host with what stands on it."""

    kind: HostType
    items: list[tuple[Placed, Request, Option]] = field(default_factory=list)


def faults(problem: Problem, result: Result, *, refusals: bool = True) -> list[str]:
    """Everything wrong with `result`. `refusals` looks for room for what was refused."""
    found = [*_accounts(problem, result)]
    rooms, wrong = _rooms(problem, result)
    found += wrong
    for (name, number), room in sorted(rooms.items()):
        found += [f"{name} {number}: {text}" for text in _host(problem, room)]
    found += _spread(problem, result)
    found += _hosts(problem, result, rooms)
    found += _moves(problem, result)
    if refusals and not found:
        found += _refusals(problem, result, rooms)
    return found


def _accounts(problem: Problem, result: Result) -> Iterator[str]:
    """Every item is placed or refused, once."""
    wanted = {(r.name, n) for r in problem.requests for n in range(r.count + r.growth)}
    seen = Counter((p.request, p.number) for p in result.placed)
    seen += Counter((r.request, n) for r in result.refused for n in r.numbers)
    for item, times in sorted(seen.items()):
        if item not in wanted:
            yield f"{item} was not asked for"
        elif times > 1:
            yield f"{item} {times} times"
    yield from (f"{item} is neither placed nor refused" for item in sorted(wanted - set(seen)))


def _rooms(problem: Problem, result: Result) -> tuple[dict[Where, Room], list[str]]:
    kinds = {k.name: k for k in problem.hosts}
    requests = {r.name: r for r in problem.requests}
    rooms: dict[Where, Room] = {}
    wrong: list[str] = []
    for item in result.placed:
        label = f"{item.request} {item.number}"
        kind, request = kinds.get(item.host_type), requests.get(item.request)
        if kind is None or request is None:
            wrong.append(f"{label}: no host type '{item.host_type}'")
            continue
        if item.host < 0 or (kind.available is not None and item.host >= kind.available):
            wrong.append(f"{label}: host {item.host} of {kind.available} {kind.name}")
        option = _option(kind, request, item)
        if option is None:
            wrong.append(f"{label}: no option is {item.gpus} {item.mode} {item.part} of {kind.gpu}")
            continue
        room = rooms.setdefault((item.host_type, item.host), Room(kind))
        room.items.append((item, request, option))
    return rooms, wrong


def _option(kind: HostType, request: Request, item: Placed) -> Option | None:
    """The option that was used; of several with the same shape the one that asks least."""
    same = [
        o
        for o in request.options
        if o.gpu == kind.gpu
        and (o.mode, o.part) == (item.mode, item.part)
        and len(item.gpus) == (o.gpus or 1)
        and (o.part is None) == (o.gpus > 0)
    ]
    return min(same, key=lambda o: (o.cores, o.memory_bytes, o.functions), default=None)


def _host(problem: Problem, room: Room) -> Iterator[str]:
    everything = {g for node in room.kind.nodes for g in node.gpus}
    for item, _, _ in room.items:
        if len(set(item.gpus)) < len(item.gpus) or not set(item.gpus) <= everything:
            yield f"{item.request}: GPUs {item.gpus} of {sorted(everything)}"
            return
    yield from _tenants(room)
    yield from _whole(room)
    model = next(m for m in problem.gpus if m.name == room.kind.gpu)
    modes = {m.name: m for m in model.modes}
    for gpu in sorted(everything):
        held = [(i, r) for i, r, _ in room.items if gpu in i.gpus]
        yield from (f"GPU {gpu}: {text}" for text in _gpu(modes, held))
    yield from _resources(room)


def _tenants(room: Room) -> Iterator[str]:
    for item, request, _ in room.items:
        for other, neighbour, _ in room.items:
            if neighbour.tenant == request.tenant:
                continue
            near = bool(set(item.gpus) & set(other.gpus))
            if request.isolation == "node" or (request.isolation == "gpu" and near):
                yield f"{item.request} ({request.isolation}) beside tenant '{neighbour.tenant}'"
                break


def _whole(room: Room) -> Iterator[str]:
    """Items on whole GPUs: on islands, on one node where it is big enough, groups not torn. Parts
    are given out by the host's driver, which keeps the GPUs of a group."""
    kind = room.kind
    for item, _, _ in room.items:
        if item.part is not None:
            if item.mode is None or len(item.gpus) != 1:
                yield f"{item.request}: a part of {len(item.gpus)} GPUs in mode {item.mode}"
        else:
            yield from _set_of_gpus(kind, item)
    for group in kind.together:
        inside = set(group)
        for item, _, _ in room.items:
            if item.part is None and inside & set(item.gpus) and not inside <= set(item.gpus):
                yield f"{item.request}: GPUs {item.gpus} of the group {group}"


def _set_of_gpus(kind: HostType, item: Placed) -> Iterator[str]:
    gpus = set(item.gpus)
    if item.mode is not None or item.start is not None:
        yield f"{item.request}: whole GPUs in mode {item.mode} at {item.start}"
    if gpus & set(kind.unpassed):
        yield f"{item.request}: GPUs {item.gpus}, of which no guest gets {kind.unpassed} whole"
    if len(gpus) == 1:
        return
    if kind.islands:
        if not any(gpus == set(island) for island in kind.islands):
            yield f"{item.request}: GPUs {item.gpus} are no island"
    elif any(len(gpus) <= len({*n.gpus} - {*kind.unpassed}) for n in kind.nodes) and not any(
        gpus <= set(n.gpus) for n in kind.nodes
    ):
        yield f"{item.request}: GPUs {item.gpus} are of several nodes, and one is big enough"


def _gpu(modes: dict[str, Mode], held: list[tuple[Placed, Request]]) -> Iterator[str]:
    """One use of a GPU: by one whole item, or by parts of one mode."""
    whole = [i for i, _ in held if i.part is None]
    if whole and len(held) > 1:
        yield f"{whole[0].request} has it whole, and {len(held) - 1} more are there"
    used = {i.mode for i, _ in held if i.part is not None}
    if len(used) > 1:
        yield f"in the modes {sorted(map(str, used))}"
    if whole or len(used) != 1:
        return
    mode = modes.get(str(used.pop()))
    if mode is None:
        yield f"has no mode '{held[0][0].mode}'"
        return
    parts = {p.name: p for p in mode.parts}
    placed = [(parts.get(str(i.part)), i) for i, _ in held]
    if any(p is None for p, _ in placed):
        yield f"mode {mode.name} has no {[i.part for p, i in placed if p is None]}"
        return
    yield from _mode(mode, [(p, i) for p, i in placed if p is not None])


def _mode(mode: Mode, placed: list[tuple[Part, Placed]]) -> Iterator[str]:
    counts = Counter(p.name for p, _ in placed)
    limits = {p.name: p.maximum for p, _ in placed}
    for name, times in counts.items():
        if times > limits[name]:
            yield f"{times} × {name}, at most {limits[name]}"
    if mode.uniform:
        if len(counts) > 1:
            yield f"sizes {sorted(counts)} on one GPU"
        if any(i.start is not None for _, i in placed):
            yield "a start in a uniform mode"
        return
    yield from _units(mode, placed)
    compute = sum(p.compute for p, _ in placed)
    if compute > mode.compute_units:
        yield f"{compute} of {mode.compute_units} compute units"
    yield from _media([p for p, _ in placed])


def _units(mode: Mode, placed: list[tuple[Part, Placed]]) -> Iterator[str]:
    taken: Counter[int] = Counter()
    for part, item in placed:
        if item.start is None or item.start not in part.starts:
            yield f"{part.name} at {item.start}, legal are {part.starts}"
            continue
        taken.update(range(item.start, item.start + part.size))
    if any(times > 1 for times in taken.values()):
        yield f"units {sorted(u for u, t in taken.items() if t > 1)} taken twice"
    if any(not 0 <= unit < mode.units for unit in taken):
        yield f"units beyond {mode.units}"


def _media(parts: list[Part]) -> Iterator[str]:
    """The engines for video: one part with them in its name (`+me`, `+me.all`) on a GPU; beside one
    that has all, the others are without (`-me`)."""
    claims = Counter(p.extension for p in parts)
    if claims["+me"] + claims["+me.all"] > 1:
        yield f"media engines claimed by {dict(claims)}"
    if claims["+me.all"] and any(p.extension not in ("+me.all", "-me") for p in parts):
        yield "a part with media engines beside one that has them all"


def _resources(room: Room) -> Iterator[str]:
    """Cores, memory and virtual functions by NUMA node, functions also by card."""
    used: Counter[tuple[int, int]] = Counter()
    cards: Counter[tuple[int, int]] = Counter()
    for item, _, option in room.items:
        parts = _divided(room.kind, item.gpus)
        for node, here in parts.items():
            asked = (option.cores, option.memory_bytes, option.functions)
            for place, amount in enumerate(asked):
                used[node, place] += _part(amount, here, len(item.gpus))
        yield from _cards(room.kind, item, option, parts, cards)
    for number, node in enumerate(room.kind.nodes):
        there = (node.cores, node.memory_bytes, sum(c.functions for c in node.cards))
        names = ("cores", "bytes of memory", "virtual functions")
        amounts = [(used[number, n], limit, names[n]) for n, limit in enumerate(there)]
        for place, card in enumerate(node.cards):
            amounts.append((cards[number, place], card.functions, f"functions of card {place}"))
        for amount, limit, name in amounts:
            if amount > limit:
                yield f"NUMA node {number}: {amount} of {limit} {name}"


def _part(amount: int, here: int, gpus: int) -> int:
    """The part of a node that has `here` of the item's GPUs, rounded up."""
    return -(-amount * here // gpus)


def _divided(kind: HostType, gpus: Iterable[int]) -> dict[int, int]:
    """How many of `gpus` each node has."""
    counts = {i: len(set(gpus) & set(n.gpus)) for i, n in enumerate(kind.nodes)}
    return {node: count for node, count in counts.items() if count}


def _cards(
    kind: HostType,
    item: Placed,
    option: Option,
    parts: dict[int, int],
    used: Counter[tuple[int, int]],
) -> Iterator[str]:
    """Each function comes from a card, by its number on the node of the item's GPUs; an item on
    several nodes lists each node's cards one after another."""
    if len(item.cards) != option.functions:
        yield f"{item.request}: functions of {len(item.cards)} cards, {option.functions} asked"
        return
    listed = iter(item.cards)
    for node, here in sorted(parts.items()):
        wanted = _part(option.functions, here, len(item.gpus))
        for card in (c for _, c in zip(range(wanted), listed, strict=False)):
            if not 0 <= card < len(kind.nodes[node].cards):
                yield f"{item.request}: no card {card} on node {node}"
            used[node, card] += 1


def _spread(problem: Problem, result: Result) -> Iterator[str]:
    """Items of one group on different hosts; room for growth may stand anywhere."""
    requests = {r.name: r for r in problem.requests}
    seen: dict[tuple[str, str, int], str] = {}
    for item in result.placed:
        request = requests.get(item.request)
        if request is None or request.spread is None or item.number >= request.count:
            continue
        key = (request.spread, item.host_type, item.host)
        label = f"{item.request} {item.number}"
        if key in seen:
            yield f"{label} and {seen[key]} of spread '{request.spread}' on one host"
        seen[key] = label


def _hosts(problem: Problem, result: Result, rooms: dict[Where, Room]) -> Iterator[str]:
    """The hosts that are counted are those used; the cost is theirs; the bounds lie below."""
    used = Counter(name for name, _ in rooms)
    counted = {name: count for name, count in result.hosts if count}
    if counted != dict(used):
        yield f"hosts {counted}, used are {dict(used)}"
    for kind in problem.hosts:
        if kind.available is not None and used[kind.name] > kind.available:
            yield f"{used[kind.name]} hosts of {kind.available} {kind.name}"
    cost = sum(room.kind.cost for room in rooms.values())
    if cost != result.cost:
        yield f"cost {result.cost}, the hosts cost {cost}"
    if result.bound > cost:
        yield f"bound {result.bound} above the cost {cost}"
    if result.bound_hosts > len(rooms):
        yield f"bound of {result.bound_hosts} hosts, {len(rooms)} are used"
    if result.bound < 0 or result.bound_hosts < 0:
        yield "a negative bound"


def _moves(problem: Problem, result: Result) -> Iterator[str]:
    """What stands elsewhere than before is listed, and nothing else."""

    def stand(p: Placed) -> tuple[object, ...]:
        return (p.host_type, p.host, tuple(sorted(p.gpus)), p.mode, p.part, p.start)

    counts = {r.name: r.count for r in problem.requests}
    before = {(p.request, p.number): p for p in problem.kept if p.number < counts.get(p.request, 0)}
    after = {(p.request, p.number): p for p in result.placed}
    moved = {
        item
        for item, place in before.items()
        if item in after and stand(place) != stand(after[item])
    }
    listed = Counter((m.after.request, m.after.number) for m in result.moved)
    real = {i for i in listed if i[1] < counts.get(i[0], 0)}
    yield from (f"{i} moved and is not listed" for i in sorted(moved - real))
    yield from (f"{i} is listed as moved and stands" for i in sorted(real - moved))
    for item in result.moved:
        name = (item.after.request, item.after.number)
        if not item.why:
            yield f"{name} moved without a reason"
        if name in after and stand(after[name]) != stand(item.after):
            yield f"{name} is not where its move ends"


def _refusals(problem: Problem, result: Result, rooms: dict[Where, Room]) -> Iterator[str]:
    """A refused item finds no place on any host as they stand, used or free."""
    requests = {r.name: r for r in problem.requests}
    near = _neighbours(problem, result)
    for refused in result.refused:
        request = requests[refused.request]
        for number in sorted({min(refused.numbers), max(refused.numbers)}):
            apart = near.get(request.spread, set()) if number < request.count else set()
            for place, room in _places(problem, rooms):
                tries = _tries(problem, room, request, number, place)
                if place not in apart and any(_stands(problem, room, t) for t in tries):
                    yield f"{refused.request} was refused, and {place[0]} {place[1]} has room"
                    break


def _neighbours(problem: Problem, result: Result) -> dict[str | None, set[Where]]:
    """The hosts with items of each spread group."""
    requests = {r.name: r for r in problem.requests}
    found: dict[str | None, set[Where]] = defaultdict(set)
    for item in result.placed:
        request = requests[item.request]
        if request.spread is not None and item.number < request.count:
            found[request.spread].add((item.host_type, item.host))
    return found


def _places(problem: Problem, rooms: dict[Where, Room]) -> Iterator[tuple[Where, Room]]:
    """The hosts in use, and one free host of each type."""
    yield from sorted(rooms.items(), key=lambda pair: pair[0])
    for kind in problem.hosts:
        used = {n for name, n in rooms if name == kind.name}
        free = next(n for n in range(len(used) + 1) if n not in used)
        if kind.available is None or free < kind.available:
            yield (kind.name, free), Room(kind)


Try = tuple[Placed, Request, Option]


def _stands(problem: Problem, room: Room, item: Try) -> bool:
    return not any(_host(problem, Room(room.kind, [*room.items, item])))


def _tries(
    problem: Problem, room: Room, request: Request, number: int, place: Where
) -> Iterator[Try]:
    """Every way to stand there, as far as GPUs, starts and functions go."""
    for option in (o for o in request.options if o.gpu == room.kind.gpu):
        for gpus, start in _spots(problem, room, option):
            for cards in _functions(room, gpus, option):
                item = Placed(
                    request=request.name,
                    number=number,
                    host_type=place[0],
                    host=place[1],
                    gpus=gpus,
                    mode=option.mode,
                    part=option.part,
                    start=start,
                    cards=cards,
                )
                yield item, request, option


def _spots(
    problem: Problem, room: Room, option: Option
) -> Iterator[tuple[tuple[int, ...], int | None]]:
    kind = room.kind
    every = sorted({g for n in kind.nodes for g in n.gpus})
    busy = {g for i, _, _ in room.items for g in i.gpus}
    if option.part is None:
        free = [g for g in every if g not in busy]
        sets = kind.islands if kind.islands and option.gpus > 1 else combinations(free, option.gpus)
        for gpus in sets:
            if len(gpus) == option.gpus and set(gpus) <= set(free):
                yield tuple(gpus), None
        return
    model = next(m for m in problem.gpus if m.name == kind.gpu)
    mode = next(m for m in model.modes if m.name == option.mode)
    part = next(p for p in mode.parts if p.name == option.part)
    for gpu in every:
        for start in (None,) if mode.uniform else part.starts:
            yield (gpu,), start


def _functions(room: Room, gpus: tuple[int, ...], option: Option) -> Iterator[tuple[int, ...]]:
    """Cards with free functions, on the nodes of `gpus` in their order, as many as are asked for;
    none where too few."""
    used: Counter[tuple[int, int]] = Counter()
    for other, _, asked in room.items:
        list(_cards(room.kind, other, asked, _divided(room.kind, other.gpus), used))
    cards: list[int] = []
    for node, here in sorted(_divided(room.kind, gpus).items()):
        free = [
            number
            for number, card in enumerate(room.kind.nodes[node].cards)
            for _ in range(card.functions - used[node, number])
        ]
        wanted = _part(option.functions, here, len(gpus))
        if len(free) < wanted:
            return
        cards += free[:wanted]
    yield tuple(cards[: option.functions])
