"""NCCL's topology XML: what `NCCL_TOPO_DUMP_FILE` writes, and files that vendors ship to be read as
`NCCL_TOPO_FILE`. NCCL shows switches by their upstream port and leaves out all other bridges."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers import xmlread
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.pci import GENERATIONS, Function, Functions
from gpuplan.inventory.readers.trees.hwloc_sets import bitmap
from gpuplan.inventory.readers.words import CPU_VENDORS, Word, pci_address, whole
from gpuplan.inventory.readers.xmlread import Element
from gpuplan.source import Place, SourceDocument

TOOL = "NCCL topology"
_CPU = re.compile(r"<system(?:\s[^>]*)?>.*?(?:<cpu\s[^>]*\bnumaid=|<pci\s[^>]*\bbusid=)", re.DOTALL)
_ARCHITECTURES = {"x86_64": "x86_64", "arm64": "aarch64", "ppc64": "ppc64le"}
_CLASS = re.compile(r"0x([0-9A-Fa-f]{4})[0-9A-Fa-f]{2}")
_ID = re.compile(r"0x([0-9A-Fa-f]{4})")
_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?) GT/s.*")
_WIDTHS = frozenset((1, 2, 4, 8, 12, 16, 32))
_INVENTED = "ffff:ff:"  # where vendors put switches that a guest does not see
_MEGABIT = 125_000  # bytes; `speed` is in Mbit/s. Source: NCCL, ncclNetProperties_t


def recognises(text: str) -> bool:
    return "<system" in text and _CPU.search(text) is not None


def read(document: SourceDocument) -> tuple[Reading, ...]:
    readings: list[Reading] = []
    for tree in xmlread.read(document, "system", TOOL):
        readings += _system(document, tree)
    return tuple(readings)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


def _system(document: SourceDocument, tree: xmlread.Root) -> list[Reading]:
    """One reading for each host; a rack-wide dump tells its hosts apart by `host_hash`."""
    hosts: dict[str, list[Element]] = {}
    for element in tree.root.children if tree.root else ():
        if element.tag in {"cpu", "pci", "nic"}:
            hosts.setdefault(element.attributes.get("host_hash", ""), []).append(element)
    readings: list[Reading] = []
    for host, elements in hosts.items() or [("", [])]:
        first = not readings
        gathering = Gathering(TOOL, document.name, problems=list(tree.problems if first else ()))
        parser = _Parser(gathering)
        for element in elements:
            parser.top(element)
        parser.functions.emit()
        readings.append(gathering.reading(host if len(hosts) > 1 and host else None))
    return readings


class _Parser:
    def __init__(self, gathering: Gathering) -> None:
        self.gathering = gathering
        self.functions = Functions(gathering)

    def top(self, element: Element) -> None:
        """A `<cpu>`, or a device that no CPU holds."""
        if element.tag != "cpu":
            self._below(element, None, None)
            return
        node = self._cpu(element)
        for child in element.children:
            self._below(child, node, None)

    def _cpu(self, element: Element) -> Word | None:
        """A NUMA node with its CPUs; -1 is the kernel's word for none."""
        add, node = self.gathering.add, element.attribute("numaid")
        affinity = element.attribute("affinity")
        if node and whole(node.text) is None:
            if node.text != "-1":
                self._odd("a NUMA node", node, "a number")
            node = None
        cpus = bitmap(affinity.text) if affinity else None
        if affinity and cpus is None:
            self._odd("an affinity", affinity, "a mask like 00000000,0000ffff")
        if node and affinity and cpus:
            add(("numa", str(whole(node.text))), "cpus", cpus, affinity.place)
        for name, attribute, known in (
            ("vendor", "cpu_vendor", CPU_VENDORS),
            ("arch", "architecture", _ARCHITECTURES),
        ):
            word = element.attribute(name)
            if word and word.text in known:
                add(HOST, attribute, known[word.text], word.place)
        return node

    def _below(self, element: Element, node: Word | None, switch: Word | None) -> None:
        if element.tag == "nic":
            self._lone(element, node)
        elif element.tag == "pci":
            self._pci(element, node, switch)

    def _pci(self, element: Element, node: Word | None, switch: Word | None) -> None:
        busid = element.attribute("busid")
        address = pci_address(busid.text) if busid else None
        inner = [child for child in element.children if child.tag == "pci"]
        if busid and address:
            bridge = bool(inner) or element.attributes.get("class", "").startswith("0x0604")
            if not (bridge and address.startswith(_INVENTED)):
                self._device(element, address, busid, node, switch)
            above = busid if bridge else switch
        else:
            missing = Word(text="", place=element.place)
            expected = "an address like 0000:17:00.0"
            self._odd("the busid of a device", busid or missing, expected)
            above = None
        for child in inner:
            self._below(child, node, above)

    def _device(
        self, element: Element, address: str, busid: Word, node: Word | None, switch: Word | None
    ) -> None:
        function, say = self.functions.at(address, busid.place), self.functions.say
        self._identity(element, function)
        if node:
            say(function, "numa_node", whole(node.text) or 0, node.place)
        above = pci_address(switch.text) if switch else None
        if switch and above:
            say(function, "switch", above, switch.place)
        for child in element.children:
            if child.tag == "gpu":
                say(function, "kind", "gpu", child.place)
                self._gpu(child, function)
            elif child.tag == "nic":
                say(function, "kind", "nic", child.place)
                self._nets(child, function)

    def _identity(self, element: Element, function: Function) -> None:
        say = self.functions.say
        code = element.attribute("class")
        match = _CLASS.fullmatch(code.text) if code else None
        if code and match:
            say(function, "class", match[1].lower(), code.place)
        ids = [element.attribute("vendor"), element.attribute("device")]
        numbers = [m[1].lower() for w in ids if w and (m := _ID.fullmatch(w.text))]
        if ids[0] and len(numbers) == 2 and numbers[0] not in {"0000", "ffff"}:
            say(function, "pci_id", ":".join(numbers), ids[0].place)
        speed, width = element.attribute("link_speed"), element.attribute("link_width")
        match = _SPEED.fullmatch(speed.text) if speed else None
        generation = GENERATIONS.get(match[1].removesuffix(".0")) if match else None
        if speed and generation:
            say(function, "generation", generation, speed.place)
        lanes = whole(width.text) if width else None
        if width and lanes in _WIDTHS:
            say(function, "width", lanes or 0, width.place)

    def _gpu(self, element: Element, function: Function) -> None:
        """`dev` is NVML's number, as `nvidia-smi` counts."""
        index = element.attribute("dev")
        number = whole(index.text) if index else None
        if index and number is not None:
            self.functions.say(function, "index", number, index.place)
        links = element.all("nvlink")
        counts = [whole(link.attributes.get("count", "")) for link in links]
        if links and element.closed and None not in counts:
            total = sum(count or 0 for count in counts)
            self.functions.say(function, "nvlinks", total, links[0].place)

    def _nets(self, element: Element, function: Function) -> None:
        """Name and rate of a card: of its one port, or of ports that share a name, which have the
        sum of their rates. Ports of several names are several functions, all below the first."""
        nets = element.all("net")
        names = {net.attributes.get("name", "") for net in nets}
        if not element.closed or len(names) != 1:
            return
        name, rates = nets[0].attribute("name"), [rate for net in nets if (rate := _rate(net))]
        if name and name.text and "+" not in name.text:  # NCCL joins cards so
            self.functions.say(function, "name", name.text, name.place)
            if len(rates) == len(nets):
                total = sum(rate for rate, _ in rates)
                self.functions.say(function, "bytes_per_s", total, rates[0][1])

    def _lone(self, element: Element, node: Word | None) -> None:
        """A card whose place on the bus is not known."""
        for net in element.all("net"):
            name, rate = net.attribute("name"), _rate(net)
            if name is None or not name.text or "+" in name.text:
                continue
            subject = "nic", name.text
            self.gathering.add(subject, "name", name.text, name.place)
            if node:
                self.gathering.add(subject, "numa_node", whole(node.text) or 0, node.place)
            if rate:
                self.gathering.add(subject, "bytes_per_s", *rate)

    def _odd(self, fact: str, word: Word, expected: str) -> None:
        self.gathering.not_understood(fact, word, expected)


def _rate(net: Element) -> tuple[int, Place] | None:
    word = net.attribute("speed")
    value = whole(word.text) if word else None
    return (value * _MEGABIT, word.place) if word and value else None
