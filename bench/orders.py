"""Random manifests: what has to hold between the costs of two that differ in one thing.

    python -m bench.orders [--manifests N] [--seed S] [--only NUMBER]

More GPU types, a looser deadline, less load, an easier objective: none of them may cost more, and
none may refuse what was planned. `compile` and `pack --buy` are asked the same. The cost is the one
that a plan prints: a month of what stays, and each run as a whole. A manifest is its number: the
same seed and number give the same one. `cost_of`, `manifest` and `PROPERTIES` are also asked by
tests/placement/test_orders.py.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.shapes import Wanted, shapes
from gpuplan.errors import Rejected
from gpuplan.fleet.build import Asked, build
from gpuplan.fleet.requests.reading import read_wanted
from gpuplan.fleet.solver import pack_ways
from gpuplan.manifest.load import Loaded, load_text
from gpuplan.pipeline import plan_manifest
from gpuplan.plan.model import Plan
from gpuplan.render import yaml

GPUS = (
    "l4", "a10", "l40s", "a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-80gb", "h100-sxm-80gb",
    "h200-sxm-141gb",
)  # fmt: skip
MODELS = (
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-30B-A3B",
    "meta-llama/Llama-3.3-70B-Instruct",
)
# Types that a site may have no nodes of, or none with a price.
RARE = ("a40", "a100-pcie-40gb", "h100-pcie-80gb", "gh200-96gb", "b200-sxm-180gb")
FLEET = "examples/inventories/fleet.yaml"
CENT = 0.01  # of what is compared
Tree = dict[str, Any]
Change = Callable[[Tree, random.Random], Tree | None]


def manifest(number: int, seed: int = 1) -> Tree:
    """One to four workloads on nodes that are bought, described, or those of an inventory."""
    chance = random.Random(seed * 1_000_003 + number)
    kinds = (_service, _service, _service, _batch, _tuning, _notebooks)
    works = [chance.choice(kinds)(chance) for _ in range(chance.choice((1, 1, 1, 2, 3, 4)))]
    for place, work in enumerate(works):
        isolation = chance.choice(("shared", "shared", "shared", "gpu", "node"))
        team = chance.choice(("red", "blue"))
        work |= {"name": f"w{place}", "tenancy": {"team": team, "isolation": isolation}}
    platform: Tree = {"target": "kubernetes"}
    platform["gpus"] = sorted(chance.sample(GPUS, chance.randint(1, 3)))
    if chance.random() < 0.15:
        platform = {"target": "kubernetes", "inventory": FLEET}
    elif chance.random() < 0.2:
        gpus = chance.choice((1, 4, 8))
        node = {"gpus": gpus, "cpu_cores": 16 * gpus, "memory": f"{128 * gpus} GiB"}
        platform["node"] = node
    if chance.random() < 0.5:
        platform["fabric"] = {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s"}
    return {
        "apiVersion": "gpuplan.dev/v1",
        "name": "orders",
        "platform": platform,
        "workloads": works,
    }


def _service(chance: random.Random) -> Tree:
    mean = chance.choice((0.2, 1, 4, 10, 30))
    return {
        "task": "inference",
        "model": chance.choice(MODELS),
        "precision": chance.choice(("bf16", "bf16", "fp8")),
        "load": {
            "requests_per_second": {"mean": mean, "peak": mean * chance.choice((1, 2))},
            "input_tokens": chance.choice((200, 1200, 6000)),
            "output_tokens": chance.choice((50, 300)),
        },
        "slo": {
            "time_to_first_token": f"{chance.choice((500, 2000, 8000))} ms",
            "time_per_output_token": f"{chance.choice((30, 60, 150))} ms",
        },
    }


def _batch(chance: random.Random) -> Tree:
    return {
        "task": "batch",
        "model": chance.choice(MODELS),
        "load": {
            "requests": chance.choice((100_000, 1_000_000, 10_000_000)),
            "input_tokens": chance.choice((200, 1200)),
            "output_tokens": chance.choice((20, 200)),
        },
        "slo": {"finish_within": f"{chance.choice((6, 24, 96))} h"},
    }


def _tuning(chance: random.Random) -> Tree:
    return {
        "task": "finetuning",
        "model": chance.choice(MODELS[:3]),
        "precision": "bf16",
        "training": {
            "sequence_length": chance.choice((1024, 4096)),
            "global_batch": chance.choice((16, 48, 64)),
            "tokens": chance.choice((1e8, 1e9, 5e9)),
        },
        "slo": {"finish_within": f"{chance.choice((12, 24, 168))} h"},
    }


def _notebooks(chance: random.Random) -> Tree:
    memory = f"{chance.choice((5, 9, 20, 40))} GiB"
    return {"task": "notebook", "notebook": {"users": chance.randint(1, 40), "gpu_memory": memory}}


def _of(tree: Tree, chance: random.Random, field: str) -> Tree | None:
    """One of the workloads that have the field."""
    having = [work for work in tree["workloads"] if field in work]
    return chance.choice(having) if having else None


def more_gpus(tree: Tree, chance: random.Random) -> Tree | None:
    if "gpus" not in tree["platform"]:
        return None
    others = [gpu for gpu in (*GPUS, *RARE) if gpu not in tree["platform"]["gpus"]]
    tree["platform"]["gpus"] = sorted([*tree["platform"]["gpus"], chance.choice(others)])
    return tree


def looser_deadline(tree: Tree, chance: random.Random) -> Tree | None:
    having = [w for w in tree["workloads"] if "finish_within" in w.get("slo", {})]
    if not having:
        return None
    work = chance.choice(having)
    factor = chance.choice((1.5, 4, 60, None))
    if factor is None:
        del work["slo"]
    else:
        hours = int(work["slo"]["finish_within"].split()[0])
        work["slo"]["finish_within"] = f"{hours * factor:g} h"
    return tree


def easier_objective(tree: Tree, chance: random.Random) -> Tree | None:
    having = [w for w in tree["workloads"] if "time_to_first_token" in w.get("slo", {})]
    if not having:
        return None
    slo, factor = chance.choice(having)["slo"], chance.choice((1.3, 3))
    for name, text in slo.items():
        slo[name] = f"{int(text.split()[0]) * factor:g} ms"
    return tree


def less_load(tree: Tree, chance: random.Random) -> Tree | None:
    work, factor = chance.choice(tree["workloads"]), chance.choice((1.15, 2, 6))
    if work["task"] == "inference":
        rate = work["load"]["requests_per_second"]
        work["load"]["requests_per_second"] = {k: v / factor for k, v in rate.items()}
    elif work["task"] == "batch":
        work["load"]["requests"] = int(work["load"]["requests"] / factor)
    elif work["task"] == "notebook":
        work["notebook"]["users"] = max(1, int(work["notebook"]["users"] / factor))
    else:
        work["training"]["tokens"] /= factor
    return tree


def one_less(tree: Tree, chance: random.Random) -> Tree | None:
    works = tree["workloads"]
    if len(works) < 2:
        return None
    works.remove(chance.choice(works))
    return tree


# Each changes a manifest into one that is easier: it may not cost more, nor be refused.
EASIER: dict[str, Change] = {
    "more GPU types never cost more": more_gpus,
    "a looser deadline never costs more": looser_deadline,
    "an easier objective never costs more": easier_objective,
    "less load never costs more": less_load,
    "a workload less never costs more": one_less,
}
REFUSED = ", nor is it refused"
BUDGET = "a budget is kept where some choice keeps it"
SAME_COST = "compile costs what pack costs of the same choice"
PACK_MORE = "more to buy never makes a pack dearer"
PROPERTIES = (*EASIER, *(name + REFUSED for name in EASIER), BUDGET, SAME_COST, PACK_MORE)


@cache
def _catalog() -> Any:
    return load_catalog()


def planned(tree: Tree) -> Plan | None:
    """None where the manifest is refused."""
    reading = load_text(yaml.dumps(tree), "manifest.yaml")
    assert reading.manifests, [d.message for d in reading.problems]
    loaded = Loaded(reading.manifests[0].manifest, "manifest.yaml", Path())
    try:
        return plan_manifest(loaded, reading.sources, _catalog()).plan
    except Rejected:
        return None


def cost_of(plan: Plan) -> float | None:
    """US dollars: a month of what stays and each run as a whole; None where a part has no price."""
    staying = plan.cost.staying_usd_per_month
    if staying is None or plan.cost.unpriced:
        return None
    return float(staying + (plan.cost.usd_of_runs or 0))


def packed(tree: Tree, buy: tuple[str, ...]) -> tuple[float, bool] | None:
    """US dollars an hour of the hosts that `pack --buy` takes, and whether `compile` may choose so
    too: each workload on hosts of one type, in one way, those with hosts of their own beside no
    others of their team, and all that is bought in one place. None where a part is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "manifest.yaml"
        path.write_text(yaml.dumps(tree), encoding="utf-8")
        named = tree["platform"].get("inventory")
        if named:
            path.write_text(yaml.dumps(tree).replace(named, str(Path(named).resolve())), "utf-8")
        asked = Asked(buy=buy, inventory=Path(named) if named else None)
        problem = build(read_wanted([path]), asked, _catalog()).problem
    if problem is None:
        return None
    settled, result = pack_ways(problem)
    alone = {r.name: r.isolation == "node" for r in settled.requests}
    ways: dict[object, set[object]] = {}
    for item in result.placed:
        name = "/".join(item.request.split("/")[:2])
        ways.setdefault(name, set()).add((item.host_type, item.part, len(item.gpus)))
        ways.setdefault((item.host_type, item.host), set()).add(alone[item.request])
    one = all(len(each) == 1 for each in ways.values())
    sold = (s for gpu in buy for s in shapes(_catalog(), gpu, Wanted()))
    one &= len({s.place for s in sold if s.name in {i.host_type for i in result.placed}}) <= 1
    return None if result.refused else (result.cost / 1_000_000, one)


def dearer(cost: float, than: float) -> bool:
    return cost > than * (1 + 1e-6) + CENT


def tried(number: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """What was asked of a manifest, and what was wrong with the answer (empty: nothing)."""
    tree = manifest(number, seed)
    plan = planned(tree)
    if plan is None or (cost := cost_of(plan)) is None:
        return
    for place, (name, change) in enumerate(EASIER.items()):
        chance = random.Random(seed * 7_919 + number * 31 + place)
        easier = change(copy.deepcopy(tree), chance)
        answer = planned(easier) if easier else None
        if easier is None:
            continue
        yield name + REFUSED, "" if answer else "refused"
        if answer and (changed := cost_of(answer)) is not None:
            wrong = f"${cost:,.2f} → ${changed:,.2f}" if dearer(changed, cost) else ""
            yield name, wrong
    yield from _budget(tree, plan)
    yield from _packs(tree, plan)


def _budget(tree: Tree, plan: Plan) -> Iterator[tuple[str, str]]:
    """The cheapest month that the same manifest has with one GPU type alone is a budget."""
    months = [float(plan.cost.usd_per_month or 0)]
    for gpu in tree["platform"].get("gpus", ()):
        alone = copy.deepcopy(tree)
        alone["platform"]["gpus"] = [gpu]
        one = planned(alone)
        if one and one.cost.usd_per_month is not None and not one.cost.unpriced:
            months.append(float(one.cost.usd_per_month))
    least = min(months) * 1.0001
    if least <= 0:
        return
    tree = copy.deepcopy(tree)
    tree["platform"]["budget"] = f"${least:.4f}/month"
    answer = planned(tree)
    over = answer is None or answer.cost.over_budget
    yield BUDGET, f"${months[0]:,.2f} of ${least:,.2f}" if over else ""


def _packs(tree: Tree, plan: Plan) -> Iterator[tuple[str, str]]:
    """Of services and notebooks, of which an hour is all that counts."""
    ends = any(w.run_hours is not None for w in plan.workloads)
    if ends or "node" in tree["platform"]:
        return
    gpus = tuple(tree["platform"].get("gpus", ()))
    costs = {each: packed(tree, each) for each in (gpus, *((g,) for g in gpus))}
    every, compiled = costs[gpus], float(plan.cost.usd_per_hour or 0)
    if every is not None:
        cost, one = every
        unlike = dearer(cost, compiled) or (one and dearer(compiled, cost))
        yield SAME_COST, f"compile ${compiled:.2f}, pack ${cost:.2f}" if unlike else ""
    alone = [answer[0] for each, answer in costs.items() if len(each) == 1 and answer]
    if alone and len(gpus) > 1:
        wrong = every is None or dearer(every[0], min(alone))
        yield PACK_MORE, f"${min(alone):.2f} → {every and f'${every[0]:.2f}'}" if wrong else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifests", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one manifest, shown")
    options = parser.parse_args()
    numbers = range(options.manifests) if options.only is None else [options.only]
    if options.only is not None:
        sys.stdout.write(yaml.dumps(manifest(options.only, options.seed)))
    asked: Counter[str] = Counter()
    broken: dict[str, list[str]] = {}
    started = time.process_time()
    for number in numbers:
        for name, wrong in tried(number, options.seed):
            asked[name] += 1
            if wrong:
                broken.setdefault(name, []).append(f"{number}: {wrong}")
    print(f"{len(numbers)} manifests, seed {options.seed}, {time.process_time() - started:.0f} s")
    for name in PROPERTIES:
        faults = broken.get(name, [])
        print(f"{name:<58}{asked[name]:5} asked{len(faults):5} did not hold")
        for fault in faults[:12]:
            print(f"    {fault}")
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()
