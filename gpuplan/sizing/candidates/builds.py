"""Whose GPUs a workload's program runs on: its own image, or one that its engine has for others."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.catalog.model import BuildPin, Citation, Gpu
from gpuplan.plan.model import Engine, Shortfall
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import refused
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.measured import gate_of
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.vendors import FIRST, Vendor, vendor_of


def barred(demand: Demand, offer: GpuOffer, site: Site) -> Candidate | None:
    """The candidate that is refused where nothing of the workload runs on the offer's GPUs."""
    vendors = {o.gpu.vendor for o in site.gpus}
    if offer.gpu.identifier in demand.passed_over:
        return refused(
            demand, whole(offer), 1, gate_of("host with what it needs", "absent"), passed=0
        )
    gate = _gate(demand, offer.gpu, alone=len(vendors) == 1)
    return refused(demand, whole(offer), 1, gate, passed=0) if gate else None


def engine_on(demand: Demand, gpu: Gpu) -> Engine:
    """The program with the image for that GPU."""
    build = _build(demand, gpu)
    if build is None:
        return demand.engine
    return replace(
        demand.engine,
        image=build.image,
        digest=build.digest,
        source=build.source,
        environment=build.environment,
    )


def _gate(demand: Demand, gpu: Gpu, *, alone: bool) -> tuple[Shortfall, ...]:
    """An image that somebody names is for the GPUs that the platform has, if all are of one
    vendor: nothing says whose it is for."""
    if gpu.vendor == FIRST:
        return ()
    maker = vendor_of(gpu.vendor)
    if maker.kinds is not None and demand.kind not in maker.kinds:
        return gate_of(f"{demand.kind} is planned on {maker.title} GPUs", "absent")
    if not isinstance(demand.engine.source, Citation):
        said = f"source says that {demand.engine.image} is for {maker.title}"
        return () if alone else gate_of(said, "absent")
    return () if _build(demand, gpu) else gate_of(_image(demand, gpu, maker), "absent")


def _image(demand: Demand, gpu: Gpu, maker: Vendor) -> str:
    engine = demand.engine
    return (
        f"image of {engine.name} {engine.version} is known for {maker.title}'s {gpu.architecture}"
    )


def _build(demand: Demand, gpu: Gpu) -> BuildPin | None:
    """The engine's image for the GPU, which does the workload's task."""
    return next(
        (
            b
            for b in demand.builds
            if b.vendor == gpu.vendor
            and gpu.architecture in b.architectures
            and demand.task in b.tasks
        ),
        None,
    )
