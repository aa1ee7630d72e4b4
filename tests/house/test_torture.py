"""The short form of `make torture`: every reader on its kept corpus and on changes of it, some
random manifests, and a few writes. The same inputs every time."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from bench.torture import audit, document, properties
from bench.torture.mutate import mutated
from bench.torture.readers import READERS, ROOT, kept, seeds

SEED = 20
INPUTS = 40
# A process of its own: limits on memory and seconds are a process's.
CODE = """
import json, random, sys
from bench.torture.mutate import mutated
from bench.torture.readers import seeds
from bench.torture.trial import Trials
name, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
trials, good, chance = Trials(name), seeds(name), random.Random(seed)
for text in good:
    trials.attempt(text)
accepted = trials.read
for _ in range(count):
    trials.attempt(mutated(chance.choice(good), good, chance))
print(json.dumps([trials.count, accepted, trials.failures]))
"""


@pytest.mark.parametrize("name", READERS)
def test_no_input_breaks_a_reader(name: str) -> None:
    words = [sys.executable, "-c", CODE, name, str(SEED), str(INPUTS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    count, accepted, failures = json.loads(done.stdout)
    assert failures == {}
    assert count == len(seeds(name)) + INPUTS
    assert accepted, "a reader that takes no good file is tried in vain"


def test_a_failure_is_found_and_named() -> None:
    broken = (
        "import gpuplan.cli.inventory as v\n"
        "def run(options):\n"
        "    if b'LOOP' in open('rack.yaml', 'rb').read():\n"
        "        while True: pass\n"
        "    if b'BIG' in open('rack.yaml', 'rb').read():\n"
        "        return len(bytearray(2**31)) and 0\n"
        "    return {}['x'] if b'BUG' in open('rack.yaml', 'rb').read() else 0\n"
        "v.run = run\n"
        "import bench.torture.trial as t\n"
        "t.MOST_SECONDS = 0.5\n"
        "trials = t.Trials('inventory')\n"
        "print([trials.attempt(x) for x in (b'fine', b'BUG', b'LOOP', b'BIG')])\n"
    )
    words = [sys.executable, "-c", broken]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    fine, bug, loop, big = eval(done.stdout)
    assert fine is None
    assert bug.startswith("KeyError at ")
    assert loop.startswith("more than ")
    assert big == "more than 1 GiB"


def test_the_same_numbers_give_the_same_inputs() -> None:
    good = seeds("manifest")
    draws = [[mutated(good[0], good, random.Random(n)) for n in range(50)] for _ in range(2)]
    assert draws[0] == draws[1]
    assert len({*draws[0]}) > 40


@pytest.mark.parametrize("number", range(4))
def test_random_manifests_compile_alike_and_into_files_that_parse(number: int) -> None:
    asked, broken = properties.tried(number, SEED)
    assert asked["manifests"] == 1
    never = (properties.SAME, properties.PARSED)
    assert [name for name in broken if name.startswith(never)] == []


def test_the_kept_corpus_is_small_and_of_readers() -> None:
    files = [p for p in (ROOT / "bench/torture/corpus").rglob("*") if p.is_file()]
    assert {p for name in READERS for p in kept(name)} == {*files}
    assert max(p.stat().st_size for p in files) <= 16 * 2**10
    assert sum(p.stat().st_size for p in files) <= 2**18


def test_the_page_says_what_the_results_say() -> None:
    results = json.loads(document.RESULTS.read_text(encoding="utf-8"))
    assert results["readers"].keys() == READERS.keys()
    page = document.page(results)
    for name, reader in results["readers"].items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
        assert f"{reader['strategies']['inputs']:,}" in row
    assert page == (ROOT / "docs/reliability.md").read_text(encoding="utf-8")


def test_an_audit_that_nobody_answered_is_none() -> None:
    fine = {"name": "numpy", "version": "2.4.6", "vulns": []}
    bad = {"name": "jinja2", "version": "3.0", "vulns": [{"id": "PYSEC-1"}]}
    skipped = {"name": "highspy", "skip_reason": "Dependency not found on PyPI"}
    assert audit.said("") is None
    assert audit.said(json.dumps({"dependencies": [skipped, skipped]})) is None
    assert audit.said(json.dumps({"dependencies": [fine]})) == ([], [])
    mixed = audit.said(json.dumps({"dependencies": [fine, bad, skipped]}))
    assert mixed == (["highspy"], ["jinja2 3.0: PYSEC-1"])
