"""How long predictions take: one alone, and a search over many configurations at once.

    python -m bench.times.search [ROUNDS]

One prediction is a replica made ready and its times at a number of sequences; a configuration of
the search is a GPU type, a tensor-parallel size, a number of sequences and lengths. Goals: < 1 ms a
prediction, 10,000 configurations in < 2 s, their replicas made ready included. Times are the
processor's, since others may use the machine.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gpuplan.catalog.load import load_catalog
from gpuplan.manifest.load import load_manifests
from gpuplan.resolve.run import resolve
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.kinds.serving.limit import largest
from gpuplan.sizing.kinds.serving.search import service
from gpuplan.sizing.physics.serving.bulk import predict
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.service import Division

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "examples" / "assistant-70b.yaml"
SIZES = (1, 2, 4, 8)
CONFIGURATIONS = 10_000
LENGTHS = 2  # of prompts; each is measured elsewhere, so that each is corrected anew


def asked() -> LanguageDemand:
    catalog, reading = load_catalog(), load_manifests([MANIFEST])
    resolved = resolve(reading.manifests[0], reading.sources, catalog)
    demand = resolved.demands[0]
    assert isinstance(demand, LanguageDemand)
    return demand


def offers(precision: str) -> list[GpuOffer]:
    catalog = load_catalog()
    known = [g for n in catalog.gpu_ids if (g := catalog.gpu(n)) and g.vendor == "nvidia"]
    return [GpuOffer(gpu=g, gpus_per_node=8) for g in known if not unsupported(g, precision)]


def made(demand: LanguageDemand, offer: GpuOffer, gpus: int) -> Replica:
    return Replica(service(demand, whole(offer), Division(tensor_parallel_size=gpus)))


def replicas(demand: LanguageDemand) -> list[Replica]:
    return [made(demand, o, n) for o in offers(demand.precision) for n in SIZES]


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times) * 1000


def search(demand: LanguageDemand) -> tuple[int, int]:
    """Configurations, and how many of them fit."""
    rows = replicas(demand)
    columns = -(-CONFIGURATIONS // len(rows))
    lengths = np.resize(np.geomspace(200, 8000, LENGTHS), columns)
    points = {
        "sequences": np.geomspace(1, 512, columns)[::-1],
        "input_mean": lengths,
        "input_p95": 2 * lengths,
        "output_mean": np.full(columns, 300.0),
    }
    values = predict(rows, points)
    return values["fits"].size, int(values["fits"].sum())


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    demand = asked()
    offer = offers(demand.precision)[0]
    one = made(demand, offer, 2)
    count, fitting = search(demand)
    alone = milliseconds(lambda: made(demand, offer, 2).times(32.0), 20 * rounds)
    again = milliseconds(lambda: one.times(32.0), 20 * rounds)
    batch = milliseconds(lambda: largest(one), 5 * rounds)
    many = milliseconds(lambda: search(demand), rounds)
    print(f"medians of {rounds} rounds or more")
    print(f"one prediction                     {alone:9.3f} ms   goal < 1")
    print(f"  its times at other sequences     {again:9.3f} ms")
    print(f"  its largest batch under the SLO  {batch:9.3f} ms")
    print(f"{count:,} configurations, {fitting:,} fit {many:9.1f} ms   goal < 2,000")


if __name__ == "__main__":
    main()
