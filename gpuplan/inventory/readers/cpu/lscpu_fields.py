"""The fields of lscpu as facts, and whether they agree."""

from __future__ import annotations

import re

from gpuplan.frozen import record
from gpuplan.inventory.readers.gather import (
    HOST,
    Gathering,
    shown,
)
from gpuplan.inventory.readers.words import Word, absent, cpu_list, whole

TOOL = "lscpu"
KEYS = (
    r"Architecture|CPU op-mode\(s\)|Address sizes|Byte Order|CPU\(s\)|"
    r"(?:On|Off)-line CPU\(s\) (?:list|mask)|(?:BIOS )?Vendor ID|(?:BIOS )?Model name|"
    r"BIOS CPU family|Thread\(s\) per core|"
    r"Core\(s\) per socket|Core\(s\) per cluster|Cluster\(s\)|CPU socket\(s\)|Socket\(s\)|"
    r"Hypervisor vendor|Virtuali[sz]ation type|NUMA node\(s\)|NUMA node\d{1,9} CPU\(s\)"
)
_NODE = re.compile(r"NUMA node(\d{1,9}) CPU\(s\)")
_BITS = re.compile(r"(\d{2}) bits physical")
_VENDORS = {
    "GenuineIntel": "intel",
    "AuthenticAMD": "amd",
    "HygonGenuine": "amd",  # AMD's design, under licence
    "ARM": "arm",
    "IBM": "ibm",
}
_BY_ARCHITECTURE = {"aarch64": "arm", "arm64": "arm", "ppc64le": "ibm", "ppc64": "ibm"}
_COUNTS = {
    "Thread(s) per core": "threads_per_core",
    "Core(s) per socket": "cores_per_socket",
    "Socket(s)": "sockets",
    "CPU socket(s)": "sockets",
}


_SAME = {
    "On-line CPU(s) mask": "On-line CPU(s) list",
    "Core(s) per cluster": "Core(s) per socket",
    "CPU socket(s)": "Socket(s)",
}
_ALWAYS = (
    "CPU(s)",
    "On-line CPU(s) list",
    "Model name",
    "Thread(s) per core",
    "Core(s) per socket",
    "Socket(s)",
    "NUMA node(s)",
)


@record
class Entry:
    """A line: the key as lscpu writes it, its value, and where the key stands."""

    key: str
    value: Word
    at: Word


def add_fields(gathering: Gathering, entries: list[Entry]) -> None:
    if not entries:
        return
    _words(gathering, entries)
    models = _named(entries, "Model name") or _named(entries, "BIOS Model name")
    if len(models) > 1:
        gathering.drop(HOST, "cpu_model")
        fact, left = f"one of {len(models)} kinds of cores", "their model and numbers are left out"
        gathering.several(fact, models[1], left, "lscpu -e")
    else:
        _models(gathering, models)
        _counts(gathering, entries)
    off = frozenset(_online(gathering, entries))
    _nodes(gathering, entries, off)
    first = {entry.key: entry.value for entry in reversed(entries)}
    _agree(gathering, first.get("CPU(s)"))
    filled = (key for key, word in first.items() if word.text)
    plain = {_SAME.get(key, key).removeprefix("BIOS ") for key in filled}
    missing = [key for key in _ALWAYS if key not in plain]
    if missing:
        gathering.lacks(", ".join(missing), entries[0].at.place)


def _named(entries: list[Entry], key: str) -> list[Word]:
    return [entry.value for entry in entries if entry.key == key]


def _models(gathering: Gathering, models: list[Word]) -> None:
    for word in models:
        if not absent(word.text):
            gathering.add(HOST, "cpu_model", word.text, word.place)


def _words(gathering: Gathering, entries: list[Entry]) -> None:
    for entry in entries:
        word = entry.value
        if absent(word.text):
            continue
        if entry.key == "Architecture":
            gathering.add(HOST, "architecture", word.text, word.place)
            _vendor(gathering, word, _BY_ARCHITECTURE.get(word.text))
        elif entry.key == "Hypervisor vendor":
            gathering.add(HOST, "virtualization", word.text, word.place)
        elif entry.key == "Vendor ID":
            _vendor(gathering, word, _VENDORS.get(word.text))
        elif entry.key == "Model name" and word.text.startswith("POWER"):
            _vendor(gathering, word, "ibm")
        elif entry.key == "Address sizes":
            _bits(gathering, word)


def _vendor(gathering: Gathering, word: Word, name: str | None) -> None:
    """Who designed the CPU; of Arm's and IBM's architectures the architecture says it."""
    if name:
        gathering.add(HOST, "cpu_vendor", name, word.place)


def _bits(gathering: Gathering, word: Word) -> None:
    match = _BITS.search(word.text)
    if match:
        gathering.add(HOST, "physical_address_bits", int(match[1]), word.place)
    else:
        expected = "bits physical, bits virtual"
        gathering.not_understood("the address sizes", word, expected)


def _counts(gathering: Gathering, entries: list[Entry]) -> None:
    for entry in entries:
        attribute, word = _COUNTS.get(entry.key), entry.value
        if attribute is None or absent(word.text):
            continue
        number = whole(word.text)
        if not number:
            gathering.not_understood(entry.key, word, "a number above 0")
        else:
            gathering.add(HOST, attribute, number, word.place)


def _list(gathering: Gathering, entry: Entry, *, masks: bool) -> tuple[int, ...] | None:
    """A list of CPUs, or the mask that `lscpu -x` prints."""
    text = entry.value.text
    if masks:
        mask = re.fullmatch(r"(?:0x)?([0-9a-fA-F]{1,4096})", text.replace(",", ""))
        bits = int(mask[1], 16) if mask else 0
        cpus = tuple(i for i in range(bits.bit_length()) if bits >> i & 1) if mask else None
    else:
        cpus = cpu_list(text)
    if cpus is None:
        expected = "a mask of CPUs" if masks else "a list of CPUs (0-55,112-167)"
        gathering.not_understood(entry.key, entry.value, expected)
    return cpus


def _masks(entries: list[Entry]) -> bool:
    return any(entry.key == "On-line CPU(s) mask" for entry in entries)


def _online(gathering: Gathering, entries: list[Entry]) -> tuple[int, ...]:
    """The CPUs that are on; with those that are off, which are returned, they are all."""
    off: tuple[int, ...] | None = ()
    masks = _masks(entries)
    for entry in entries:
        if entry.key.startswith("Off-line"):
            off = _list(gathering, entry, masks=masks)  # lscpu cuts long ones
        elif entry.key.startswith("On-line"):
            cpus = _list(gathering, entry, masks=masks)
            if cpus:
                gathering.add(HOST, "cpus", cpus, entry.value.place)
    if off is not None:
        _total(gathering, [entry for entry in entries if entry.key == "CPU(s)"], len(off))
    return off or ()


def _total(gathering: Gathering, entries: list[Entry], off: int) -> None:
    on = gathering.facts.get((HOST, "cpus"))
    for entry in entries:
        count = whole(entry.value.text)
        if count is None:
            gathering.not_understood("CPU(s)", entry.value, "a number")
        elif on and isinstance(on.value, tuple) and count != len(on.value) + off:
            of = f" and {off} off" if off else ""
            both = f"{count} CPUs", f"a list of {len(on.value)}{of}"
            places = entry.value.place, on.place
            gathering.contradiction("its CPUs", both, places)
            gathering.drop(HOST, "cpus")


def _nodes(gathering: Gathering, entries: list[Entry], off: frozenset[int]) -> None:
    """The CPUs of each node that are on: some kernels list all."""
    nodes = [(m[1], e) for e in entries if (m := _NODE.fullmatch(e.key))]
    owners: dict[int, Entry] = {}
    masks = _masks(entries)
    for number, entry in nodes:
        empty = absent(entry.value.text)
        cpus = () if empty else _list(gathering, entry, masks=masks)
        if cpus is None:
            continue
        usable = tuple(cpu for cpu in cpus if cpu not in off)
        gathering.add(("numa", str(int(number))), "cpus", usable, entry.value.place)
        owner = next((owners[cpu] for cpu in cpus if cpu in owners), None)
        if owner and owner.key != entry.key:
            places = owner.value.place, entry.value.place
            both = owner.value.text, entry.value.text
            gathering.contradiction("the CPUs of its nodes", both, places)
            _drop_nodes(gathering)
        owners.update(dict.fromkeys(cpus, entry))
    word = next((entry.value for entry in entries if entry.key == "NUMA node(s)"), None)
    _node_count(gathering, word, len({number for number, _ in nodes}))


def _node_count(gathering: Gathering, word: Word | None, listed: int) -> None:
    count = whole(word.text) if word else None
    if word is None:
        return
    if count is None:
        gathering.not_understood("NUMA node(s)", word, "a number")
    elif count != listed:
        gathering.cut_off(f"it has {count} NUMA nodes, and lines of {listed}", word.place)
    else:
        gathering.add(HOST, "numa_count", count, word.place)


def _drop_nodes(gathering: Gathering) -> None:
    for subject, attribute in tuple(gathering.facts):
        if subject[0] == "numa":
            gathering.drop(subject, attribute)


def _agree(gathering: Gathering, total: Word | None) -> None:
    """The nodes' CPUs are those that are on; sockets, cores and threads multiply to them."""
    facts = gathering.facts
    nodes = [fact for (subject, _), fact in facts.items() if subject[0] == "numa"]
    online = facts.get((HOST, "cpus"))
    listed: list[int] = []
    for fact in nodes:
        if isinstance(fact.value, tuple):
            listed += (cpu for cpu in fact.value if isinstance(cpu, int))
    listed.sort()
    counted = gathering.value(HOST, "numa_count") == len(nodes)
    if online and nodes and counted and tuple(listed) != online.value:
        both = f"CPUs {shown(online.value)} on", f"{shown(tuple(listed))} in its nodes"
        places = online.place, nodes[-1].place
        gathering.contradiction("its CPUs", both, places)
        _drop_nodes(gathering)
        gathering.drop(HOST, "cpus")
    if total:
        count = len(online.value) if online and isinstance(online.value, tuple) else None
        _product(gathering, total, count)


def _product(gathering: Gathering, total: Word, online: int | None) -> None:
    names = "sockets", "cores_per_socket", "threads_per_core"
    factors = [gathering.value(HOST, name) for name in names]
    if not all(isinstance(factor, int) for factor in factors):
        return
    sockets, cores, threads = (int(str(factor)) for factor in factors)
    if sockets * cores * threads in (whole(total.text), online):
        return
    both = f"{total.text} CPUs", f"{sockets} × {cores} × {threads} of them"
    place = gathering.facts[HOST, "threads_per_core"].place
    gathering.contradiction("its sockets, cores and threads", both, (total.place, place))
    gathering.drop(HOST, "cores_per_socket")
    gathering.drop(HOST, "threads_per_core")
