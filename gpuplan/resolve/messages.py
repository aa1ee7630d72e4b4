"""What can be wrong with a name, one constructor a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuplan.diagnostics import (
    Change,
    Diagnostic,
    Related,
    Severity,
    did_you_mean,
    error,
    nearest,
    note,
    remedied,
    warning,
)
from gpuplan.source import Origin
from gpuplan.targets import of_other_vendors
from gpuplan.units import plural
from gpuplan.vendors import Vendor, vendor_of

MOST_NEAR = 4  # regions that are named
_DIRECTION = re.compile(r"(north|south|east|west|central|[0-9]+|[-_])")


def unknown_name(kind: str, name: str, known: Sequence[str], remedy: str, at: Origin) -> Diagnostic:
    return error(
        "GP006", f"unknown {kind} '{name}'", at, label=did_you_mean(name, known), help=remedy
    )


def same_name(name: str, first: Origin, second: Origin) -> Diagnostic:
    return Diagnostic(
        rule="GP007",
        severity=Severity.ERROR,
        message=f"two workloads are, or were, called '{name}'",
        origin=second,
        label="a name belongs to one workload, now and before",
        help="give one of them another name, or remove it from 'renamed_from'",
        related=(Related("first used here", first),),
    )


def unknown_region(
    provider: str, name: str, known: Sequence[str], at: Origin, *, own: bool
) -> Diagnostic:
    """A slip of the pen is corrected; of a region without prices the nearest are named: as many of
    its words as can be, the continent at least, and no word that it has not, such as `gov`. With
    prices of the manifest's `own` it is believed."""
    asked = _words(name)

    def strange(region: str) -> tuple[int, int]:
        words = _words(region)
        return len(words) - len(asked), -sum(w in asked for w in words if not w.isdigit())

    akin = sorted((r for r in known if asked and asked[0] in _words(r)), key=strange)
    near = [r for r in akin if strange(r) == strange(akin[0])]
    slip = nearest(name, known)
    numbers = [w for w in asked if w.isdigit()]
    if slip and (slip[:2] != name[:2] or [w for w in _words(slip) if w.isdigit()] != numbers):
        slip = None  # another place
    if own and not slip:
        return _own_prices(provider, name, at)
    label = f"did you mean '{slip}'?" if slip else ""
    if not slip and near:
        more = ", …" if near[MOST_NEAR:] else ""
        label = f"nearest {'are' if near[1:] else 'is'} {', '.join(near[:MOST_NEAR])}{more}"
    problem = error(
        "GP006",
        f"no prices of {provider} are known for region '{name}'",
        at,
        label=label,
        help=f"they are for {', '.join(known)}; elsewhere state your own for each of 'gpus', as"
        " `prices: {h100-sxm-80gb: $6.50/hour}`",
    )
    return remedied(problem, (Change(at, slip),)) if slip else problem


def _own_prices(provider: str, name: str, at: Origin) -> Diagnostic:
    return note(
        "GP014",
        f"no prices of {provider} are known for region '{name}': those of 'platform.prices' are"
        " taken, and that it has these machines is believed",
        at,
        help="see that it has them before you apply the stack",
    )


def _words(region: str) -> list[str]:
    """`westus2` → west, us, 2; a direction is a word of its own."""
    return [w for w in _DIRECTION.split(region.casefold()) if w.strip("-_ ")]


def unnamed_gpu(at: Origin) -> Diagnostic:
    return error(
        "GP006",
        "the type of this GPU is not known",
        at,
        label="no text that was imported names it",
        help="import `nvidia-smi -q -x` too, or write a name of `gpuplan catalog list gpus`",
    )


def unknown_gpu(name: str, known: Sequence[str], at: Origin) -> Diagnostic:
    """`rtx-4090`, `H100` and `NVIDIA A100` begin names; other words are slips of the pen."""
    from gpuplan.inventory.names import plain

    said = plain(name)
    begun = sorted(k for k in known if said and plain(k).startswith(said))
    problem = unknown_name("GPU", name, known, "`gpuplan catalog list gpus` shows all", at)
    return _begun(problem, begun)


def _begun(problem: Diagnostic, names: Sequence[str]) -> Diagnostic:
    """With the first of the names that what was written begins, where there are any."""
    words = " or ".join(f"'{name}'" for name in names[:MOST_NEAR])
    return replace(problem, label=f"did you mean {words}?") if names else problem


def left_out(problem: Diagnostic, names: Sequence[str]) -> Diagnostic:
    """What is wrong with one kind of host, where others can be planned."""
    more = len(names) - 1
    hosts = names[0] + (f" and {plural(more, 'other host')}" if more else "")
    message = f"{hosts} left out: {problem.message}"
    return replace(problem, severity=Severity.WARNING, message=message)


def foreign_gpu(name: str, at: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"{name} cannot be planned",
        at,
        label="no image of an engine is known for it",
        help="name another GPU; `gpuplan catalog list builds` shows whose images are known",
    )


def gpu_of_another_target(name: str, vendor: Vendor, target: str | None, at: Origin) -> Diagnostic:
    """`target` is None where machines are packed, whatever runs on them."""
    where = f"for target '{target}'" if target else "on machines that are packed"
    return error(
        "GP012",
        f"{name} cannot be planned {where}",
        at,
        label=f"{vendor.title} GPUs are planned for target {', '.join(of_other_vendors())}",
        help=f"use that target, or GPUs of {vendor_of(None).title}",
    )


def unknown_model(name: str, known: Sequence[str], at: Origin) -> Diagnostic:
    from gpuplan.models.images.videos import makes_videos

    if makes_videos(name):
        return video_model(name, known, at)
    remedy = "`gpuplan catalog list models` shows the bundled ones; any other by its config.json"
    said = _letters(name)
    more = sorted((k for k in known if said and said in _letters(k)), key=lambda k: (len(k), k))
    less = [k for k in sorted(known, key=len, reverse=True) if said.startswith(_letters(k))]
    return _begun(unknown_name("model", name, known, remedy, at), more or less[:1])


def _letters(name: str) -> str:
    """Of a model's own name: `Llama-3.3-70B` and `llama 3.3 70b` are written alike."""
    return re.sub(r"[^a-z0-9]", "", name.casefold().rpartition("/")[2])


def video_model(name: str, known: Sequence[str], at: Origin) -> Diagnostic:
    from gpuplan.models.images.videos import makes_videos

    planned = [n for n in known if makes_videos(n)]
    return error(
        "GP012",
        f"'{name}' makes videos, and what its modules hold is not known",
        at,
        label=did_you_mean(name, planned),
        help=f"name {' or '.join(planned)}, or reserve"
        " GPUs for it as `task: notebook` with what was measured in 'notebook.gpu_memory'",
    )


def unknown_engine(name: str, known: Sequence[str], at: Origin) -> Diagnostic:
    remedy = f"use {', '.join(known)}, or give its 'image'"
    return unknown_name("engine", name, known, remedy, at)


def detection_model(name: str, at: Origin) -> Diagnostic:
    """A detector, whose speed no measured point tells."""
    return error(
        "GP007",
        f"how fast '{name}' finds objects is not predicted",
        at,
        help="what is needed are measured images/s of the detector with its heads and its"
        " post-processing: timm's points are of backbones alone. Those, as classifiers, are sized,"
        " for example timm/resnet50",
    )


def no_decoder(architecture: str, at: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"a {architecture} neither writes text nor has a vector or a score for it: decoders,"
        " embedding models, rerankers, models that read images and text-to-image pipelines are"
        " sized",
        at,
        help="name one of those; of an encoder the variant that ends in 'Model' or"
        " 'ForSequenceClassification'",
    )


def several_ways(given: Iterable[str], at: Origin) -> Diagnostic:
    listed = " and ".join(f"'{g}'" for g in given)
    return error(
        "GP007", f"a model is given by {listed}", at, help="keep one; 'name' may stand beside it"
    )


def no_way(at: Origin) -> Diagnostic:
    return error(
        "GP004",
        "the model is not given",
        Origin(at.document, at.path, key=True),
        help="write a bundled name, the 'path' of a config.json, or a 'config'",
    )


def no_identifier(at: Origin) -> Diagnostic:
    return error(
        "GP004",
        "the config does not say what the engine must load",
        at,
        label="has no '_name_or_path'",
        help="write {name: ORGANISATION/MODEL, path: …}",
    )


def bad_config(path: str, reason: str, at: Origin) -> Diagnostic:
    return error(
        "GP009",
        f"cannot read '{path}': {reason}",
        at,
        help="paths are relative to the manifest; the file is a Hugging Face config.json",
    )


def no_pin(name: str, version: str, known: str, at: Origin) -> Diagnostic:
    return error(
        "GP015",
        f"no source states an image of {name} {version}",
        at,
        label=f"the version that is known is {known}",
        help=f"write {{name: {name}, version: …, image: …}}: an image is never guessed",
    )


def no_default_engine(task: str, at: Origin) -> Diagnostic:
    return error("GP012", f"no engine is known for {task}", at, help="name one under 'engine'")


def no_node(
    gpu: str, whose: str, renting: Sequence[str], offered: Sequence[str], at: Origin
) -> Diagnostic:
    """`whose` nodes are asked for: of a provider, in a region; empty: anybody's. `renting` are who
    has nodes of that type, `offered` the types that there are such nodes of."""
    whose = f" {whose}" if whose else ""
    verb = "rents" if len(renting) == 1 else "rent"
    rented = f"{', '.join(renting)} {verb} some; " if renting and whose else ""
    problem = error(
        "GP012",
        f"no node{whose} is known for '{gpu}'",
        at,
        label=f"there are nodes{whose} with {', '.join(offered)}" if offered else "",
        help=f"{rented}leave it out of 'gpus', or describe a node under platform.node, or the "
        "machines in an inventory",
    )
    return remedied(problem, (Change(at, None),))


def not_in_inventory(gpu: str, known: Sequence[str], at: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"no host of the inventory has a '{gpu}'",
        at,
        help=f"the inventory has {', '.join(known)}",
    )


def without_machines(absent: Iterable[Diagnostic], *, others: bool) -> Iterator[Diagnostic]:
    """GPU types of the allow-list that there are no machines with: errors, or warnings where there
    are `others`, since one more choice may not refuse everything."""
    for problem in absent:
        if others:
            message = f"{problem.message}: it is left out"
            yield replace(problem, severity=Severity.WARNING, message=message)
        else:
            yield problem


def mixed_host(names: Sequence[str], at: Origin) -> Diagnostic:
    return error(
        "GP011",
        f"one host has several GPU types: {', '.join(names)}",
        at,
        help="list hosts of one type each; a mixed host cannot be sized",
    )


def no_such_nodes(gpus: str, provider: str | None, names: Sequence[str], at: Origin) -> Diagnostic:
    """`names` are nodes that would do."""
    whose = "" if provider is None else f" and is offered by {provider} there"
    listed = f"name {', '.join(names)}" if names else "name others"
    problem = error(
        "GP007",
        f"none of the nodes has {gpus}{whose}",
        at,
        help=f"{listed} (`gpuplan catalog list instances` shows all), or remove 'nodes'",
    )
    return remedied(problem, (Change(at, None),)) if names else problem


def nodes_twice(ways: Sequence[str], at: Origin) -> Diagnostic:
    listed = " and by ".join(f"'{w}'" for w in ways)
    return error(
        "GP007",
        "the nodes are described twice",
        at,
        label=f"by {listed}",
        help=f"keep {' or '.join(repr(w) for w in ways)}",
    )


def region_without_provider(target: str, at: Origin) -> Diagnostic:
    problem = error(
        "GP007",
        f"target '{target}' has no regions",
        at,
        help="name a 'provider' beside it, or remove 'region'",
    )
    return remedied(problem, (Change(at, None),))


def unsupported_target(target: str, supported: Sequence[str], at: Origin | None) -> Diagnostic:
    return error(
        "GP011",
        f"no backend emits for target '{target}' yet",
        at,
        help=f"use {' or '.join(supported)}; `gpuplan compile --plan-only` sizes for any target",
    )


def long_stack_name(name: str, longest: int, at: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"the stack's name '{name}' has {len(name)} characters",
        at,
        label=f"with its target at most {longest}",
        help="shorten the name, or compile for one target at a time",
    )


def several_places(nodes: Sequence[str], at: Origin) -> Diagnostic:
    """The price that is printed is no cluster's."""
    return warning(
        "GP014",
        f"the cheapest nodes are not in one place, as those of a cluster are: {', '.join(nodes)}",
        at,
        help="write 'provider' and 'region'",
    )


def assumed_nodes(nodes: Sequence[str], halved: Sequence[str], at: Origin) -> Diagnostic:
    """`nodes` were taken; of `halved` no source states the cores."""
    cores = f"; the cores of {', '.join(halved)} are half of the vCPUs" if halved else ""
    return note(
        "GP014",
        f"the platform names no nodes; the cheapest of the catalogue are taken: "
        f"{', '.join(nodes)}{cores}",
        at,
        help="write 'provider' and 'region', 'nodes', a 'node' or an 'inventory'",
    )


def list_prices(inventory: str, listed: Sequence[str], at: Origin) -> Diagnostic:
    return note(
        "GP014",
        f"{inventory} states no price; list prices stand in: {', '.join(listed)}",
        at,
        help="state the 'price' of a host in the inventory, or 'platform.prices'",
    )
