"""PCI functions as tools list them, and the facts that follow from a list of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuplan.inventory.facts import Subject, Value
from gpuplan.inventory.readers.gather import Gathering, shown
from gpuplan.source import Place

NVIDIA, MELLANOX = "10de", "15b3"
# Makers of compute devices; display controllers of others are a board's or a hypervisor's screen.
_GPU_MAKERS = frozenset((NVIDIA, "1002", "8086", "1da3"))
_NVIDIA_GPUS = frozenset(("0300", "0302", "0380"))
_OTHER_GPUS = frozenset(("0302", "0380", "1200"))
_LINKS = {"0200": "ethernet", "0207": "infiniband", "0c06": "infiniband"}
# GT/s of a lane → generation. Source: PCI Express Base Specification, Supported Link Speeds.
GENERATIONS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}


@dataclass(slots=True)
class Function:
    """One function. Words by name: `class` (0302), `pci_id` (10de:2330), `product`, `numa_node`,
    `generation` and `width` of the link, the `secondary` bus, `offset` and `stride`
    of virtual functions, `kind` where the tool says it, and the facts of `_COMMON` and `_OWN`."""

    address: str
    place: Place
    words: dict[str, tuple[Value, Place]] = field(default_factory=dict)

    def get(self, name: str) -> Value | None:
        return self.words[name][0] if name in self.words else None

    def number(self, name: str) -> int | None:
        value = self.get(name)
        return value if isinstance(value, int) else None

    @property
    def bus(self) -> int:
        return int(self.address.split(":")[1], 16)

    @property
    def domain(self) -> str:
        return self.address.split(":", maxsplit=1)[0]


def kind_of(function: Function) -> str | None:
    """`gpu`, `nic`, `nvme`, `bridge`; `device` where the class is not told; `function`: any other,
    such as the sound of a GPU's card; None: a bridge that an inventory does not hold. A VGA
    controller is a GPU only where NVIDIA made it: those of others are the screens of boards and
    hypervisors, and Intel's at 00:02.0 is the processor's own."""
    if function.get("kind"):
        return str(function.get("kind"))
    code = str(function.get("class") or "")
    stated = function.get("pci_id") or function.get("maker")
    maker = str(stated or "")[:4]
    if not code:
        return "device"
    if code in {"0200", "0207", "0208", "0c06"} or (code == "0280" and maker == MELLANOX):
        return "nic"
    if maker == NVIDIA:
        gpu = code in _NVIDIA_GPUS
    else:
        own = function.address == "0000:00:02.0"
        gpu = maker in _GPU_MAKERS and code in _OTHER_GPUS and not own
        gpu = gpu or (stated is None and code == "0302")
    if gpu or code.startswith("06"):  # VFIO lets bridges be in a guest's group
        return "gpu" if gpu else "bridge" if code == "0604" else None
    return "nvme" if code == "0108" else "function"


def virtual_functions(function: Function) -> tuple[str, ...]:
    """The addresses of the functions that are on: the first is `VF offset` after its physical
    function, each next one `stride` further. Source: PCI Express, 9.2.1.2 (routing identifiers)."""
    count, offset, stride = (function.number(n) for n in ("functions", "offset", "stride"))
    if not count or not offset or (not stride and count > 1):
        return ()
    _, bus, rest = function.address.split(":")
    device, number = rest.split(".")
    first = int(bus, 16) * 256 + int(device, 16) * 8 + int(number) + offset
    routes = (first + i * (stride or 0) for i in range(count))
    return tuple(_address(function.domain, route) for route in routes if route < 65_536)


def _address(domain: str, route: int) -> str:
    return f"{domain}:{route >> 8:02x}:{route >> 3 & 31:02x}.{route & 7}"


def _maker(function: Function) -> str:
    """The maker's number, else the first word of the product."""
    number = str(function.get("pci_id") or function.get("maker") or "")[:4]
    return number or str(function.get("product") or "").split(" ")[0]


@dataclass(slots=True)
class Functions:
    """All functions of one output, by address."""

    gathering: Gathering
    by_address: dict[str, Function] = field(default_factory=dict)
    disputed: set[tuple[str, str]] = field(default_factory=set)

    def at(self, address: str, place: Place) -> Function:
        return self.by_address.setdefault(address, Function(address, place))

    def say(self, function: Function, name: str, value: Value, place: Place) -> None:
        """Keep a word; a second one that differs takes both away."""
        before = function.words.get(name)
        if (function.address, name) in self.disputed or (before and before[0] == value):
            return
        if before is None:
            function.words[name] = value, place
            return
        del function.words[name]
        self.disputed.add((function.address, name))
        both = shown(before[0]), shown(value)
        fact = f"the {name.replace('_', ' ')} of {function.address}"
        self.gathering.contradiction(fact, both, (before[1], place))

    def emit(self) -> None:
        """Put the facts of all functions into the gathering; virtual functions are facts of their
        physical ones, where these say which they are."""
        bridges = {
            (f.domain, f.number("secondary")): f
            for f in self.by_address.values()
            if f.number("secondary")  # 0 where nothing has set a bridge up
        }
        virtual = {a for f in self.by_address.values() for a in virtual_functions(f)}
        virtual |= self._called_virtual()
        for function in self.by_address.values():
            kind = kind_of(function)
            undecided = (function.address, "class") in self.disputed
            if kind and not undecided and function.address not in virtual:
                self._emit(
                    function, (kind, function.address), bridges.get((function.domain, function.bus))
                )

    def _called_virtual(self) -> set[str]:
        """Functions that pci.ids calls virtual, where a physical one of their maker and class is
        beside them; alone they are what a guest has been given, and bus 0 holds all of a guest."""
        physical = {
            (f.domain, f.bus + further, f.get("class"), _maker(f))
            for f in self.by_address.values()
            for further in (0, 1)
            if "Virtual Function" not in str(f.get("product")) and f.bus
        }
        return {
            f.address
            for f in self.by_address.values()
            if "Virtual Function" in str(f.get("product"))
            and (f.domain, f.bus, f.get("class"), _maker(f)) in physical
        }

    def _emit(self, function: Function, subject: Subject, above: Function | None) -> None:
        add = self.gathering.add
        add(subject, "address", function.address, function.place)
        for name in _COMMON + _OWN.get(subject[0], ()):
            if name in function.words:
                add(subject, name, *function.words[name])
        if above and "parent" not in function.words:
            add(subject, "parent", above.address, function.place)
        if subject[0] == "gpu":
            self._link(function, subject, above)
        if subject[0] == "bridge" and function.number("secondary"):
            add(subject, "secondary_bus", *function.words["secondary"])
        if subject[0] == "nic" and function.get("class") in _LINKS:
            add(subject, "link", _LINKS[str(function.get("class"))], function.words["class"][1])
        listed = virtual_functions(function)
        if listed and subject[0] in {"gpu", "nic"}:
            add(subject, "virtual_functions", listed, function.words["functions"][1])

    def _link(self, function: Function, subject: Subject, above: Function | None) -> None:
        """What the link reaches: the lesser of what the device and the port above it can."""
        for name in ("generation", "width"):
            own = function.words.get(name)
            port = above.number(name) if above else None
            if own and isinstance(own[0], int):
                least = min(own[0], port or own[0])
                self.gathering.add(subject, f"pcie_{name}", least, own[1])


_COMMON = ("product", "pci_id", "numa_node", "iommu_group", "parent", "switch")
_OWN = {
    "gpu": ("bar_bytes", "uuid", "index", "cpus", "nvlinks", "memory_bytes"),
    "nic": ("name", "total_functions", "functions", "bytes_per_s", "cpus"),
    "nvme": ("name", "size_bytes", "driver"),
}
