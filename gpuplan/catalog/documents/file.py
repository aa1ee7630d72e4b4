"""One file of the catalogue, of any kind."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, RootModel

from gpuplan.catalog.documents.cloud import CloudFile
from gpuplan.catalog.documents.component import ComponentFile
from gpuplan.catalog.documents.cuda import CudaFile
from gpuplan.catalog.documents.engine import BuildFile, EngineFile, ImageFile
from gpuplan.catalog.documents.gpu import GpuFile
from gpuplan.catalog.documents.instance import InstanceFile, RateFile
from gpuplan.catalog.documents.kernels import KernelsFile
from gpuplan.catalog.documents.nic import NicFile
from gpuplan.catalog.documents.node import NodeFile
from gpuplan.catalog.documents.price import PriceFile
from gpuplan.catalog.documents.provider import ProviderFile
from gpuplan.catalog.documents.ranges import RangesFile
from gpuplan.catalog.documents.servers import ServersFile
from gpuplan.catalog.documents.storage import StorageFile
from gpuplan.catalog.documents.tariff import (
    CarbonFile,
    ChargesFile,
    CommitmentsFile,
    InterruptionsFile,
)

AnyFile = (
    GpuFile
    | NodeFile
    | PriceFile
    | ComponentFile
    | EngineFile
    | CudaFile
    | ImageFile
    | BuildFile
    | InstanceFile
    | RateFile
    | NicFile
    | StorageFile
    | RangesFile
    | ChargesFile
    | CommitmentsFile
    | CarbonFile
    | InterruptionsFile
    | ServersFile
    | CloudFile
    | ProviderFile
    | KernelsFile
)


class CatalogFile(RootModel[Annotated[AnyFile, Field(discriminator="kind")]]):
    """One file of the catalogue; `kind` says which."""
