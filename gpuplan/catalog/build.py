"""Entries of `compiled.json` as the records of `hardware`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gpuplan.catalog.hardware import (
    Amount,
    Flag,
    Host,
    HostDrives,
    HostNics,
    MeasuredPower,
    Names,
    Nic,
    PcieSwitch,
    PowerSupplies,
    Range,
    StorageClass,
    Topology,
    WordedFact,
)
from gpuplan.catalog.model import Fact

Entry = dict[str, Any]
Cite = Callable[[str, str], str]  # key of a source, field → citation


class Facts:
    """The facts of one entry, each with its citation."""

    def __init__(self, entry: Entry, cite: Cite) -> None:
        self.entry, self.cite = entry, cite

    def _source(self, name: str) -> str:
        return self.cite(self.entry[name]["source"], name)

    def number(self, name: str, unit: str) -> Fact | None:
        if name not in self.entry:
            return None
        return Fact(value=self.entry[name]["value"], unit=unit, source=self._source(name))

    def words(self, name: str) -> WordedFact | None:
        if name not in self.entry:
            return None
        return WordedFact(value=self.entry[name]["value"], source=self._source(name))

    def names(self, name: str) -> Names | None:
        if name not in self.entry:
            return None
        return Names(values=tuple(self.entry[name]["value"]), source=self._source(name))

    def flag(self, name: str) -> Flag | None:
        if name not in self.entry:
            return None
        return Flag(value=self.entry[name]["value"], source=self._source(name))

    def amount(self, name: str) -> Amount | None:
        if name not in self.entry:
            return None
        value = Decimal(self.entry[name]["value"])
        return Amount(value=value, source=self._source(name))


def host(identifier: str, entry: Entry, cite: Cite) -> Host:
    facts = Facts(entry, cite)
    return Host(
        identifier=identifier,
        name=entry.get("name"),
        vendor=entry.get("vendor"),
        reference=entry["reference"],
        gpu=entry["gpu"],
        gpus=entry["gpus"],
        sockets=entry["sockets"],
        cpu_cores=entry["cpu_cores"],
        memory_bytes=entry["memory"],
        numa_nodes=entry.get("numa_nodes"),
        source=cite(entry["source"], ""),
        cpu=facts.words("cpu"),
        threads_per_core=facts.number("threads_per_core", ""),
        nvlink_nodes=facts.number("nvlink_nodes", ""),
        interconnect=facts.words("interconnect"),
        nics=tuple(_nics(row, cite) for row in entry["nics"]),
        drives=tuple(_drives(row, cite) for row in entry["drives"]),
        topology=_topology(entry["topology"], cite) if "topology" in entry else None,
        watts=facts.number("power", "W"),
        power_supplies=_supplies(entry["power_supplies"], cite)
        if "power_supplies" in entry
        else None,
        measured_power=tuple(
            MeasuredPower(
                load=row["load"],
                watts=row["power"],
                source=cite(row["source"], "measured_power"),
            )
            for row in entry["measured_power"]
        ),
        rack_units=facts.number("rack_units", ""),
        cooling=facts.words("cooling"),
    )


def _nics(row: Entry, cite: Cite) -> HostNics:
    return HostNics(
        nic=row["nic"],
        count=row["count"],
        purpose=row.get("purpose"),
        bytes_per_s=Facts(row, cite).number("rate", "B/s"),
        source=cite(row["source"], "nics"),
    )


def _drives(row: Entry, cite: Cite) -> HostDrives:
    return HostDrives(
        size_bytes=row["size"],
        count=row["count"],
        purpose=row.get("purpose"),
        form=row.get("form"),
        source=cite(row["source"], "drives"),
    )


def _topology(row: Entry, cite: Cite) -> Topology:
    return Topology(
        numa_nodes=tuple(tuple(gpus) for gpus in row["numa_nodes"]),
        switches=tuple(
            PcieSwitch(gpus=tuple(s["gpus"]), nics=tuple(s["nics"])) for s in row["switches"]
        ),
        source=cite(row["source"], "topology"),
    )


def _supplies(row: Entry, cite: Cite) -> PowerSupplies:
    return PowerSupplies(
        count=row["count"],
        watts=row["power"],
        spare=row.get("spare"),
        source=cite(row["source"], "power_supplies"),
    )


def nic(identifier: str, entry: Entry, cite: Cite) -> Nic:
    facts = Facts(entry, cite)
    pci_ids = facts.names("pci_ids")
    assert pci_ids is not None
    return Nic(
        identifier=identifier,
        name=entry["name"],
        vendor=entry["vendor"],
        pci_ids=pci_ids,
        vf_pci_id=facts.words("vf_pci_id"),
        driver=facts.words("driver"),
        bytes_per_s=facts.number("rate", "B/s"),
        ports=facts.number("ports", ""),
        links=facts.names("links"),
        rdma=facts.names("rdma"),
        vf_limit=facts.number("vf_limit", ""),
        sriov_operator=facts.flag("sriov_operator"),
        switchdev=facts.flag("switchdev"),
    )


def storage_class(identifier: str, entry: Entry, cite: Cite) -> StorageClass:
    facts = Facts(entry, cite)
    provisioner, access_modes = facts.words("provisioner"), facts.names("access_modes")
    assert provisioner is not None
    assert access_modes is not None
    return StorageClass(
        identifier=identifier,
        name=entry["name"],
        provider=entry.get("provider"),
        medium=entry["medium"],
        provisioner=provisioner,
        parameters=tuple(sorted(entry["parameters"].items())),
        access_modes=access_modes,
        size_minimum_bytes=facts.number("size_minimum", "B"),
        size_maximum_bytes=facts.number("size_maximum", "B"),
        iops_maximum=facts.number("iops_maximum", ""),
        bytes_per_s_maximum=facts.number("throughput_maximum", "B/s"),
        bytes_per_s_per_tib=facts.number("throughput_per_tib", "B/s"),
        usd_per_gb_month=facts.amount("usd_per_gb_month"),
        price_region=entry.get("price_region"),
    )


def range_of(row: Entry, cite: Cite) -> Range:
    low, typical, high = (Decimal(row[k]) if k in row else None for k in ("low", "typical", "high"))
    return Range(
        item=row["item"],
        about=row["about"],
        gpu=row.get("gpu"),
        node=row.get("node"),
        region=row.get("region"),
        unit=row["unit"],
        low=low,
        typical=typical,
        high=high,
        when=row["when"],
        status=row["status"],
        default=row["default"],
        sources=tuple(cite(key, row["item"]) for key in row["sources"]),
    )
