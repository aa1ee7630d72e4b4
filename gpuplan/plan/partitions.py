"""Names of the parts of a GPU, in every spelling that tools have for them.

A MIG profile is `1g.10gb`, its compute slices and its memory, with an extension behind it (NVIDIA
MIG User Guide, "MIG Device Names"). Where a name may have no `+`, NVIDIA's device plugin and GPU
feature discovery write a dot: the resource `nvidia.com/mig-1g.10gb.me`, the label
`nvidia.com/mig-1g.10gb.me.count`, the product `NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NewType, cast

from gpuplan.frozen import record
from gpuplan.units import format_ranges
from gpuplan.vendors import NVIDIA, VENDORS

PartitionName = NewType("PartitionName", str)  # of a MIG profile or a vGPU type
MigExtension = Literal["", "+me", "+me.all", "-me", "+gfx"]

GPU_RESOURCE = VENDORS[NVIDIA].resource
MIG_RESOURCE = "nvidia.com/mig-"
DOMAIN_LABEL = "nvidia.com/gpu.clique"  # the NVLink domain of a node, by feature discovery
MIG_CONFIG_LABEL = "nvidia.com/mig.config"  # the layout that MIG manager gives to a node
PRODUCT_LABEL = VENDORS[NVIDIA].label

_EXTENSIONS: tuple[MigExtension, ...] = ("+me", "+me.all", "-me", "+gfx")
_DOTTED = {extension.replace("+", "."): extension for extension in ("", *_EXTENSIONS)}
_BASE = r"[1-9]g\.[0-9]+gb"
MIG_NAME = rf"^{_BASE}({'|'.join(map(re.escape, _EXTENSIONS))})?$"
_NAME = re.compile(MIG_NAME)
_COUNT = rf"{re.escape(MIG_RESOURCE)}({_BASE})({'|'.join(map(re.escape, _DOTTED))})\.count"
_SHARED = r"(?i)-shared$"
_CUT = r"(?i)(.+?)-mig-([0-9a-z.+]+)"


def mig_extension(profile: PartitionName) -> MigExtension:
    """What a profile has of the media and graphics engines, as its name says."""
    match = _NAME.match(profile)
    return cast(MigExtension, match[1] or "") if match else ""


def dotted(profile: PartitionName) -> str:
    """As labels and resources write a profile: `1g.10gb.me`."""
    return profile.replace("+", ".")


def mig_resource(profile: PartitionName) -> str:
    """What pods ask for (NVIDIA k8s-device-plugin)."""
    return MIG_RESOURCE + dotted(profile)


def vgpu_resource(vgpu: PartitionName) -> str:
    """What virtual machines ask for (NVIDIA's KubeVirt device plugin)."""
    return f"nvidia.com/{vgpu}"


def counted_profile(label: str) -> PartitionName | None:
    """The profile of which a node's label counts the devices."""
    match = re.fullmatch(_COUNT, label)
    return PartitionName(match[1] + _DOTTED[match[2]]) if match else None


@record
class NodeProduct:
    """A value of the product's label: the GPU's own product, whether it is `cut` by MIG, and
    whether each device is `shared` by several pods."""

    product: str
    cut: bool
    shared: bool


def node_product(label: str) -> NodeProduct:
    plain = re.sub(_SHARED, "", label)
    cut = re.fullmatch(_CUT, plain)
    return NodeProduct(product=cut[1] if cut else plain, cut=cut is not None, shared=plain != label)


def placed(partition: str, starts: Iterable[int]) -> str:
    """`3g.40gb@4`, `1g.10gb@0-3`: a part with the first units of its instances."""
    where = format_ranges(starts)
    return f"{partition}@{where}" if where else partition
