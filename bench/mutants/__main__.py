"""How many mutants of a package its unit tests let live.

    python -m bench.mutants [PACKAGE …] [--count N | --all] [--seed N] [--jobs N]
                            [--without GLOB …] [--known] [--again] [--most SECONDS]

A mutant is the program with one small mistake; one that no test notices shows what no test asserts.
One that survives and that bench/mutants/same.toml shows to be the same program is counted apart.
Of each package, `--count` places are drawn with `--seed`. --without leaves out files. --known takes
from out/mutants/ which test executes which line, as the last run found it; --again also tries only
the survivors of that run, on what the code is now, and counts them with the others of its sample.
--most bounds the seconds, as they were with coverage, of the tests that a mutant meets, the quick
ones first, beside the telling ones: more are counted alive then, until --again tries these without
a bound.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path

from bench.mutants.same import change, judged, ledger
from bench.mutants.sites import Mutant, mutated, sample
from bench.mutants.trial import Known, Outcome, attempt, copy, watch
from bench.mutants.users import Users
from bench.mutants.warm import Warm

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out/mutants"


@dataclass(frozen=True)
class Package:
    """`large` tests see only what the others let live; `telling` files of tests notice more than
    others that take as long, and --most leaves them in. `stacks`: its tests read stacks as what
    people have written; none holds them as golden."""

    folders: tuple[str, ...]
    tests: tuple[str, ...]
    large: tuple[str, ...] = ()
    telling: tuple[str, ...] = ()
    stacks: bool = False


def _tests(folder: str, *large: str) -> tuple[str, ...]:
    """A room's tests but for the large ones."""
    files = sorted((ROOT / folder).glob("test_*.py"))
    return tuple(str(file.relative_to(ROOT)) for file in files if file.name not in large)


PACKAGES = {
    "sizing": Package(
        ("gpuplan/sizing",),
        (
            "tests/sizing",
            "tests/accuracy/test_calibration.py",
            "tests/accuracy/test_corrections.py",
        ),
        (
            *_tests("tests/accuracy", "test_calibration.py", "test_corrections.py"),
            "tests/backends/test_clouds_matrix.py",  # spare capacity
            "tests/cli/test_fields_matter.py",
            "tests/cli/test_objectives.py",
            "tests/cli/test_overrides.py",
            "tests/cli/test_pipeline.py",
            "tests/cli/test_remedies.py",
            "tests/placement/test_odd_machines.py",  # the cores that a host keeps
            "tests/placement/test_unlike.py",
            "tests/placement/test_window.py",
        ),
        ("tests/sizing/test_sized.py",),
    ),
    "placement": Package(
        ("gpuplan/placement", "gpuplan/sharing", "gpuplan/plan/window.py"),
        (
            *_tests("tests/placement", "test_orders.py"),
            "tests/inventory/test_inventory.py",
            "tests/catalog/test_mig_layouts.py",
            "tests/cli/test_shapes.py",
            "tests/cli/test_sharing.py",
            "tests/money/test_recurrence.py",
        ),
        (
            "tests/backends/test_libvirt.py",
            "tests/backends/test_libvirt_devices.py",
            "tests/fleet/test_fleet_modes.py",  # what sharing allows
            "tests/placement/test_orders.py",  # hundreds of manifests
        ),
    ),
    "packing": Package(
        ("gpuplan/fleet",),
        _tests("tests/fleet", "test_packing.py", "test_packing_mixes.py"),
        ("tests/fleet/test_packing.py", "tests/fleet/test_packing_mixes.py"),  # hundreds of items
        ("tests/fleet/test_packed.py",),
    ),
    "policy": Package(
        ("gpuplan/policy",), ("tests/policy", "tests/inventory/test_allocations.py"), stacks=True
    ),
}
TOLD = 10  # mutants after which it is told how many were noticed
HEAD = (
    f"{'':<26}{'mutants':>9}{'killed':>8}{'timed out':>11}{'survived':>10}{'':>8}"
    f"{'same':>6}{'counted too':>13}"
)


class Worker:
    """A process with a copy of the repository."""

    folder: Path
    suites: list[Suite]

    @classmethod
    def start(cls, package: Package, known: Known, large: Known, folder: str) -> None:
        cls.folder = Path(tempfile.mkdtemp(dir=folder))
        copy(ROOT, cls.folder, stacks=package.stacks)
        files = _texts(_files(package))
        cls.suites = [
            Suite(
                tests, own, Users(files, _texts(own.files(ROOT)), own), Warm(cls.folder, tests, own)
            )
            for tests, own in ((package.tests, known), (package.large, large))
            if tests
        ]

    @classmethod
    def attempt(cls, mutant: Mutant) -> tuple[Mutant, Outcome]:
        code = mutated((ROOT / mutant.path).read_text(encoding="utf-8"), mutant)
        lines = (suite.known.covering(mutant.path, mutant.line) for suite in cls.suites)
        made = not any(lines)  # by what was imported before any test
        outcomes = (s.attempt(cls.folder, mutant, code, at_import=made) for s in cls.suites)
        return mutant, next((o for o in outcomes if o != "survived"), "survived")


@dataclass(frozen=True)
class Suite:
    """Tests of a package, and the process that has collected them."""

    tests: tuple[str, ...]
    known: Known
    users: Users
    warm: Warm

    def attempt(self, folder: Path, mutant: Mutant, code: str, *, at_import: bool) -> Outcome:
        wanted = self.users.tests(mutant.path, mutant.line, at_import=at_import)
        if not wanted:
            return "survived"
        quick = None if at_import else self.warm.attempt(mutant.path, code, wanted)
        return quick or attempt(folder, self.tests, self.known, wanted, path=mutant.path, code=code)


def main() -> None:
    options = _options()
    counts = {name: _measure(name, PACKAGES[name], options) for name in options.packages}
    print(f"\n{HEAD}")
    for name, outcomes in counts.items():
        for label, text in ((name, False), ("  in texts of formulas", True)):
            counted = Counter(outcome for mutant, outcome in outcomes if not text or mutant.text)
            if total := counted.total():
                alive, same = counted["survived"], counted["same"]
                print(
                    f"{label:<26}{total:>9}{counted['killed']:>8}{counted['timed out']:>11}"
                    f"{alive:>10}{alive / max(1, total - same):>8.1%}"
                    f"{same:>6}{(alive + same) / total:>13.1%}"
                )


def _measure(
    name: str, package: Package, options: argparse.Namespace
) -> list[tuple[Mutant, Outcome]]:
    files = _files(package)
    if not files or not all((ROOT / test).exists() for test in package.tests):
        raise SystemExit(f"{name}: no such folders: {', '.join(package.folders + package.tests)}")
    OUT.mkdir(parents=True, exist_ok=True)
    listed, last = OUT / f"{name}.outcomes.json", dict[Mutant, Outcome]()
    if options.again:
        rows = json.loads(listed.read_text(encoding="utf-8"))
        last = {Mutant(**row): outcome for row, outcome in rows}
        wanted = [mutant for mutant, outcome in last.items() if outcome == "survived"]
    else:
        names = [f for f in files if not any(fnmatch(str(f), f"*{g}") for g in options.without)]
        wanted = sample(names, ROOT, None if options.all else options.count, options.seed)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        known, large = (
            _known(saved, package, tests, files, Path(folder), again=options.again or options.known)
            for saved, tests in ((name, package.tests), (f"{name}.large", package.large))
        )
        known.most_seconds = large.most_seconds = options.most
        known.telling = large.telling = package.telling
        tried = _attempts(wanted, package, (known, large), folder, options.jobs)
    outcomes = [*(last | dict(tried)).items()]
    rows = [(asdict(mutant), outcome) for mutant, outcome in outcomes]
    listed.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return outcomes


def _texts(files: Iterable[Path]) -> dict[str, str]:
    return {str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for f in files}


def _files(package: Package) -> list[Path]:
    folders = [ROOT / folder for folder in package.folders]
    return [f for path in folders for f in ([path] if path.is_file() else path.rglob("*.py"))]


def _known(
    name: str,
    package: Package,
    tests: tuple[str, ...],
    files: list[Path],
    folder: Path,
    *,
    again: bool,
) -> Known:
    saved = OUT / f"{name}.tests.json"
    if not tests:
        return Known()
    if again and saved.exists():
        return Known.load(saved)
    original = folder / name
    copy(ROOT, original, stacks=package.stacks)
    paths = [str(original / file.relative_to(ROOT)) for file in files]
    known = watch(original, tests, paths, saved)
    for test in known.failing:
        print(f"left out, fails without a mutant: {test}")
    return known


def _attempts(
    wanted: list[Mutant], package: Package, known: tuple[Known, Known], folder: str, jobs: int
) -> list[tuple[Mutant, Outcome]]:
    outcomes = []
    entries = ledger()
    fork = multiprocessing.get_context("fork")
    with fork.Pool(jobs, Worker.start, (package, *known, folder)) as pool:
        started = time.monotonic()
        for mutant, tried in pool.imap(Worker.attempt, wanted):
            code = (ROOT / mutant.path).read_text(encoding="utf-8")
            same = judged(mutant, code, entries)
            outcome: Outcome = "same" if same and tried == "survived" else tried
            outcomes.append((mutant, outcome))
            if same or outcome != "killed":
                wrong = same and outcome != "same"
                _tell(mutant, code, outcome, f"{len(outcomes)} of {len(wanted)}", wrong=wrong)
            if len(outcomes) % TOLD == 0 or len(outcomes) == len(wanted):
                counts = ", ".join(f"{n} {o}" for o, n in Counter(o for _, o in outcomes).items())
                seconds = time.monotonic() - started
                print(
                    f"{len(outcomes)} of {len(wanted)} in {seconds:.0f} s: {counts}",
                    file=sys.stderr,
                )
    return outcomes


def _tell(mutant: Mutant, code: str, outcome: Outcome, nth: str, *, wrong: bool) -> None:
    _, before, after = change(code, mutant)
    print(f"{outcome}, {nth}: {mutant.path}:{mutant.line}")
    if wrong:
        print("  though it was judged to be the same program")
    for sign, text in (("-", before), ("+", after)):
        print("\n".join(f"  {sign}{row}" for row in text.split("\n")), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", choices=[*PACKAGES, []], default=[])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--most", type=float, default=math.inf)
    options = parser.parse_args()
    options.packages = options.packages or [*PACKAGES]
    return options


if __name__ == "__main__":
    main()
