"""A manifest's model and engine → facts and pins."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import EnginePin
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.manifest.load import read_text
from gpuplan.manifest.parts import ModelDimensions
from gpuplan.manifest.text import json_fault
from gpuplan.manifest.v1 import Workload
from gpuplan.models.configs import from_config
from gpuplan.models.load import known, known_names
from gpuplan.models.model import Diffusion, Model, Speech, Transformer, Vision
from gpuplan.models.speech import is_speech, speech
from gpuplan.resolve import messages
from gpuplan.sizing.ask.kinds import pooling_of, reading_task
from gpuplan.source import Origin


def find_model(spec: ModelDimensions | None, folder: Path, at: Origin) -> Model | None:
    """The facts of the model that `spec` names. Raises `Rejected`."""
    model = _known(spec, folder, at) if spec else None
    if isinstance(model, Transformer) and model.role != "decoder" and model.pooling is None:
        raise Rejected([messages.no_decoder(model.architecture, at)])
    return model


def _known(spec: ModelDimensions, folder: Path, at: Origin) -> Model:
    given = [n for n in ("path", "config") if getattr(spec, n) is not None]
    if len(given) > 1:
        raise Rejected([messages.several_ways(given, at)])
    if spec.path is not None:
        config = read_config(spec.path, folder, at)
        return _from_config(config, spec, f"config.json at {spec.path}", at)
    if spec.config is not None:
        return _from_config(spec.config, spec, "manifest: model.config", at.child("config"))
    if spec.name is None:
        raise Rejected([messages.no_way(at)])
    if (model := known(spec.name)) is not None:
        return model
    from gpuplan.models.vision import is_detector

    if is_detector(spec.name):
        raise Rejected([messages.detection_model(spec.name, at)])
    raise Rejected([messages.unknown_model(spec.name, known_names(), at)])


def _from_config(config: dict[str, Any], spec: ModelDimensions, source: str, at: Origin) -> Model:
    from gpuplan.models.images.videos import makes_videos
    from gpuplan.models.vision import is_detector, is_vision, vision

    module = config.get("_class_name")
    if isinstance(module, str) and makes_videos(module):
        raise Rejected([messages.video_model(spec.name or module, known_names(), at)])
    identifier = spec.name or config.get("_name_or_path")
    if not isinstance(identifier, str) or not identifier:
        raise Rejected([messages.no_identifier(at)])
    if is_speech(config):
        return speech(config, identifier, spec.revision, source, at)
    named = config.get("architectures")
    if isinstance(named, list) and any(map(is_detector, named)):
        raise Rejected([messages.detection_model(identifier, at)])
    if is_vision(config):
        return vision(config, identifier, spec.revision, source, at)
    return from_config(config, identifier, spec.revision, source, at)


def read_config(path: str, folder: Path, at: Origin) -> dict[str, Any]:
    text = read_text(folder / path)
    if isinstance(text, Diagnostic):
        raise Rejected([messages.bad_config(path, text.message.rpartition(": ")[2], at)])
    try:
        config = json.loads(text)
        json.dumps(config, ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        reason = "half of a surrogate pair is no character"
        raise Rejected([messages.bad_config(path, reason, at)]) from problem
    except ValueError as problem:
        raise Rejected([messages.bad_config(path, json_fault(text, problem), at)]) from problem
    except RecursionError as problem:
        raise Rejected([messages.bad_config(path, "nested too deeply", at)]) from problem
    if not isinstance(config, dict):
        raise Rejected([messages.bad_config(path, "not a JSON object", at)])
    return config


def _done(workload: Workload, model: Model | None) -> str:
    """What an engine has to do, as the catalogue names it."""
    if isinstance(model, Diffusion):
        return "video" if model.makes_videos else "image"
    if isinstance(model, Vision) and workload.task != "notebook":
        return reading_task(model, workload.task)
    if workload.task not in ("inference", "batch"):
        return workload.task
    if isinstance(model, Speech):
        return "speech"
    return "pooling" if pooling_of(workload, model) else workload.task


def find_engine(
    workload: Workload, model: Model | None, catalog: Catalog, origin: Origin
) -> EnginePin:
    """The pin of the engine that the manifest names, or of the task's own. Raises `Rejected`."""
    at = origin.child("engine")
    task = _done(workload, model)
    spec = workload.engine
    if spec is None:
        default = catalog.default_engine(task)
        if default is None:
            raise Rejected([messages.no_default_engine(task, origin.child("task"))])
        return default
    pin = catalog.engine(spec.name)
    if spec.image is not None:
        return EnginePin(
            name=spec.name,
            version=spec.version or _tag(spec.image),
            image=spec.image,
            digest=None,
            tasks=pin.tasks if pin else (task,),
            source=f"manifest: workloads.{workload.name}.engine",
        )
    if pin is None:
        raise Rejected([messages.unknown_engine(spec.name, catalog.ids("engines"), at)])
    if spec.version not in (None, pin.version):
        raise Rejected(
            [messages.no_pin(spec.name, spec.version or "", pin.version, at.child("version"))]
        )
    return replace(pin)


def _tag(image: str) -> str:
    """The tag of an image, or its digest; `untagged` is what the policies then complain about."""
    name = image.rpartition("/")[2]
    return name.partition("@")[2] or name.partition(":")[2] or "untagged"
