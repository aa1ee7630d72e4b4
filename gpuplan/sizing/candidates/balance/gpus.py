"""Memory and time of the GPUs, and what brings them their work."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import ResourceUse
from gpuplan.sizing.ask.demand import SERVICES, TrainingDemand, VisionRunDemand
from gpuplan.sizing.candidates.balance import remedies
from gpuplan.sizing.candidates.balance.gathered import STORAGE, Gathered
from gpuplan.sizing.evidence.formula import Formula, Quantity

_ASKED = Formula(
    "sized_rate * images_per_second / requests_per_second", "1/s", "images that are asked for"
)
_ALL = Formula("images_of_one * replicas", "1/s", "of all replicas")


def gpus(of: Gathered) -> Iterator[ResourceUse]:
    """Memory of a GPU, its time, and where the manifest has one the time of the run."""
    used, usable = of.known("used_bytes"), of.known("usable_bytes")
    if used and usable:
        gpu = of.candidate.device.gpu
        remedy = remedies.memory(of.demand, gpu, of.training, of.metrics)
        yield of.use("gpu_memory", "each GPU, with the margin", used, usable, remedy)
    if of.known("gpu_images_per_second"):
        yield from _images(of)
    elif isinstance(of.demand, TrainingDemand):
        busy, step = of.known("needs.gpu_seconds"), of.known("modelled_step_seconds")
        yield of.use("gpu_time", "a step", busy, step, remedies.FASTER)
    elif asked := of.known("sized_rate"):
        rate = next((m.name for m in of.metrics if m.name.endswith("s_per_second")), "")
        of_all = f"all replicas, bound by {of.bound_by}"
        yield of.use("gpu_time", of_all, asked, of.known(rate), remedies.replica(of.candidate))
    if isinstance(of.demand, TrainingDemand | VisionRunDemand) and (first := of.demand.limit.first):
        yield of.use("time_to_finish", "the run", of.known("time_to_finish"), first, remedies.MORE)


def _images(of: Gathered) -> Iterator[ResourceUse]:
    """Images that GPUs, cores and storage bring, against those that are asked for, of a run those
    that the slowest brings. Those of a service come with its requests."""
    names = ("sized_rate", "images_per_second", "requests_per_second")
    parts = {name: amount for name in names if (amount := of.known(name))}
    need, run = of.known("images_per_second"), isinstance(of.demand, VisionRunDemand)
    if len(parts) == len(names):
        need = of.ledger.derive("needs.asked_images_per_second", _ASKED, **parts)
    gpus, cores, stored = (
        _of_all(of, name, run=run)
        for name in (
            "gpu_images_per_second",
            "decoded_images_per_second",
            "stored_images_per_second",
        )
    )
    more = remedies.FASTER if run else remedies.replica(of.candidate)
    yield of.use("gpu_time", "all GPUs", need, gpus, more)
    yield of.use("decoding", "all their cores", need, cores, remedies.DECODED)
    if isinstance(of.demand, SERVICES):
        return
    remedy = remedies.storage(of.site.storage_bytes_per_s, need, stored)
    yield of.use("storage", "all nodes", need, stored, remedy, unknown=STORAGE)


def _of_all(of: Gathered, name: str, *, run: bool) -> Quantity | None:
    """A run's images are of all its GPUs, those of a service of one replica."""
    one = of.known(name)
    if one is None or run:
        return one
    count = Quantity(float(of.candidate.replicas), "1", "choice: replicas")
    return of.ledger.derive(f"supply.{name}", _ALL, images_of_one=one, replicas=count)
