"""The files of the catalogue: compiled canonically, refused with what is wrong, and added to as the
manual says."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog import compile as compiler
from gpuplan.catalog.load import COMPILED, Catalog
from gpuplan.catalog.model import Fact
from gpuplan.models.configs import from_config
from gpuplan.source import Origin
from gpuplan.units import GIB, MIB

DOCUMENT = Path(__file__).parents[2] / "docs/catalog.md"


def test_compiled_file_is_what_the_files_say() -> None:
    files = compiler.read()
    for part in compiler.PARTS:
        path = COMPILED.with_name(part)
        assert path.read_text(encoding="utf-8") == compiler.compile_files(files, part)


def test_check_fails_when_the_compiled_file_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiler, "COMPILED", tmp_path / "compiled.json")
    assert compiler.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert compiler.main([]) == 0
    assert (tmp_path / "compiled.json").read_bytes() == COMPILED.read_bytes()
    assert compiler.main(["--check"]) == 0
    assert compiler.main(["--other"]) == 2


# A small catalogue, made by the steps of the manual.
NAMED = re.compile(r"```yaml\n# gpuplan/catalog/data/(\S+)\n(.*?)```", re.DOTALL)
EXAMPLES = dict(NAMED.findall(DOCUMENT.read_text(encoding="utf-8")))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The manual's examples, and an engine for every other task."""
    folder = tmp_path / "data"
    for name, text in EXAMPLES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    example = EXAMPLES["engines/example.yaml"]
    every = "[inference, batch, training, finetuning, image, notebook, pooling, speech"
    every += ", image-embedding, vision, vision-training, video]"
    text = example.replace("id: example", "id: other").replace(
        "tasks: [inference, batch]", f"tasks: {every}\ndefault_for: {every}"
    )
    (folder / "engines/other.yaml").write_text(text, encoding="utf-8")
    return folder


def load(data: Path) -> Catalog:
    files = compiler.read(data)
    plans, hardware = (compiler.compile_files(files, f"{p}.json") for p in ("compiled", "hardware"))
    return Catalog(json.loads(plans), json.loads(hardware))


def change(data: Path, name: str, before: str, after: str) -> None:
    text = (data / name).read_text(encoding="utf-8")
    assert before in text
    (data / name).write_text(text.replace(before, after), encoding="utf-8")


def problems(data: Path) -> tuple[str, ...]:
    with pytest.raises(compiler.Unsound) as caught:
        compiler.read(data)
    return caught.value.problems


def test_the_steps_of_the_manual_make_a_catalogue(data: Path) -> None:
    catalog = load(data)
    found = catalog.gpu("example-48gb")
    assert found is not None
    assert found.memory_bytes == Fact(
        value=46068 * MIB,
        unit="B",
        source="catalog: gpus/example-48gb.yaml memory (nvidia-smi -q sample, 2026-02-01)",
    )
    assert catalog.match_gpus("NVIDIA Example") == (found.identifier,)
    assert found.peak_fp8 is not None
    assert found.nvlink_bytes_per_s is None
    price = catalog.price("example-48gb")
    assert price is not None
    assert (price.usd_per_hour, price.region) == (Decimal("1.5"), "eu-1")
    assert price.source == "catalog: prices/example.yaml gpu-8 (Example's price list, 2026-02-01)"
    assert (price.source.file, price.source.subject) == ("prices/example.yaml", "gpu-8")
    assert (price.source.origin.title, price.source.origin.published) == (
        "Example's price list",
        True,
    )
    engine = catalog.engine("example")
    assert engine is not None
    assert engine.image == "example/engine:v1.2.3"


def test_the_model_of_the_manual_is_counted() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    document = json.loads(text)
    found = from_config(document["config"], document["identifier"], None, "", Origin("x"))
    assert found.parameters == 1_235_814_400


def listing(gpu_count: int, price: str, vcpus: int, memory: str, source: str) -> str:
    return (
        f"  - {{gpu: example-48gb, gpus: {gpu_count}, price: {price}/hour, vcpus: {vcpus}, "
        f"memory: {memory}, source: {source}}}\n"
    )


@pytest.mark.parametrize(
    ("listings", "usd"),
    [
        # too few cores, too little memory, undated: each cheaper than the one that counts
        (
            [
                (1, "$1.00", 4, "64 GiB", "list"),
                (8, "$8.80", 128, "128 GiB", "list"),
                (1, "$0.90", 16, "64 GiB", "undated"),
                (2, "$4.00", 16, "64 GiB", "list"),
                (1, "$2.50", 64, "512 GiB", "list"),
            ],
            "2",
        ),
        # what is just enough, and what is just too little
        (
            [
                (1, "$1.00", 7, "64 GiB", "list"),
                (1, "$1.10", 16, "31 GiB", "list"),
                (1, "$1.20", 8, "32 GiB", "list"),
            ],
            "1.2",
        ),
        ([(1, "$1.00", 4, "8 GiB", "list"), (1, "$0.90", 16, "64 GiB", "undated")], "1"),
        ([(1, "$0.90", 4, "8 GiB", "undated"), (3, "$2.00", 48, "1 TiB", "undated")], "0.666667"),
    ],
)
def test_the_price_to_reckon_with(data: Path, listings: list[Any], usd: str) -> None:
    dates = {"list": 'date: "2026-02-01"', "undated": 'read: "2026-03-01"'}
    sources = "".join(
        f"  {key}: {{title: {key}, url: 'https://example.com', {day}}}\n"
        for key, day in dates.items()
        if any(row[4] == key for row in listings)
    )
    rows = "".join(listing(*row) for row in listings)
    (data / "prices/example.yaml").write_text(
        f"kind: prices\nid: example\nprovider: example\nlistings:\n{rows}sources:\n{sources}",
        encoding="utf-8",
    )
    price = load(data).price("example-48gb")
    assert price is not None
    assert price.usd_per_hour == Decimal(usd)


GPU = "gpus/example-48gb.yaml"


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        (GPU, "power: {value: 300 W, source: datasheet}", "", "power: Field required"),
        (
            GPU,
            "{value: 300 W, source: datasheet}",
            "{value: 300 W}",
            "power.source: Field required",
        ),
        (
            GPU,
            "value: 300 W, source: datasheet",
            "value: 300 W, source: talk",
            "no such source: talk",
        ),
        (
            GPU,
            "source: smi}",
            "source: datasheet}",
            "nothing names",
        ),
        (GPU, "864 GB/s", "864", "memory_bandwidth.value"),
        (GPU, "362 TFLOP/s", "724 TFLOP/s", "is it with sparsity?"),
        (GPU, 'compute_capability: "8.9"\n', "", "NVIDIA's GPUs have a compute_capability"),
        (GPU, "vendor: nvidia", "vendor: amd", "AMD's GPUs have no compute_capability"),
        (GPU, "form_factor: pcie", "form_factor: pcie\ncolour: green", "colour: Extra inputs"),
        (GPU, 'date: "2026-01-31"', "", "the day it was read"),
        (GPU, "id: example-48gb", "id: example", "this is gpu 'example'"),
        (GPU, "kind: gpu", "kind: cpu", "kind"),
        (GPU, "kind: gpu", "kind: [", "while parsing"),
        ("prices/example.yaml", "gpu: example-48gb", "gpu: example", "no such GPU 'example'"),
        ("prices/example.yaml", "$12.00/hour", "$700.00/hour", "is not an hourly price"),
        ("prices/example.yaml", "provider: example\n", "", "needs a provider"),
        ("engines/example.yaml", "engine:v1.2.3", "engine:latest", "image: String should match"),
        ("engines/example.yaml", "batch]", "batch]\ndefault_for: [image]", "not in tasks"),
    ],
)
def test_unsound_files_are_named_with_what_is_wrong(
    data: Path, name: str, before: str, after: str, words: str
) -> None:
    change(data, name, before, after)
    assert [p for p in problems(data) if name in p and words in p] != []


MIG = """mig:
  memory_slices: 4
  source: smi
  profiles:
    - name: 1g.12gb
      compute_slices: 1
      memory_slices: 1
      starts: [0, 1, 2, 3]
      maximum: 4
      memory: 11 GiB
"""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("[0, 1, 2, 3]", "[0, 1, 2, 3, 4]", "1g.12gb does not fit 4 memory slices"),
        ("maximum: 4", "maximum: 5", "1g.12gb does not fit 4 memory slices"),
        ("11 GiB", "12 GiB", "4 × 1g.12gb is more than the GPU's memory"),
    ],
)
def test_mig_profiles_fit_or_are_refused(data: Path, before: str, after: str, words: str) -> None:
    change(data, GPU, "sources:\n", f"{MIG}sources:\n")
    found = load(data).gpu("example-48gb")
    assert found is not None
    assert found.mig_profiles[0].memory_bytes == 11 * GIB
    change(data, GPU, before, after)
    assert any(words in p for p in problems(data))


def test_a_task_has_one_default_engine(data: Path) -> None:
    change(data, "engines/example.yaml", "batch]", "batch]\ndefault_for: [batch]")
    assert "engines: 2 defaults for task 'batch' instead of one" in problems(data)


def test_all_problems_are_reported_at_once(data: Path) -> None:
    change(data, GPU, "300 W", "300")
    change(data, "engines/example.yaml", "version: 1.2.3", "")
    found = problems(data)
    assert any(p.startswith("gpus/example-48gb.yaml: power") for p in found)
    assert any(p.startswith("engines/example.yaml: version") for p in found)


def test_the_digest_of_an_entry_is_of_its_facts(data: Path) -> None:
    before = load(data)
    assert before.notes("gpus", "example-48gb") == ()
    change(data, GPU, "sources:\n", "notes: [Nominal.]\nsources:\n")
    after = load(data)
    assert after.notes("gpus", "example-48gb") == ("Nominal.",)
    assert before.sha256("gpus", "example-48gb") == after.sha256("gpus", "example-48gb")
    change(data, GPU, "300 W", "301 W")
    assert before.sha256("gpus", "example-48gb") != load(data).sha256("gpus", "example-48gb")
