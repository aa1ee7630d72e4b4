"""`make catalog` keeps what was written since: the tables are read anew, the rest stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bench.catalog.kept import with_kept

ROOT = Path(__file__).parents[2]
DATA = ROOT / "gpuplan/catalog/data"
TABLE = """kind: rates
id: nebius
provider: nebius
rates:
  - instance: gpu-h100-sxm_1gpu-16vcpu-200gb
    on_demand: {{eu-north1: $2.95/hour, eu-west1: $2.95/hour}}
    spot: {{eu-north1: $1.25/hour}}
    source: skypilot
notes:
  - "Made anew."
sources:
  skypilot:
    title: "SkyPilot catalogue, nebius"
    repository: skypilot-org/skypilot-catalog
    commit: 0082b0435f3912ae4c566856b272455cc78f4f61
    path: catalogs/v8/nebius/vms.csv
    {when}
"""


def read(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def price(document: Any, region: str) -> tuple[str, str]:
    name = "gpu-h100-sxm_1gpu-16vcpu-200gb"
    rows = [r for r in document["rates"] if r["instance"] == name]
    (row,) = [r for r in rows if region in r.get("on_demand", {})]
    return row["on_demand"][region], row["source"]


def test_the_mended_price_stays_beside_a_table_without_a_date() -> None:
    table = TABLE.format(when='read: "2026-11-21"')
    found = read(with_kept(DATA / "rates/nebius.yaml", table))
    assert price(found, "eu-north1") == ("$3.85/hour", "silybench")
    assert price(found, "eu-west1") == ("$2.95/hour", "skypilot")
    assert {"skypilot", "silybench"} == set(found["sources"])
    assert "Made anew." in found["notes"]


def test_a_later_table_replaces_it() -> None:
    table = TABLE.format(when='date: "2026-12-01"')
    found = read(with_kept(DATA / "rates/nebius.yaml", table))
    assert price(found, "eu-north1") == ("$2.95/hour", "skypilot")


def test_nothing_changes_where_the_tables_are_the_same() -> None:
    """All files that are there, as if the tables had made them."""
    for path in sorted((DATA / "rates").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        assert read(with_kept(path, text)) == read(text)


def test_who_labels_nodes_stays() -> None:
    path = DATA / "instances/azure.yaml"
    text = path.read_text(encoding="utf-8")
    made = text.replace("labels_nodes: labels\n", "")
    made = made[: made.index("  labels:\n")]
    found = read(with_kept(path, made))
    assert found["labels_nodes"] == "labels"
    assert found == read(text)


def test_a_new_file_is_as_it_was_made(tmp_path: Path) -> None:
    assert with_kept(tmp_path / "new.yaml", "kind: rates\n") == "kind: rates\n"
