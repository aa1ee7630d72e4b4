"""Servers of MLPerf submissions as files of the catalogue: `python bench/catalog/hosts.py CSV
[FOLDER]`.

The CSV has a row a system description, as extracted from the results' repositories, with its
source as `repository@commit:path`. One file a server, GPU, number of GPUs and CPU: the newest row.
Files that this script wrote are written again; those that somebody wrote by hand stay, and their
servers are left out. Cloud instances and previews are left out too.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parents[2] / "gpuplan/catalog/data/nodes"
READ = "2026-11-21"  # when the descriptions were extracted
MARK = "# Written by bench/catalog/hosts.py from an MLPerf system description.\n"

# Text of the description → GPU of the catalogue. The first that matches holds.
GPUS = (
    (r"GB300", "gb300-288gb"),
    (r"GB200", "gb200-186gb"),
    (r"B300", "b300-sxm-288gb"),
    (r"B200", "b200-sxm-180gb"),
    (r"GH200.*144", "gh200-144gb"),
    (r"GH200.*96", "gh200-96gb"),
    (r"H200[ -]NVL", "h200-nvl-141gb"),
    (r"H200-SXM", "h200-sxm-141gb"),
    (r"H100[ -]NVL", "h100-nvl-94gb"),
    (r"H100-PCIe", "h100-pcie-80gb"),
    (r"H100-SXM|H100 80GB HBM3", "h100-sxm-80gb"),
    (r"A100 - PCIe - 80", "a100-pcie-80gb"),
    (r"A100-SXM-80", "a100-sxm-80gb"),
    (r"L40S", "l40s"),
    (r"NVIDIA L4\b", "l4"),
    (r"RTX P(RO|ro) 6000.*(Server|SE)", "rtx-pro-6000-server"),
    (r"RTX 4090", "rtx-4090-24gb"),
    (r"RTX A5000", "rtx-a5000"),
    (r"RTX 4000 Ada", "rtx-4000-ada"),
    (r"RX 7900 XTX", "rx-7900-xtx-24gb"),
    (r"MI300X", "mi300x-192gb"),
    (r"MI325X", "mi325x-256gb"),
    (r"MI350X", "mi350x-288gb"),
    (r"MI355X", "mi355x-288gb"),
)
# Names of makers as servers carry them; a submitter that is not here is no maker.
MAKERS = {
    "ASUSTeK": "ASUS",
    "Cisco": "Cisco",
    "Dell": "Dell",
    "GATEOverflow": None,
    "GigaComputing": "Gigabyte",
    "HPE": "HPE",
    "Inventec": "Inventec",
    "Lenovo": "Lenovo",
    "MiTAC": "MiTAC",
    "Quanta_Cloud_Technology": "QCT",
    "Supermicro": "Supermicro",
    "Wiwynn": "Wiwynn",
    "xFusion": "xFusion",
}
WITHIN = {
    "dell": "Dell",
    "poweredge": "Dell",
    "hpe": "HPE",
    "proliant": "HPE",
    "thinksystem": "Lenovo",
    "supermicro": "Supermicro",
    "gigabyte": "Gigabyte",
    "quantagrid": "QCT",
    "cisco": "Cisco",
    "asus": "ASUS",
}
TOKENS = r"H[12]00|A100|B[23]00|L40S?|L4|GH200|GB[23]00|MI3[0-9]{2}X|RTX|Grace"
REPEATED = "NVIDIA|Dell|HPE|GIGABYTE|Supermicro|Cisco|ASUS|ASUSTeK|PowerEdge|QuantaGrid|TWCC"
NO_SERVERS = {"hpf", "hpf hgx system", "srs", "gh200"}  # clusters, racks, a superchip
MISNAMED = {("XE9680L", "gb200-186gb")}  # a server that cannot have the GPU
COOLING = {"air": "air", "passive": "air", "liquid": "liquid", "dlc": "liquid", "water": "liquid"}
FAMILY = {"Intel(R) Xeon(R)": "Intel Xeon", "INTEL(R) XEON(R)": "Intel Xeon", "GOLD": "Gold"}


class Server(NamedTuple):
    identifier: str
    name: str
    maker: str
    gpu: str
    row: dict[str, str]


def servers(rows: Iterable[dict[str, str]]) -> Iterator[Server]:
    """The servers that the rows describe well enough; the same one may come several times."""
    for row in rows:
        maker, gpu, model = _maker(row), _gpu(row["gpu_model"]), _model(row["system"])
        if maker and gpu and _is_server(model, gpu) and _whole(row):
            count = row["gpus_per_node"]
            words = (maker, model, f"{count}x", gpu, _cpu_slug(row["cpu_model"]))
            yield Server(_slug(" ".join(words)), f"{maker} {model}", maker, gpu, row)


def _is_server(model: str, gpu: str) -> bool:
    return bool(model) and model.casefold() not in NO_SERVERS and (model, gpu) not in MISNAMED


def _whole(row: dict[str, str]) -> bool:
    """A server on sale whose cores and memory are known, described with all of its GPUs: boards of
    modules have more than one, of which some descriptions use one."""
    on_sale = row["status"].casefold() in ("available", "available on-premise")
    board = re.search(r"SXM|MI3", row["gpu_model"]) and int(row["gpus_per_node"]) < 4
    known = row["cores_per_socket_checked"].isdigit() and _bytes(row["memory"])
    return bool(on_sale and known and not board)


def _maker(row: dict[str, str]) -> str | None:
    system = row["system"].casefold()
    named = next((maker for word, maker in WITHIN.items() if word in system), None)
    return named or MAKERS.get(row["submitter"])


def _gpu(text: str) -> str | None:
    if "," in text or text.startswith("Virtualized"):
        return None
    return next((gpu for pattern, gpu in GPUS if re.search(pattern, text)), None)


def _model(system: str) -> str:
    """The server's name without its GPUs, the number of nodes and what repeats the maker."""
    text = re.sub(r"\(.*?\)|\bwith\b.*|,.*", "", system.replace("_", " "))
    text = re.sub(r"^[0-9]+ ?x ?(?=[A-Z])|x[0-9]+[A-Z]+[0-9].*", "", text)
    text = re.sub(rf"[- ](?:[0-9]+x ?)?(?:{TOKENS})(?![0-9]).*", "", text)
    text = re.sub(rf"\b(?:{REPEATED})\b", "", text, flags=re.IGNORECASE)
    text = re.sub(r"\bn[0-9]+\b|\b[0-9]+x$|[- ]N1$", "", text.strip())
    return re.sub(r"^([A-Z]+) -", r"\1-", " ".join(text.split()))


def _cpu(text: str) -> str:
    for long, short in FAMILY.items():
        text = text.replace(long, short)
    text = re.sub(r"\b[0-9]+-Core Processor|\bCPU\b|@.*|\([RrTtMm]+\)|^[0-9]+x ?", "", text)
    return " ".join(text.split()).replace("PLATINUM", "Platinum").replace("Intel  ", "Intel ")


def _cpu_slug(text: str) -> str:
    words = _cpu(text).split()
    return words[-1].replace("+", "-plus") if words else ""


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.casefold()).strip("-")[:60].strip("-")


def _bytes(text: str) -> str | None:
    """`2 TB`; the descriptions write sizes in several ways. None for what is no size."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*(T|G)(iB|B)?( GB)?\s*", text)
    return match and f"{float(match[1]):g} {match[2]}{match[3] or 'B'}"


def document(server: Server) -> str:
    """The file's text."""
    row = server.row
    repository, rest = row["source"].split("@", 1)
    commit, path = rest.split(":", 1)
    sockets = int(row["cpu_sockets"])
    lines = [
        "kind: node",
        f"id: {server.identifier}",
        f"name: {_text(server.name)}",
        f"vendor: {server.maker}",
        f"gpu: {server.gpu}",
        f"gpus: {row['gpus_per_node']}",
        f"sockets: {sockets}",
        f"cpu_cores: {sockets * int(row['cores_per_socket_checked'])}",
        f"memory: {_bytes(row['memory'])}",
    ]
    lines += [
        f"{name}: {{value: {_text(value)}, source: description}}" for name, value in _facts(row)
    ]
    lines += [*_nics(row), *_drives(row)]
    lines.append("source: description")
    said = re.match(r"file says (\w+); CPU model has (\d+)", row["cores_note"])
    notes = (
        [f"The description says {said[1]} cores a socket; the CPU has {said[2]}."] if said else []
    )
    if int(row["nodes"] or 1) > 1:
        notes.append(f"The description is of {row['nodes']} such nodes.")
    lines += ["notes:", *(f"  - {_text(note)}" for note in notes)] if notes else []
    lines += [
        "sources:",
        "  description:",
        f"    title: {_text('MLPerf system description, ' + row['submitter'])}",
        f"    repository: {repository}",
        f"    commit: {commit}",
        f"    path: {_text(path)}",
        f'    read: "{READ}"',
    ]
    return MARK + "\n".join(lines) + "\n"


def _facts(row: dict[str, str]) -> Iterator[tuple[str, str]]:
    yield "cpu", _cpu(row["cpu_model"])
    link = row["gpu_interconnect"].strip()
    if re.search(r"nvlink|xgmi|infinity fabric", link, re.IGNORECASE):
        yield "interconnect", link
    cooling = row["cooling"].casefold()
    kinds = {kind for word, kind in COOLING.items() if re.search(rf"\b{word}", cooling)}
    if kinds:
        yield "cooling", "air and liquid" if len(kinds) == 2 else kinds.pop()


PART = re.compile(
    r"(?:(?P<purpose>Compute|Storage|Management): *)?(?P<count>[0-9]+) ?x (?P<card>.*)"
)
CARDS = (
    (r"BlueField-?[ ]?3|\bB3[0-9]{3}\b", "bluefield-3"),
    (r"BlueField-?[ ]?2", "bluefield-2"),
    (r"ConnectX-8", "connectx-8"),
    (r"ConnectX-7", "connectx-7"),
    (r"ConnectX-6 Lx", "connectx-6-lx"),
    (r"ConnectX-6 Dx", "connectx-6-dx"),
    (r"ConnectX-6", "connectx-6"),
    (r"\bX710", "intel-x710"),
    (r"\bX550", "intel-x550"),
)


def _nics(row: dict[str, str]) -> list[str]:
    """Cards that the description counts and names."""
    lines: list[str] = []
    for part in re.split(r",", f"{row['networking']},{row['nic_count']}"):
        match = PART.search(part)
        nic = match and next((n for text, n in CARDS if re.search(text, match["card"])), None)
        if match and nic:
            rate = re.search(r"([0-9]+) ?Gb", match["card"])
            lines += [f"  - nic: {nic}", f"    count: {match['count']}"]
            lines += [f"    purpose: {match['purpose'].casefold()}"] if match["purpose"] else []
            if rate:
                lines.append(f"    rate: {{value: {rate[1]} Gb/s, source: description}}")
            lines.append("    source: description")
    return ["nics:", *lines] if lines else []


DRIVES = re.compile(
    r"(?P<count>[0-9]+) ?x ?(?P<size>[0-9.]+) ?(?P<unit>[TG]B)"
    r"(?P<form>( NVMe| SSDs?| U\.2| E1\.s)*)"
)


def _drives(row: dict[str, str]) -> list[str]:
    """Drives that the description counts; none where one part of it says something else."""
    parts = re.split(r" ?\+ ?|, | and ", row["storage_capacity"].strip())
    drives = [DRIVES.fullmatch(part) for part in parts]
    if "NVMe" not in row["storage_type"] or not all(drives):
        return []
    return ["drives:", *(line for drive in drives if drive for line in _drive(drive))]


def _drive(drive: re.Match[str]) -> Iterator[str]:
    yield f"  - count: {drive['count']}"
    yield f"    size: {float(drive['size']):g} {drive['unit']}"
    form = re.search(r"U\.2|E1\.s", drive["form"])
    yield f"    form: {_text('NVMe ' + form[0] if form else 'NVMe')}"
    yield "    source: description"


def _text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        print("usage: python bench/catalog/hosts.py CSV [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[1]) if len(arguments) == 2 else DATA
    with Path(arguments[0]).open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: _age(row["source"]))
    for path in folder.glob("*.yaml"):
        if path.read_text(encoding="utf-8").startswith(MARK):
            path.unlink()
    by_hand = {path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    by_name = {server.identifier: server for server in servers(rows)}
    for server in by_name.values():
        described = server.row["source"].split(":", 1)[1]
        if not any(
            f"path: {quote}{described}{quote}\n" in t for t in by_hand for quote in ("", '"')
        ):
            target = folder / f"{server.identifier}.yaml"
            target.write_text(document(server), encoding="utf-8")
    return 0


def _age(source: str) -> tuple[str, str]:
    """Rounds of training and inference in their order: the newest is last."""
    round_ = re.search(r"_v([0-9.]+)@", source)
    return (round_[1] if round_ else "", source)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
