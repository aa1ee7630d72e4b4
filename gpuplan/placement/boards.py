"""What can be wrong with the boards, links and cards that workloads are to be beside."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import (
    Change,
    Diagnostic,
    error,
    note,
    remedied,
    warning,
)
from gpuplan.source import Origin
from gpuplan.units import format_rate


def no_fabric_partition(
    workload: str, gpus: int, sizes: Sequence[int], origin: Origin | None
) -> Diagnostic:
    listed = ", ".join(map(str, sizes))
    problem = error(
        "GP041",
        f"workload '{workload}' needs {gpus} GPUs in one guest, but an NVSwitch board is divided "
        f"only into partitions of {listed}",
        origin,
        help=f"write `overrides.tensor_parallel_size: {min(larger)}`"
        if (larger := [size for size in sizes if size > gpus])
        else f"write `overrides.tensor_parallel_size: {max(sizes)}`, or less that is one of these",
    )
    if origin is None or not larger:
        return problem
    at = origin.child("overrides", "tensor_parallel_size")
    return remedied(problem, (Change(at, float(min(larger))),))


def far_devices(
    workload: str, far: int, gpus: int, nearest: tuple[str, str, str], origin: Origin | None
) -> Diagnostic:
    """`far` of a workload's `gpus` have their function across sockets, such as (GPU, NIC, host)."""
    gpu, nic, host = nearest
    return warning(
        "GP044",
        f"{far:,} of the {gpus:,} GPUs of '{workload}' have a function of a NIC on another NUMA "
        f"node, such as {gpu} with {nic} on {host}",
        origin,
        help="GPUDirect RDMA is slow across sockets; free virtual functions nearer to the GPUs",
    )


def shared_board(workload: str, origin: Origin | None) -> Diagnostic:
    return warning(
        "GP044",
        f"'{workload}' shares GPUs of an NVSwitch board, whose fabric manager must know "
        "each guest's virtual functions",
        origin,
        help="run it with FABRIC_MODE=2 and activate the GPUs' partitions with the functions",
    )


def unknown_board(gpu: str, guests: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP012",
        f"no source lists the partitions of NVSwitch boards with '{gpu}', so it was not checked "
        f"that the GPUs of {guests} are one",
        origin,
        help="`fmpm -l` lists them where a fabric manager runs in the shared mode",
    )


def no_network_functions(
    workload: str, lacking: int, gpus: int, origin: Origin | None, *, between_hosts: bool
) -> Diagnostic:
    """`lacking` of the `gpus` of all guests of a workload have no function beside them."""
    build = error if between_hosts else note
    why = "its guests on several hosts would exchange data over the bridge" if between_hosts else ""
    return build(
        "GP044",
        f"the fabric does not reach '{workload}': no NIC has a virtual function left for {lacking} "
        f"of its {gpus} GPUs",
        origin,
        label=why,
        help="list the virtual functions of NICs near the GPUs in the inventory (a list of "
        "addresses under 'virtual_functions'; `in_use: []` or `for_guests: true` where they are "
        "free), or ask for fewer GPUs",
    )


def shared_port(
    workload: str,
    card: str,
    host: str,
    functions: int,
    *,
    rates: tuple[float, float],
    origin: Origin | None,
) -> Diagnostic:
    """`rates`: what the port carries, and what each of its functions is to have."""
    carried, wanted = (format_rate(rate) for rate in rates)
    return warning(
        "GP044",
        f"the port {card} of {host} carries {carried}, and {functions} GPUs beside it, of "
        f"'{workload}' among others, are to have {wanted} each",
        origin,
        label=f"each gets {format_rate(rates[0] / functions)}",
        help="list virtual functions of further network cards near these GPUs, or ask for fewer "
        "GPUs on a host",
    )


def off_fabric(
    workload: str, gpus: int, alone: Sequence[str], host: str, origin: Origin | None
) -> Diagnostic:
    """GPUs of a host that NVLink does not reach, while it joins the others."""
    listed = ", ".join(alone)
    return warning(
        "GP045",
        f"pods of '{workload}' have {gpus} GPUs, and NVLink does not reach {listed} of {host}: "
        "a pod that gets it exchanges data over PCIe",
        origin,
        label="the speed is predicted for GPUs that NVLink joins",
        help="repair its links (`nvidia-smi nvlink --status`), or take the GPU out of service, and "
        "read the inventory anew",
    )
