"""`ip -json route` and `ip -json -details address`: which interfaces carry the default route, and
what each interface stands on."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.jsonread import Json, parse
from gpuplan.source import SourceDocument

ROUTE, ADDRESS = "ip -json route", "ip -json address"
_ROUTES = r'\[\s*\{\s*(?:"type"\s*:\s*"\w+"\s*,\s*)?"dst"\s*:'
_ADDRESSES = r'\[\s*(?:\{\s*\}\s*,\s*)*\{\s*"ifindex"\s*:'
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_REACHING = ("global", "site")  # scopes that others may use an address from


def _routes(document: SourceDocument) -> tuple[Reading, ...]:
    gathering, rows = _rows(document, ROUTE, _ROUTES)
    for row in rows:
        destination, device = row.text("dst"), row.text("dev")
        default = destination is not None and destination.text == "default"
        hops = row.members.get("nexthops") if default else None
        devices = [device] if device else [hop.text("dev") for hop in hops.items] if hops else []
        for name in devices if default else ():
            if name:
                gathering.add(("interface", name.text), "default_route", "yes", name.place)
    return (gathering.reading(),)


def _addresses(document: SourceDocument) -> tuple[Reading, ...]:
    gathering, rows = _rows(document, ADDRESS, _ADDRESSES)
    for row in rows:
        name = row.text("ifname")
        if name is None or not row.closed:
            continue
        subject = "interface", name.text
        mac = row.text("permaddr") or row.text("address")
        if mac and _MAC.fullmatch(mac.text):
            gathering.add(subject, "mac", mac.text, mac.place)
        for attribute, key in (("master", "master"), ("below", "link")):
            if word := row.text(key):
                gathering.add(subject, attribute, word.text, word.place)
        listed = row.members.get("addr_info")
        scopes = [item.text("scope") for item in listed.items] if listed else []
        reached = any(scope and scope.text in _REACHING for scope in scopes)
        gathering.add(subject, "reached", "yes" if reached else "no", name.place)
    return (gathering.reading(),)


def _rows(document: SourceDocument, tool: str, start: str) -> tuple[Gathering, list[Json]]:
    gathering = Gathering(tool, document.name)
    parsed = parse(document, start)
    if parsed.fault:
        fault = f"its JSON ends or breaks at '{parsed.fault.text[:20]}'"
        gathering.cut_off(fault, parsed.fault.place, "what stands before")
    return gathering, parsed.value.items if parsed.value else []


READERS = (
    Reader(tool=ROUTE, recognises=lambda t: re.search(_ROUTES, t) is not None, read=_routes),
    Reader(
        tool=ADDRESS, recognises=lambda t: re.search(_ADDRESSES, t) is not None, read=_addresses
    ),
)
