"""What releases of engines and their libraries do in one kernel, in tuned ones, or ahead of a step.

`kernels.json` is compiled from `data/kernels`; its first reader loads it. `KernelsFile` says what
each field means. Releases are their numbers: (0, 5, 6) of 0.5.6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.catalog.experts import ExpertKernels, expert_kernels
from gpuplan.catalog.model import Gpu
from gpuplan.frozen import record
from gpuplan.releases import release_numbers, stated

KERNELS = Path(__file__).with_name("kernels.json")
Release = tuple[int, ...]
ROUNDED = 8  # requests: so far apart are sizes that hold whole ones, however many tokens each has


@record
class Recipe:
    """What is asked for, of models whose architectures begin with `models`."""

    capability: str | None
    vendor: str | None
    models: tuple[str, ...]

    def covers(self, gpu: Gpu, architecture: str) -> bool:
        if self.capability is None:
            here = gpu.vendor == self.vendor
        else:
            here = gpu.capable(self.capability)
        return here and architecture.startswith(self.models)


@record
class Graphed:
    """Up to how many tokens a step with prompts is CUDA graphs between its attention, from a
    release on; `models` is empty where it is of all. On GPUs of a `vendor`, or of every;
    `undivided`: without pipeline stages or data-parallel groups alone."""

    since: Release
    models: tuple[str, ...]
    vendor: str | None
    undivided: bool
    tokens: int
    tokens_each: int | None

    def most(self, sequences: float | None) -> float:
        """Tokens, of a server that takes so many `sequences` at once, or as many as by default."""
        if self.tokens_each is None or sequences is None:
            return self.tokens
        return min(self.tokens, self.tokens_each * sequences)


@record
class Launched:
    """Releases from `since` on, before `until`, on GPUs of a `vendor`, or of every."""

    since: Release
    until: Release
    vendor: str | None

    def on(self, gpu: Gpu) -> bool:
        return self.vendor in (None, gpu.vendor)

    def covers(self, release: Release, gpu: Gpu) -> bool:
        return self.since <= release < self.until and self.on(gpu)


@record
class Whole:
    """Of how many requests a step that only decodes is one graph: `sizes`, from each first number
    on so far apart."""

    since: Release
    sizes: tuple[tuple[int, int], ...]

    def below(self, sequences: float) -> float:
        """The largest size that is no more than `sequences`, one at least."""
        least = max(sequences, 1)
        apart = next(apart for first, apart in reversed(self.sizes) if first <= least)
        return least // apart * apart

    def drafting(self, tokens: int) -> Whole:
        """The same of requests that each take so many `tokens` of a step, to whose multiples the
        engine rounds sizes: it leaves those of eight requests and more where they are."""
        sizes = [(first, apart) for first, apart in self.sizes if apart >= ROUNDED]
        fewer = [(max(1, first // (tokens * apart)) * apart, apart) for first, apart in sizes[1:]]
        return Whole(since=self.since, sizes=((1, ROUNDED), *fewer))


@record
class EngineKernels:
    """Those of an engine. `fused_exchanges` has the longest beginnings of a capability first;
    `fused_models` is None where the engine has no list."""

    unnamed_release: Release | None
    fused_exchanges: tuple[tuple[str, Release], ...]
    fused_models: Mapping[str, Release] | None
    fused_beside_data_parallelism: Release | None
    recipes: tuple[Recipe, ...]
    exchanged_norms: tuple[str, ...]
    scaled_within: Release | None
    scaled_vendor: str | None
    mixed_steps: Release | None
    asynchronous: Release | None
    asynchronous_stages: Release | None
    drafted_ahead: tuple[str, ...]
    launched_attention: Launched | None
    graphed_steps: tuple[Graphed, ...]
    whole_steps: tuple[Whole, ...]
    experts: ExpertKernels

    def release(self, version: str) -> Release | None:
        """The numbers of a release, or of what one without numbers is taken for."""
        return release_numbers(version) or self.unnamed_release

    def graphed(self, release: Release, architecture: str) -> Graphed | None:
        """What a release does with steps of such a model; None: it starts each kernel."""
        rows = [row for row in self.graphed_steps if row.since <= release]
        own = [row for row in rows if row.models and architecture.startswith(row.models)]
        last = own or [row for row in rows if not row.models]
        return max(last, key=lambda row: row.since) if last else None

    def whole(self, release: Release) -> Whole | None:
        """The sizes of a release; None: it has one graph for every step, or none for any."""
        return max(
            (row for row in self.whole_steps if row.since <= release),
            key=lambda row: row.since,
            default=None,
        )

    def asked(self, gpu: Gpu, architecture: str) -> bool:
        """Whether recipes ask for exchanges and norms in one kernel."""
        return any(recipe.covers(gpu, architecture) for recipe in self.recipes)

    def asynchronous_since(self, stages: int) -> Release | None:
        return self.asynchronous if stages == 1 else self.asynchronous_stages

    def fused_since(self, gpu: Gpu, architecture: str) -> Release | None:
        """The first release that does an exchange and its norm in one kernel; None: none does."""
        first = next((s for begin, s in self.fused_exchanges if gpu.capable(begin)), None)
        if first is None or self.fused_models is None:
            return first
        listed = self.fused_models.get(architecture)
        return listed and max(first, listed)


def kernel_facts() -> list[tuple[str, str, str, str, str]]:
    """What stands in the files, a row each: of whom, the fact, from which release on, of which GPUs
    and models and how much, and its source with the day when it was read."""
    rows = []
    for owner, entry in sorted(_tree().items()):
        for name, facts in entry.items():
            for fact in facts if isinstance(facts, list) else (facts,):
                if name not in ("notes", "sources"):
                    title, url, read, _ = entry["sources"][fact["source"]]
                    since, named = fact.get("since", ""), name.replace("_", " ")
                    rows.append((owner, named, since, _words(fact), f"{title} ({url}, {read})"))
    return rows


def _words(fact: Mapping[str, Any]) -> str:
    """`models GptOss, tokens 1024`."""
    said = {n.replace("_", " "): v for n, v in fact.items() if n not in ("since", "source")}
    shown = {n: v for n, v in said.items() if v is not False}
    return ", ".join(n if v is True else f"{n} {_value(v)}" for n, v in shown.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{n} ({_value(v)})" for n, v in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


@cache
def engine_kernels(engine: str) -> EngineKernels | None:
    """Those of an engine, None of one without a file."""
    entry = _tree().get(engine)
    return None if entry is None else _engine(entry)


def _engine(entry: dict[str, Any]) -> EngineKernels:
    listed = entry.get("fused_models")
    by_capability = {row["capability"]: stated(row["since"]) for row in entry["fused_exchanges"]}
    return EngineKernels(
        unnamed_release=_since(entry, "unnamed_release"),
        fused_exchanges=tuple(sorted(by_capability.items(), key=lambda row: -len(row[0]))),
        fused_models=None
        if listed is None
        else {model: stated(row["since"]) for row in listed for model in row["models"]},
        fused_beside_data_parallelism=_since(entry, "fused_beside_data_parallelism"),
        recipes=tuple(
            Recipe(
                capability=row.get("capability"),
                vendor=row.get("vendor"),
                models=tuple(row["models"]),
            )
            for row in entry["fused_by_recipes"]
        ),
        exchanged_norms=tuple(entry.get("exchanged_norms", {}).get("models", ())),
        scaled_within=_since(entry, "scaled_within"),
        scaled_vendor=entry.get("scaled_within", {}).get("vendor"),
        mixed_steps=_since(entry, "mixed_steps"),
        asynchronous=_since(entry, "asynchronous"),
        asynchronous_stages=_since(entry, "asynchronous_stages"),
        drafted_ahead=tuple(entry.get("drafted_ahead", {}).get("methods", ())),
        launched_attention=_launched(entry.get("launched_attention")),
        graphed_steps=tuple(
            Graphed(
                since=stated(row["since"]),
                models=tuple(row.get("models", ())),
                vendor=row.get("vendor"),
                undivided=row.get("undivided", False),
                tokens=row["tokens"],
                tokens_each=row.get("tokens_each"),
            )
            for row in entry["graphed_steps"]
        ),
        whole_steps=tuple(
            Whole(
                since=stated(row["since"]),
                sizes=tuple(sorted((int(n), apart) for n, apart in row["sizes_from"].items())),
            )
            for row in entry["whole_steps"]
        ),
        experts=expert_kernels(entry),
    )


def _launched(row: dict[str, Any] | None) -> Launched | None:
    if row is None:
        return None
    since, until = (stated(row[name]) for name in ("since", "until"))
    return Launched(since=since, until=until, vendor=row.get("vendor"))


def _since(entry: dict[str, Any], name: str) -> Release | None:
    return stated(entry[name]["since"]) if name in entry else None


def tuned_products(gpu: Gpu, architecture: str, hidden_size: int) -> bool:
    """Whether a library has tuned kernels for the products of the weights of such a model, scaled
    in blocks."""
    return any(
        architecture.startswith(begin) and hidden_size in sizes
        for begin, sizes in _tuned(gpu.architecture)
    )


@cache
def _tuned(architecture: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Hidden sizes by beginnings of models' architectures, of GPUs of an architecture."""
    return tuple(
        (begin, tuple(sizes))
        for entry in _tree().values()
        for row in entry["tuned_products"]
        if row["architecture"] == architecture
        for begin, sizes in row["models"].items()
    )


@cache
def _tree() -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(KERNELS.read_bytes())["kernels"]
    return tree
