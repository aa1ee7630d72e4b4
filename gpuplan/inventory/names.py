"""Products as tools name them → identifiers of the catalogue."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache

from gpuplan.catalog.load import load_catalog
from gpuplan.plan.partitions import node_product

_BRANDS = re.compile(r"nvidia|geforce|tesla|quadro|graphics|amd|instinct|radeon|corporation")
_FORM = re.compile(r"(sxm|oam)[0-9](?![0-9])")
_BRACKETS = re.compile(r"\[([^\[\]]{1,80})\]")
_CARD = re.compile(r"(connectx-[0-9]+|bluefield-?[0-9]+)( ?(?:dx|lx|ex)\b)?", re.IGNORECASE)


def plain(text: str) -> str:
    """`NVIDIA H100 80GB HBM3`, `NVIDIA-H100-80GB-HBM3` → `h10080gbhbm3`."""
    folded = _BRANDS.sub("", node_product(text).product.casefold())
    return re.sub(r"[^a-z0-9]", "", _FORM.sub(r"\1", folded))


@cache
def _known() -> dict[str, set[str]]:
    """Identifiers by every plain name of theirs."""
    catalog = load_catalog()
    names: dict[str, set[str]] = {}
    for identifier in catalog.gpu_ids:
        gpu = catalog.gpu(identifier)
        assert gpu is not None
        for name in (identifier, gpu.name, gpu.product or "", *gpu.product_names):
            if plain(name):
                names.setdefault(plain(name), set()).add(identifier)
    return names


def gpu_types(
    products: Iterable[str], pci_id: str | None = None, memory_bytes: float | None = None
) -> set[str]:
    """The identifiers that `products` are names of; a name that several have says nothing. Where no
    name says it, the PCI identifier with the memory does, if one type alone has them. A type with
    another memory is none: boards of two sizes have one name."""
    named = {name for name in _named(products) if load_catalog().has_memory(name, memory_bytes)}
    if named or pci_id is None:
        return named
    alike = load_catalog().match_gpus(None, pci_id, memory_bytes)
    return {*alike} if len(alike) == 1 else set()


def _named(products: Iterable[str]) -> set[str]:
    identifiers: set[str] = set()
    for product in products:
        wordings = (product, *(_BRACKETS.findall(product)))
        hits = [_known()[plain(w)] for w in wordings if plain(w) in _known()]
        identifiers |= next((h for h in hits if len(h) == 1), set())
    return identifiers


def nearest_types(product: str) -> list[str]:
    """At most three identifiers whose names are most like `product`."""
    near = difflib.get_close_matches(plain(product), sorted(_known()), n=6, cutoff=0.6)
    return list(dict.fromkeys(i for name in near for i in sorted(_known()[name])))[:3]


def card_type(product: str, pci_id: str | None = None) -> str:
    """The card that the catalogue has by its PCI identifier; else `MT2910 Family [ConnectX-7]` →
    `connectx-7`; another product as it is."""
    known = load_catalog().nic_by_pci(pci_id) if pci_id else None
    if known:
        return known.identifier
    match = _CARD.search(product)
    return re.sub(r"\s+", "-", match[0].strip().casefold()) if match else product
