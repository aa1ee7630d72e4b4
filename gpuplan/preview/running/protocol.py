"""The engine's wire protocol, from the Pulumi SDK's generated modules.

They are loaded under a package of their own: importing `pulumi` would run the whole SDK, half a
second that only the child needs to spend.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from gpuplan.preview import messages
from gpuplan.preview.messages import PreviewFailed

ALIAS = "gpuplan_pulumi_protocol"


@dataclass(frozen=True, slots=True)
class Protocol:
    """Modules of generated code; grpc itself; the empty message."""

    resource: Any
    resource_grpc: Any
    engine: Any
    engine_grpc: Any
    grpc: Any
    empty: Any


def load() -> Protocol:
    """Raises `PreviewFailed` when this Python has no Pulumi SDK."""
    spec = find_spec("pulumi")
    if spec is None or not spec.submodule_search_locations:
        raise PreviewFailed([messages.sdk_missing("pulumi", sys.executable)])
    if ALIAS not in sys.modules:
        package = ModuleType(ALIAS)
        package.__path__ = [f"{p}/runtime/proto" for p in spec.submodule_search_locations]
        sys.modules[ALIAS] = package
    try:
        import grpc
        from google.protobuf import empty_pb2

        parts = [
            importlib.import_module(f"{ALIAS}.{name}")
            for name in ("resource_pb2", "resource_pb2_grpc", "engine_pb2", "engine_pb2_grpc")
        ]
    except ImportError as problem:
        missing = problem.name or "pulumi"
        raise PreviewFailed([messages.sdk_missing(missing, sys.executable)]) from problem
    resource, resource_grpc, engine, engine_grpc = parts
    return Protocol(resource, resource_grpc, engine, engine_grpc, grpc, empty_pb2.Empty())
