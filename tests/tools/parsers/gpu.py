"""A stand-in for a GPU and for what engines have compiled for it. It computes nothing; only what
parsers ask of it is here: that there are eight H100, and kernels for all that they want.

Runs in the environment of the parsers, knows no gpuplan.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any

import torch
import torch.library

NAME, MEMORY, COUNT, CAPABILITY, PROCESSORS = (
    "NVIDIA H100 80GB HBM3",
    85_000_000_000,
    8,
    (9, 0),
    132,
)


class Anything(types.ModuleType):
    """A module of which every name is there, and can be called."""

    __path__: list[str] = []

    def __call__(self, *values: Any, **_: Any) -> Any:
        decorated = len(values) == 1 and callable(values[0])
        return values[0] if decorated else Anything("result")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name[0].isupper():  # a class, which others are made of
            setattr(self, name, type(name, (), {}))
            return getattr(self, name)
        return Anything(name)


class Kernels:
    """Operators of a compiled library: each says yes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def there(*_: Any, **__: Any) -> bool:
            return True

        there.default = there  # type: ignore[attr-defined]
        return there


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if any(f"{name}.".startswith(f"{n}.") for n in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Anything(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing in it."""


def modules(*names: str) -> None:
    """Compiled modules that are nowhere, and others that no parser calls, with all below them."""
    sys.meta_path.insert(0, Modules(names))


def kernels(*namespaces: str) -> None:
    """Operators of compiled modules; what they would answer for shapes is not registered."""
    real = torch.library.register_fake
    for name in namespaces:
        torch.ops.__dict__[name] = Kernels()

    def register(op: Any, func: Any = None, /, **settings: Any) -> Any:
        if isinstance(op, str) and op.split("::")[0] in namespaces:
            return (lambda f: f) if func is None else func
        return real(op, func, **settings)

    torch.library.register_fake = register


def device() -> None:
    """What PyTorch says of the GPUs."""
    about = types.SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=MEMORY,
        multi_processor_count=PROCESSORS,
    )
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: COUNT
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda _=None: CAPABILITY
    torch.cuda.get_device_name = lambda _=None: NAME
    torch.cuda.get_device_properties = lambda _=None: about
    torch.cuda.mem_get_info = lambda _=None: (MEMORY, MEMORY)
