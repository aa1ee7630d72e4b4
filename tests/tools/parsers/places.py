"""Where the engines' parsers lie, by the releases and packages that they are made of."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from gpuplan.catalog.load import load_catalog
from tests.tools.engines import CACHE
from tests.tools.parsers import cuda

HERE = Path(__file__).parent
PACKAGES = HERE / "packages.txt"
ENGINES = ("vllm", "sglang", "axolotl")
MEGATRON_CORE = "0.17.0"  # of Megatron-Bridge 0.4.0, as its catalogue file says


def version(engine: str) -> str:
    pin = load_catalog().engine(engine)
    assert pin is not None
    return pin.version


def folder() -> Path:
    made_of = [*(f"{e}=={version(e)}" for e in ENGINES), PACKAGES.read_text("utf-8")]
    made_of += [Path(cuda.__file__).read_text("utf-8")]
    return CACHE / f"parsers-{hashlib.sha256(''.join(made_of).encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Beside:
    """An engine in a folder of its own, with what else its parser wants in other releases."""

    engine: str
    others: tuple[str, ...]
    packages: str
    options: tuple[str, ...] = ()

    @property
    def wheels(self) -> tuple[str, ...]:
        return f"{self.engine}=={version(self.engine)}", *self.others

    @property
    def listed(self) -> Path:
        return HERE / self.packages

    @property
    def folder(self) -> Path:
        made_of = f"{' '.join(self.wheels)} {self.listed.read_text('utf-8')}"
        return folder() / f"{self.engine}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"


def beside() -> dict[str, Beside]:
    omni = Beside("vllm-omni", (f"vllm=={version('vllm-omni')}",), "omni.txt")
    megatron = Beside(
        "megatron-bridge",
        (f"megatron-core=={MEGATRON_CORE}",),
        "megatron.txt",
        ("--python-version", "3.12"),
    )
    return {b.engine: b for b in (omni, megatron)}
