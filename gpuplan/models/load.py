"""Models by bundled name, or from a Hugging Face `config.json`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.models.configs import citation, from_config
from gpuplan.models.model import (
    Denoiser,
    Diffusion,
    DiffusionModule,
    Model,
    Unet,
)
from gpuplan.models.speech import is_speech, speech
from gpuplan.source import Origin

BUNDLED = Path(__file__).with_name("bundled")
RELATIVES = Path(__file__).with_name("relatives.json")


@cache
def bundled_names() -> tuple[str, ...]:
    """Identifiers of the bundled models, sorted."""
    return tuple(sorted(path.stem.replace("--", "/", 1) for path in BUNDLED.glob("*.json")))


@cache
def _releases() -> tuple[str, ...]:
    """The same with other releases of their networks, sorted."""
    return tuple(sorted({*bundled_names(), *_relatives()["models"]}))


@cache
def known_names() -> tuple[str, ...]:
    """Identifiers of all models that a name alone finds, sorted; those of timm are beside them."""
    from gpuplan.models.vision import vision_names

    return tuple(sorted((*_releases(), *vision_names())))


def known(name: str) -> Model | None:
    """A bundled model, another release of one, or one that reads images."""
    if (model := bundled(name)) is not None:
        return model
    from gpuplan.models.vision import named_vision

    return named_vision(name)


def bundled(name: str) -> Model | None:
    """A known model by its identifier, in any case, with or without the organisation."""
    for names, made in ((bundled_names, _bundled), (_releases, _relative)):
        identifier = _spelled(name, names())
        if identifier is not None:
            return made(identifier)
    return None


def _spelled(name: str, names: tuple[str, ...]) -> str | None:
    wanted = name.casefold()
    for identifier in names:
        folded = identifier.casefold()
        if wanted in {folded, folded.partition("/")[2]}:
            return identifier
    return None


@cache
def _relatives() -> dict[str, Any]:
    return dict(json.loads(RELATIVES.read_bytes()))


@cache
def _relative(identifier: str) -> Model:
    """Another release of a bundled network, or of a measured one that is not bundled."""
    table = _relatives()
    row = table["models"][identifier]
    own = citation(table["sources"][row["source"]])
    if "/" in row["of"]:
        document = _document(row["of"])
        config, cited = document["config"], citation(document["source"])
    else:
        from gpuplan.models.further import config_of

        config, cited = config_of(row["of"])
    source = f"model: as {row['of']} ({own}; {cited})"
    stated = config | row.get("config", {})
    return from_config(stated, identifier, None, source, Origin(RELATIVES.name))


@cache
def _bundled(identifier: str) -> Model:
    document, file = _document(identifier), _file(identifier)
    source = f"model: {file} ({citation(document['source'])})"
    if "diffusion" in document:
        return _diffusion(document["diffusion"], identifier, document["revision"], source)
    config = document["config"]
    if is_speech(config):
        return speech(config, identifier, document["revision"], source, Origin(file))
    return from_config(config, identifier, document["revision"], source, Origin(file))


def _file(identifier: str) -> str:
    return identifier.replace("/", "--") + ".json"


def _document(identifier: str) -> dict[str, Any]:
    return dict(json.loads((BUNDLED / _file(identifier)).read_bytes()))


def _diffusion(
    document: dict[str, Any], identifier: str, revision: str | None, source: str
) -> Diffusion:
    modules = tuple(_module(module, identifier) for module in document["modules"])
    stored = document.get("stored")
    return Diffusion(
        identifier=identifier,
        revision=revision,
        architecture=document["architecture"],
        modules=modules,
        denoiser=_denoiser(document, identifier),
        parameters=sum(module.parameters for module in modules),
        stored_weight_bytes=stored and stored["weight_bytes"],
        stored_source=stored and f"model: {identifier} ({citation(stored['source'])})",
        source=source,
    )


def _denoiser(document: dict[str, Any], of: str) -> Denoiser | Unet:
    """A transformer's dimensions are those of its module's config.json."""
    stated = document["denoiser"]
    if "pass_flop" in stated:
        return Unet(**stated)
    from gpuplan.models.images.pipelines import token_weights

    config = next(m["config"] for m in document["modules"] if m["kind"] == "transformer")
    width, layers, weights = token_weights(config, Origin(of))
    return Denoiser(
        identifier=of,
        width=width,
        layers=layers,
        token_weights=weights,
        **{"frame_stride": 0, **stated},
    )


def _module(document: dict[str, Any], of: str) -> DiffusionModule:
    """A module by its stated parameters, or by its config.json."""
    config = document.get("config")
    if config is None:
        return DiffusionModule(**document)
    origin = Origin(f"{of}/{document['name']}/config.json")
    if "_class_name" in config:
        from gpuplan.models.images.pipelines import module_parameters

        parameters = module_parameters(config, origin)
    else:
        parameters = from_config(config, of, None, of, origin).parameters
    return DiffusionModule(name=document["name"], kind=document["kind"], parameters=parameters)
