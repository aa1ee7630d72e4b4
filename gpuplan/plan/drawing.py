"""A host as boxes, to be drawn with characters or as SVG: what renderers read."""

from __future__ import annotations

from gpuplan.frozen import record

Pairs = tuple[tuple[str, str], ...]


@record
class Share:
    """`part` is empty for a whole device, `owner` where nobody has it yet."""

    part: str
    owner: str


@record
class DeviceBox:
    """`words` are columns: what it is, where, how large. `shares` are who has it: the part of it
    and the workload."""

    name: str
    kind: str
    words: tuple[str, ...]
    shares: tuple[Share, ...] = ()


@record
class GroupBox:
    """Devices on one PCIe switch; `switch` is empty for those on none."""

    switch: str
    devices: tuple[DeviceBox, ...]


@record
class NodeBox:
    """A NUMA node: facts as label and text, and its devices."""

    title: str
    facts: Pairs
    groups: tuple[GroupBox, ...]


@record
class HostDrawing:
    """`links` are the kind of link and who has it."""

    title: str
    facts: Pairs
    nodes: tuple[NodeBox, ...]
    links: Pairs
