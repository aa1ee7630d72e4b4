"""The makers of GPUs: what each maker's devices are called where they are scheduled, and what its
containers need.

A vendor is a record here, a chart in the catalogue that sets its nodes up, and that chart's values
in `gpuplan.backends.helm`; nothing else of gpuplan knows a vendor by name (docs/vendors.md).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from gpuplan.frozen import record


class Format(NamedTuple):
    """A number format that engines compute in: on all GPUs, or `with_fp8` on those alone that
    compute in fp8 themselves."""

    name: str
    with_fp8: bool = False


@record
class Vendor:
    """`name` is that of the catalogue's files, `title` what people call it.

    `resource` is what schedulers count, `taint` the key that keeps other pods away. `label` is a
    node's label that tells its GPUs apart: it has the GPU's `product`, or the `device` of its PCI
    id. A virtual function is another device, so that machines which are rented are told by their
    instance type. `operator` is the component of the catalogue that sets nodes up, `on_nodes` what
    they must have themselves, in Markdown.
    `kinds` of workload are planned on its GPUs (None: all are), on the targets that plan those of
    `other_vendors`. `formats` are the number formats of engines there; None where compute
    capability tells. `groups`: a replica may lie on several nodes.
    `devices` are the files that a container gets without a device plugin, beside those of its GPUs
    (none: its runtime gives it all), `pci_vendor` is what the kernel calls the vendor, `toolkit`
    what a machine with Docker needs, in Markdown. `capabilities` and `seccomp` are what containers
    have beside the least, for `reason`.
    """

    name: str
    title: str
    resource: str
    taint: str
    label: str
    labelled_by: Literal["product", "device"]
    operator: str
    kinds: tuple[str, ...] | None = None
    formats: tuple[Format, ...] | None = None
    on_nodes: str = ""
    groups: bool = True
    devices: tuple[str, ...] = ()
    pci_vendor: str
    toolkit: str
    capabilities: tuple[str, ...] = ()
    seccomp: Literal["RuntimeDefault", "Unconfined"] = "RuntimeDefault"
    reason: str = ""

    def computes(self, precision: str, *, fp8: bool) -> bool:
        """Whether engines compute in the format there, as far as the vendor decides that. `fp8`:
        the GPU does in that."""
        known = self.formats
        return known is None or any(f.name == precision and f.with_fp8 <= fp8 for f in known)


NVIDIA, AMD = "nvidia", "amd"
FIRST = NVIDIA  # whose GPUs a plan names no vendor of

VENDORS = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name=NVIDIA,
            title="NVIDIA",
            resource="nvidia.com/gpu",
            taint="nvidia.com/gpu",  # what GPU operator and node feature discovery tolerate
            label="nvidia.com/gpu.product",  # set by GPU feature discovery
            labelled_by="product",
            operator="gpu-operator",
            pci_vendor="0x10de",
            toolkit=(
                ", and NVIDIA's container toolkit: `nvidia-ctk runtime configure"
                " --runtime=docker && systemctl restart docker`"
            ),
        ),
        Vendor(
            name=AMD,
            title="AMD",
            # ROCm/k8s-device-plugin, docs/user-guide/configuration.md: whole GPUs, as long as the
            # resource naming strategy is `single`, which is its default.
            resource="amd.com/gpu",
            taint="amd.com/gpu",
            # docs/user-guide/installation.md: `amd.com/gpu.device-id=74a1`. The label with the
            # product's name is what the board's firmware says, which differs between makers.
            label="amd.com/gpu.device-id",
            labelled_by="device",
            operator="amd-gpu-operator",
            kinds=("serving", "batch"),
            # vLLM, docs/features/quantization: FP8 has kernels on AMD, INT8 has none; quark.md:
            # MXFP4 is widened to 16 bits on MI300 and MI325. INT4 is among the formats of
            # vllm/platforms/rocm.py (001eda3), and InferenceX ran mixtures in it (2a2bb8c). NVFP4
            # is NVIDIA's own. What was run in fewer than 16 bits has FP8: CDNA 3 and 4.
            formats=(
                Format("bf16"),
                Format("fp16"),
                Format("fp8", with_fp8=True),
                Format("int4", with_fp8=True),
                Format("mxfp4", with_fp8=True),
            ),
            # docs/dcm of ROCm/gpu-operator: CPX would count each part of a GPU as one.
            on_nodes="its driver (`amdgpu`), and GPUs that are not partitioned (SPX, NPS1)",
            groups=False,
            # ROCm, "Running ROCm Docker containers" (2026-01-20): the render node of each GPU that
            # a container is to have; no runtime is needed.
            devices=("/dev/kfd",),
            pci_vendor="0x1002",
            toolkit="",
            # vLLM, docs/getting_started/installation/gpu.rocm.inc.md, `docker run`; the same in
            # ROCm/k8s-device-plugin, example/vllm-serve/deployment.yaml.
            capabilities=("SYS_PTRACE",),
            seccomp="Unconfined",
            reason="ROCm maps memory of other processes, as vLLM's and AMD's own pods do",
        ),
    )
}


def vendor_of(name: str | None) -> Vendor:
    """The record; None is the first."""
    return VENDORS[name or FIRST]
