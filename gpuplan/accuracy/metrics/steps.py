"""Training points as steps: the planner's `Run` that a row describes."""

from __future__ import annotations

from functools import cache

from gpuplan.accuracy.data.gpus import NETWORKS
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.points.settings import Setting, setting
from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate, Fabric, record
from gpuplan.sizing.calibration.anchors import Anchors, Field
from gpuplan.sizing.calibration.trained import step_quantity
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import estimate
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.measured import NotMeasured, fitted
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.training.division import Method
from gpuplan.sizing.physics.training.prepared import Prepared, link, prepare
from gpuplan.sizing.physics.training.run import Run

NODE = 8  # GPUs of a machine, which NVLink or PCIe joins, where the catalogue states no domain


@record
class Step:
    """A row's run, and its step by the formulas alone."""

    model: Transformer
    setting: Setting
    run: Run
    values: dict[str, float]

    @property
    def quantity(self) -> str:
        return step_quantity(self.model)

    @property
    def seconds(self) -> float:
        return self.values["modelled_step_seconds"]

    @property
    def tokens(self) -> float:
        """Of a step, all GPUs."""
        return self.setting.batch * self.setting.length

    def planned(self, field: Field) -> Estimate:
        """Seconds of the step as a plan has them, corrected by `field`."""
        run, micro = self.run.anchored(Anchors({self.quantity: field})), self.setting.micro
        return estimate(run.at(micro)["step_seconds"], *run.step_interval(micro))


def step(case: Case) -> Step | str:
    """The step of a row, or why it cannot be expressed."""
    stated = setting(case)
    if isinstance(stated, str):
        return stated
    assert isinstance(case.model, Transformer)
    run = run_of(case.model, case.gpu, stated)
    return Step(model=case.model, setting=stated, run=run, values=run.modelled(stated.micro))


def run_of(model: Transformer, gpu: Gpu, of: Setting) -> Run:
    layers, heads = predicting(model, of.framework)
    numbers = {
        "sequence_length": float(of.length),
        "global_batch": of.batch,
        "steps": 1.0,
        "lost_share": 0.0,
        "prediction_layers": float(layers),
        "prediction_heads": float(heads),
    }
    prepared = _on_machines(
        Machines(
            model=model,
            gpu=gpu,
            framework=of.framework,
            recipe=of.recipe,
            method=of.method,
            release=of.release,
            gpus=of.division.gpus,
            power=of.power,
            eager=of.eager,
        )
    )
    if of.attended < 1:
        numbers["full_width"] = of.attended * prepared.scope["full_width"].value
    more = {name: Quantity(value, "1", "measurement") for name, value in numbers.items()}
    return Run(prepared.given(more), of.division)


@record
class Machines:
    """What rows of one model on the same machines share."""

    model: Transformer
    gpu: Gpu
    framework: str
    recipe: str
    method: Method
    release: float
    gpus: int
    power: float
    eager: bool


@cache
def _on_machines(of: Machines) -> Prepared:
    gpu, domain = of.gpu, of.gpu.nvlink_gpus(NODE)
    rate = fitted(gpu, "training", NETWORKS)
    if rate is None:
        raise NotMeasured(gpu, "training")
    device = whole(GpuOffer(gpu=gpu, gpus_per_node=domain))
    fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=rate, resource=None)
    links = link(device, of.gpus, fabric)
    assert links is not None
    return prepare(
        of.model,
        device,
        of.method,
        of.framework,
        many=of.gpus > 1,
        release=of.release,
        recipe=of.recipe,
        power=of.power,
        eager=of.eager,
    ).given(
        links
        | {
            "usable_fraction": constant(0.9, "1", "measurement"),
            "domain_gpus": constant(domain, "1", "GPUs joined by NVLink"),
            "network_rate": constant(rate, "B/s", "network of a GPU"),
        }
    )


def predicting(model: Transformer, framework: str) -> tuple[int, int]:
    """Layers and heads for multi-token prediction, which Megatron-Bridge's recipes train, as their
    published FLOP a token tell. A module of Nemotron-H is two of its layers."""
    if framework != "megatron-bridge":
        return 0, 0
    modules = model.mtp_layers
    return modules * (2 if model.mlp_free_layers else 1), modules
