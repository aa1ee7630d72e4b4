"""What can be wrong with a fleet and what is to be packed on it: one constructor a message.

GP071 facts that are counted more coarsely · GP072 requests that nothing serves or that contradict
themselves · GP073 a result to keep that is none · GP074 hosts that cannot be bought · GP075 too
many problems to list.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gpuplan.diagnostics import Diagnostic, Related, Severity, did_you_mean, error, note, warning
from gpuplan.source import Origin, Place
from gpuplan.units import format_usd


def one_node(fact: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP071",
        f"{fact} is not stated, so cores, memory and network functions are counted by host",
        origin,
        help="add 'numa_node' (see `nvidia-smi topo -m`, `lspci -vv`)",
    )


def no_islands(origin: Origin) -> Diagnostic:
    return warning(
        "GP071",
        "'module_id' is not stated of every GPU, so it was not checked that a guest's GPUs are a "
        "partition of the NVSwitch board",
        origin,
        help="add 'module_id' (`nvidia-smi -q` prints it as Module ID)",
    )


def no_price(names: str, gpu: str, origin: Origin | None) -> Diagnostic:
    return error(
        "GP012",
        f"no price is known of {names}: hosts cannot be weighed",
        origin,
        label=f"the catalogue lists none of {gpu}" if gpu else "",
        help="state the host's 'price'",
    )


def shapes_to_buy(gpu: str, shapes: Sequence[str]) -> Diagnostic:
    return note(
        "GP014",
        f"'{gpu}' is bought as {', '.join(shapes)}, at list prices of the catalogue; GPUs are "
        "taken as divided evenly between NUMA nodes",
        help="list a host with its 'price' in the inventory and buy more of that",
    )


def one_place(place: tuple[str, str], anywhere: int, in_one: int) -> Diagnostic:
    """Costs in micro-USD an hour."""
    usd, least = (format_usd(Decimal(c).scaleb(-6)) for c in (in_one, anywhere))
    return note(
        "GP014",
        f"hosts are rented in one place, {', '.join(place)}, for {usd}/h; the cheapest of several"
        f" places cost {least}/h",
        help="write another 'provider' and 'region' in a manifest, or hosts in an inventory",
    )


def several_places(hosts: Sequence[str]) -> Diagnostic:
    return warning(
        "GP014",
        f"the cheapest hosts are not in one place, as those of a cluster are: {', '.join(hosts)}",
        help="buy other types, or name 'provider' and 'region' in a manifest",
    )


def unknown_purchase(name: str, known: Sequence[str]) -> Diagnostic:
    return error(
        "GP074",
        f"'{name}' cannot be bought: it is no GPU type that is sold, no host and no "
        "node type of the inventory",
        label=did_you_mean(name, known),
        help=did_you_mean(name, known) or "`gpuplan catalog list nodes` shows the reference nodes",
    )


def not_sold(gpu: str) -> Diagnostic:
    return error(
        "GP074",
        f"'{gpu}' cannot be bought: the catalogue has no node with it there",
        help="list a host with it in the inventory, and buy more of that host by its name",
    )


def nothing_serves(name: str, wanted: str, gpus: Sequence[str], origin: Origin) -> Diagnostic:
    return error(
        "GP072",
        f"no GPU of the fleet serves '{name}': {wanted}",
        origin,
        help=f"the fleet has {', '.join(gpus)}",
    )


def not_in_fleet(gpu: str, gpus: Sequence[str], origin: Origin) -> Diagnostic:
    return error(
        "GP072",
        f"no host of the fleet has a '{gpu}'",
        origin,
        label=did_you_mean(gpu, gpus),
        help=f"the fleet has {', '.join(gpus)}",
    )


def one_way(origin: Origin, given: bool) -> Diagnostic:
    sizes = "both whole GPUs and a part of one" if given else "neither 'gpus' nor 'gpu_memory'"
    return error(
        "GP072",
        f"a request wants {sizes}",
        origin,
        help="write 'gpus' for whole GPUs, or 'gpu_memory' for a part of one",
    )


def part_only(field: str, origin: Origin) -> Diagnostic:
    return error(
        "GP072", f"'{field}' is of a part of a GPU", origin, help="write it beside 'gpu_memory'"
    )


def same_request(name: str, first: Origin, second: Origin) -> Diagnostic:
    return Diagnostic(
        rule="GP007",
        severity=Severity.ERROR,
        message=f"two requests are called '{name}'",
        origin=second,
        label="placements are told apart by name",
        help="give one of them another name, or add up their 'count'",
        related=(Related("first used here", first),),
    )


def too_long(name: str, nodes: int) -> Diagnostic:
    return error(
        "GP002",
        f"{name} has some {nodes:,} values, too many for YAML",
        help="save it as JSON or as CSV: both are read at once",
    )


def too_many_items(items: int, most: int, request: str, origin: Origin | None) -> Diagnostic:
    return error(
        "GP072",
        f"{items:,} items are to be packed, and {most:,} are at most",
        origin,
        label=f"'{request}' has the most",
        help="pack the fleet in parts, or fewer and larger items",
    )


def too_many_divisions(request: str, gpus: int, host: str, origin: Origin | None) -> Diagnostic:
    return error(
        "GP072",
        f"{gpus} GPUs of a host '{host}' can be divided between its NUMA nodes in too many ways",
        origin,
        label=f"'{request}' wants so many",
        help="describe nodes that are alike by equal 'cpus' and 'memory', or ask for fewer GPUs",
    )


def broken_text(kind: str, reason: str, place: Place) -> Diagnostic:
    return error("GP001", f"not valid {kind}: {reason}", place, help="correct it here")


def bad_result(file: str, reason: str, at: Origin) -> Diagnostic:
    return error(
        "GP073",
        f"{file} is no answer of `gpuplan pack --json`: {reason}",
        at,
        help="write one with `gpuplan pack … --json > result.json`",
    )


def nothing_to_pack() -> Diagnostic:
    return error("GP004", "nothing is to be packed", help="name a manifest or a list of requests")


def no_hosts() -> Diagnostic:
    return error(
        "GP004",
        "there is no host to pack on",
        help="give --inventory FILE, or --buy GPU for nodes that may be bought",
    )


def unprotected(name: str, origin: Origin) -> Diagnostic:
    return error(
        "GP072",
        f"'{name}' may be on a time slice, where nothing keeps other teams from its memory",
        origin,
        label="time slices of a GPU have neither memory nor faults of their own",
        help="add 'isolation: gpu', so that only its team is on the GPU, or remove 'time-slice'",
    )


def no_placements(gpu: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP071",
        f"no source says where vGPUs of several sizes stand on '{gpu}', so each GPU has one size",
        origin,
        help="`gpuplan catalog show` lists the 'placements' of the GPUs that have them",
    )


def slices_of_guests(origin: Origin) -> Diagnostic:
    return warning(
        "GP071",
        "time slices are of containers, and this host gives its GPUs to guests: they are not used",
        origin,
        help="remove 'time_slices', or 'hypervisor'",
    )


def uneven_sharing(gpu: str, lost: Sequence[str], origin: Origin | None) -> Diagnostic:
    return warning(
        "GP071",
        f"not all hosts with '{gpu}' offer the same {' and '.join(lost)}, so none is used",
        origin,
        help="state the same of all hosts with this GPU, or pack them apart",
    )


def partly_joined(names: Sequence[str], origin: Origin) -> Diagnostic:
    return note(
        "GP071",
        f"NVLink joins some of the GPUs of {names[0]}{'…' * (len(names) > 1)}, not all: workloads "
        "on several GPUs take those with the most pairs joined",
        origin,
    )


def guest(names: Sequence[str], kind: str, origin: Origin) -> Diagnostic:
    return note(
        "GP071",
        f"{names[0]}{'…' * (len(names) > 1)} is a guest itself ({kind}): its NUMA nodes and links "
        "are what its host shows of them",
        origin,
    )


def no_gpus(inventory: str) -> Diagnostic:
    return error(
        "GP004",
        f"no host of {inventory} has a GPU",
        help="add 'gpus' to its hosts, or --buy GPU for nodes that may be bought",
    )


def uncounted_functions(workload: str, gpu: str, origin: Origin) -> Diagnostic:
    return note(
        "GP071",
        f"{workload}: virtual functions are not counted on hosts with '{gpu}', since not all state "
        "their network cards",
        origin,
        help="add 'nics' with 'virtual_functions' to these hosts",
    )
