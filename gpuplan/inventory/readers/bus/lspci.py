"""`lspci` for people: one line a device, with `-nn`, `-n`, `-D`, `-PP`, `-k`, `-v` to `-vvv`."""

from __future__ import annotations

import re

from gpuplan.diagnostics import Diagnostic, note
from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.bus.lspci_details import DETAILS
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.pci import MELLANOX, NVIDIA, Function, Functions
from gpuplan.inventory.readers.words import SHORT_ADDRESS, Line, lines_of, pci_address, unwrapped
from gpuplan.source import Place, SourceDocument

TOOL = "lspci"
_FIRST = re.compile(
    rf"(?P<path>(?:[0-9A-Fa-f:.]+/)*)(?P<slot>{SHORT_ADDRESS}) "
    r"(?:(?P<only>[0-9a-f]{4})|(?P<class>[A-Z0-9][^:\[]*?)(?: \[(?P<code>[0-9a-f]{4})\])?): "
    r"(?P<name>.*)"
)
_LIKE_FIRST = re.compile(
    r"(?:[0-9A-Fa-f:./]*/)?(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}[:.][0-9A-Fa-f]"
)
_BEGINS = re.compile(rf"\s|{_LIKE_FIRST.pattern}")
# How the lines of a device begin; others belong to other tools.
_OWN = re.compile(
    r"\s+(?:Subsystem|Control|Flags|Status|Latency|Interrupt|NUMA node|IOMMU group|Bus|"
    r"Region [0-9]|Capabilities|LnkCap|LnkSta|Kernel driver in use|Kernel modules):"
)
_HEX_DUMP = re.compile(r"[0-9a-f]{2,3}:(?: [0-9a-f]{2}){1,16}\s*")
_IDS = re.compile(r"\[([0-9a-f]{4}:[0-9a-f]{4})\]")
_NUMERIC = re.compile(r"([0-9a-f]{4}:[0-9a-f]{4})(?: |$)")
_NAMELESS = re.compile(r"(.*?) Device ([0-9a-f]{4})$")
_TAIL = re.compile(r"(?: \(rev [0-9a-f]{2}\))?(?: \(prog-if [0-9a-f]{2}(?: \[[^\]]*\])?\))?$")
# Classes that an inventory holds, as pci.ids names them; a name that is not here is of no use.
CLASSES = {
    "Non-Volatile memory controller": "0108",
    "Ethernet controller": "0200",
    "Infiniband controller": "0207",
    "InfiniBand controller": "0207",
    "InfiniBand": "0c06",  # before InfiniBand had a class of its own
    "Fabric controller": "0208",
    "Network controller": "0280",
    "VGA compatible controller": "0300",
    "3D controller": "0302",
    "Display controller": "0380",
    "Host bridge": "0600",
    "ISA bridge": "0601",
    "PCI bridge": "0604",
    "Bridge": "0680",
    "Processing accelerators": "1200",
}
OTHER_CLASS = "ffff"  # named, and nothing that an inventory holds
VENDORS = {
    "NVIDIA Corporation": NVIDIA,
    "nVidia Corporation": NVIDIA,
    "Mellanox Technologies": MELLANOX,
    "Advanced Micro Devices, Inc. [AMD/ATI]": "1002",
    "Advanced Micro Devices [AMD/ATI]": "1002",
    "Intel Corporation": "8086",
    "Habana Labs Ltd.": "1da3",
}


def recognises(text: str) -> bool:
    return any(_FIRST.match(line) for line in text.splitlines())


def read(document: SourceDocument) -> tuple[Reading, ...]:
    parser = _Parser(document)
    parser.read()
    return (parser.gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


def product_words(functions: Functions, function: Function, name: str, place: Place) -> None:
    """Keep what a device is called; `Device 2330` is its number, where pci.ids has no name."""
    nameless = _NAMELESS.match(name)
    if nameless:
        maker = VENDORS.get(nameless[1])
        if maker and "pci_id" not in function.words:
            functions.say(function, "pci_id", f"{maker}:{nameless[2]}", place)
    elif name:
        functions.say(function, "product", name, place)
    maker = next((code for known, code in VENDORS.items() if name.startswith(known)), "")
    function.words.setdefault("maker", (maker, place))


def denied(place: Place) -> Diagnostic:
    return note(
        "GP062",
        "this output of lspci lacks what only root may read: links and virtual functions",
        place,
        help="run it again with sudo",
    )


class _Parser:
    """Reads line by line; `at` is the device that indented lines belong to."""

    def __init__(self, document: SourceDocument) -> None:
        self.document = document
        self.gathering = Gathering(TOOL, document.name)
        self.functions = Functions(self.gathering)
        self.at: Function | None = None
        self.heard: set[str] = set()  # one-time lines of this block: the first of each counts
        self.known = False  # some device was read
        self.denied = False

    def read(self) -> None:
        lines = unwrapped(lines_of(self.document), _BEGINS)
        for line in lines:
            self._line(line, last=line is lines[-1])
        self.functions.emit()

    def _line(self, line: Line, *, last: bool) -> None:
        if not line.text.strip():
            self.at = None
        elif line.text[0] in " \t":
            self._detail(line, last=last)
        elif not _HEX_DUMP.fullmatch(line.text):
            self._first(line, last=last)

    def _first(self, line: Line, *, last: bool) -> None:
        match = _FIRST.match(line.text)
        address = pci_address(match["slot"]) if match else None
        self.at = None
        if last and _open(line.text) and _LIKE_FIRST.match(line.text):
            self._cut(line)
        elif match is None or address is None:
            if _LIKE_FIRST.match(line.text) and ' "' not in line.text:  # else `lspci -mm`
                fact = "a device"
                expected = "an address, a class and a name like `17:00.0 3D controller: NVIDIA …`"
                word = line.word(0, 60)
                self.gathering.not_understood(fact, word, expected)
        else:
            self.known, self.heard = True, set()
            self._device(line, match, address, last=last)

    def _device(self, line: Line, match: re.Match[str], address: str, *, last: bool) -> None:
        end = _TAIL.search(line.text.rstrip(), match.start("name"))
        stop = end.start() if end else len(line.text)
        whole = match["name"].endswith("]") or _NUMERIC.fullmatch(match["name"])
        if last and not line.text[stop:].strip() and not whole:
            self._cut(line)  # it may be half a name
            return
        slot = line.group(match, "slot").place
        self.at = function = self.functions.at(address, slot)
        say = self.functions.say
        named, code = match["class"], match["code"] or match["only"]
        code = code or CLASSES.get(named or "", OTHER_CLASS)
        say(function, "class", code, line.group(match, "only" if match["only"] else "class").place)
        self._identity(line, function, match.start("name"), stop, numeric=bool(match["only"]))
        above = pci_address(match["path"].rstrip("/").rpartition("/")[2])
        if above:
            say(function, "parent", above, line.group(match, "path").place)

    def _identity(
        self, line: Line, function: Function, start: int, stop: int, *, numeric: bool
    ) -> None:
        """The product and its numbers, between two columns of a device's first line."""
        pattern = _NUMERIC if numeric else _IDS
        ids = list(pattern.finditer(line.text, start, stop))
        if ids:
            place = line.group(ids[-1], 1).place
            self.functions.say(function, "pci_id", ids[-1][1], place)
            stop = ids[-1].start()
        word = line.word(start, stop)
        if word.text and not (ids and word.text.endswith(" Device")):  # pci.ids has no name
            product_words(self.functions, function, word.text, word.place)

    def _detail(self, line: Line, *, last: bool) -> None:
        text = line.text
        if self.at is None:
            self._headless(line)
            return
        if "<access denied>" in text and not self.denied:
            self.denied = True
            self.gathering.problems.append(denied(line.word().place))
        for name, (pattern, take) in DETAILS.items():
            match = pattern.search(text)
            if match and last and "value" in match.groupdict():
                self._cut(line)
            elif match and name not in self.heard:
                take(self.functions, self.at, line, match)
                self.heard |= set() if name == "region" else {name}

    def _headless(self, line: Line) -> None:
        if "headless" not in self.heard and _OWN.match(line.text):
            self.heard.add("headless")
            fault = "the line that names a device is missing above"
            self.gathering.cut_off(fault, line.word().place)

    def _cut(self, line: Line) -> None:
        self.gathering.cut_off("its last line has no end, and is not used", line.word().place)


def _open(text: str) -> bool:
    """A bracket that does not close, or nothing after the class."""
    return (
        text.count("[") != text.count("]")
        or text.count("(") != text.count(")")
        or not _FIRST.match(text)
    )
