"""Which work the releases of an engine, or a library of its kernels, do in one kernel, in kernels
that were tuned, or beside the GPU: what sizing reckons with by GPU, model and release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import Count, File, Strict, unique
from gpuplan.releases import stated

Release = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
Capability = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]?$")]
Architecture = Annotated[str, Field(pattern=r"^[A-Z]\w+$")]  # of a model, or how several begin
Models = Annotated[list[Architecture], Field(min_length=1)]
Sizes = Annotated[list[Count], Field(min_length=1)]


class SinceDocument(Strict):
    """From this release on."""

    since: Release
    source: str


class CapabilityDocument(SinceDocument):
    """`capability` is how those of the GPUs begin; the longest that fits is a GPU's."""

    capability: Capability


class ListedDocument(SinceDocument):
    """Architectures of models, whole."""

    models: Models


class NamedDocument(CapabilityDocument):
    """The engine's name of the kernels, and of how many `rows` a GPU's part of an expert is a
    multiple."""

    backend: str
    rows: Count


class MissingDocument(CapabilityDocument):
    """Before the release `until`, of architectures of models, whole."""

    until: Release
    models: Models


class RecipeDocument(Strict):
    """What those ask for who tune an engine for a measurement: GPUs by the beginning of their
    `capability`, or all of a `vendor`; the beginnings of models' architectures."""

    capability: Capability | None = None
    vendor: Literal["amd", "intel"] | None = None
    models: Models
    source: str

    @model_validator(mode="after")
    def _of_gpus(self) -> Self:
        if (self.capability is None) == (self.vendor is None):
            raise ValueError("a recipe is for a capability or for a vendor")
        return self


class ModelsDocument(Strict):
    """Beginnings of models' architectures."""

    models: Models
    source: str


class MadeDocument(SinceDocument):
    """On GPUs of a `vendor`, or of every."""

    vendor: Literal["nvidia", "amd", "intel"] | None = None


class LaunchedDocument(MadeDocument):
    """Before the release `until`."""

    until: Release


class GraphedDocument(MadeDocument):
    """Of models whose architectures begin so, or of all: steps of up to so many `tokens`, and of no
    more than `tokens_each` for each sequence that a server takes at once; 0: none is. `undivided`:
    in replicas without pipeline stages or data-parallel groups alone."""

    models: Models | None = None
    undivided: bool = False
    tokens: Annotated[int, Field(ge=0)]
    tokens_each: Count | None = None


class WholeDocument(SinceDocument):
    """From each number on, sizes that are so far apart."""

    sizes_from: Annotated[dict[Count, Count], Field(min_length=1)]

    @model_validator(mode="after")
    def _one_in_another(self) -> Self:
        """Each number is one of the sizes before it, and of its own."""
        if list(self.sizes_from) != sorted(self.sizes_from) or 1 not in self.sizes_from:
            raise ValueError("sizes begin with 1 and grow")
        before = 1
        for first, apart in self.sizes_from.items():
            if first % before or first % apart:
                raise ValueError(f"sizes from {first} on do not follow those before")
            before = apart
        return self


class DraftsDocument(Strict):
    """Methods of speculative decoding."""

    methods: Annotated[list[str], Field(min_length=1)]
    source: str


class TunedDocument(Strict):
    """Of GPUs of one architecture, the hidden sizes by beginnings of models' architectures."""

    architecture: str
    models: Annotated[dict[Architecture, Sizes], Field(min_length=1)]
    source: str


class KernelsFile(File):
    """Of an engine, or of a library:

    - `fused_exchanges`: where an exchange of tensor parallelism and the norm after it are one
      kernel by default; of `fused_models` alone, if the engine has a list; with several data-
      parallel groups from `fused_beside_data_parallelism` on, without it never;
    - `fused_by_recipes`: of which others it is asked for;
    - `exchanged_norms`: models of which queries and keys are normed over the heads of all GPUs;
    - `scaled_within`: where the inputs of fp8 blocks are scaled within other kernels;
    - `mixed_steps`: prompts are computed in one step with the tokens of others;
    - `asynchronous`: it schedules a step while one runs, with pipeline stages from
      `asynchronous_stages` on, ahead of tokens that are drafted by `drafted_ahead` alone;
    - `launched_attention`: where a step that only decodes leaves attention out of its CUDA graphs,
      so that the host starts each layer's and the graph after it;
    - `graphed_steps`: up to how many tokens a step with prompts is CUDA graphs between its
      attention; the last row that fits is a release's, one of its models before one of all;
    - `whole_steps`: of which sizes a step that only decodes is one graph: of the smallest that
      holds its requests, where the server takes so many at once, else graphs between attention;
    - `tuned_products`: whose products of weights scaled in blocks have kernels that were tuned;
    - `named_experts`: where experts of NVFP4 that NVIDIA's Model Optimizer made have kernels only
      if those are named, but for `chosen_experts`, for which the engine names some itself;
    - `missing_experts`: of which models no kernels run them;
    - `unnamed_release`: what a release without numbers is taken for, where it matters.
    """

    kind: Literal["kernels"]
    unnamed_release: SinceDocument | None = None
    fused_exchanges: list[CapabilityDocument] = []
    fused_models: list[ListedDocument] | None = None
    fused_beside_data_parallelism: SinceDocument | None = None
    fused_by_recipes: list[RecipeDocument] = []
    exchanged_norms: ModelsDocument | None = None
    scaled_within: MadeDocument | None = None
    mixed_steps: SinceDocument | None = None
    asynchronous: SinceDocument | None = None
    asynchronous_stages: SinceDocument | None = None
    drafted_ahead: DraftsDocument | None = None
    launched_attention: LaunchedDocument | None = None
    graphed_steps: list[GraphedDocument] = []
    whole_steps: list[WholeDocument] = []
    tuned_products: list[TunedDocument] = []
    named_experts: NamedDocument | None = None
    chosen_experts: list[ListedDocument] = []
    missing_experts: list[MissingDocument] = []

    def cited(self) -> Iterable[str]:
        for name in type(self).model_fields:
            facts = getattr(self, name)
            for fact in facts if isinstance(facts, list) else (facts,):
                if isinstance(fact, Strict) and hasattr(fact, "source"):
                    yield fact.source

    @model_validator(mode="after")
    def _once(self) -> Self:
        unique("capability", (row.capability for row in self.fused_exchanges))
        unique("model", (m for row in self.fused_models or () for m in row.models))
        unique("model", (m for row in self.chosen_experts for m in row.models))
        unique("architecture", (row.architecture for row in self.tuned_products))
        launched = self.launched_attention
        if launched and not stated(launched.since) < stated(launched.until):
            raise ValueError("launched_attention ends before it begins")
        if any(stated(row.since) >= stated(row.until) for row in self.missing_experts):
            raise ValueError("missing_experts ends before it begins")
        return self
