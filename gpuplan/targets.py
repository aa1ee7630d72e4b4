"""The targets: what each is called, which backends emit for it, and what it can do.

A target is a record here and the folder of its backend; nothing else of gpuplan knows a target by
name (docs/adding-a-backend.md).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from gpuplan.frozen import record


class Ignored(NamedTuple):
    """A field that a manifest may have and a target does nothing with: `storage.class`."""

    field: str
    reason: str


NO_SLURM = Ignored("slurm", "nothing of the target is Slurm's")
NO_QUADLET = Ignored("quadlet", "nothing of the target runs on Podman")
NO_VGPUS = Ignored("vgpu_subscription", "no GPU is cut into vGPUs")
NO_ANSIBLE = Ignored("ansible", "the stack sets up no machines over SSH")
NO_ORDER = Ignored("after", "Jobs start as soon as they fit; apply what comes later, later")
NO_DOMAINS = Ignored(
    "node.nvlink_nodes", "nothing keeps work inside an NVLink domain, so it stays inside a node"
)
NO_CLUSTER = Ignored("cluster", "no cloud manages the target")
NO_RACKS = Ignored("rack_power", "the cloud feeds its own racks")
OF_CLOUDS = (NO_SLURM, NO_QUADLET, NO_ANSIBLE, NO_VGPUS, NO_DOMAINS, NO_RACKS)


@record
class Target:
    """Where a stack may run.

    `backends` are modules below `gpuplan.backends`; a target without any is refused by name.
    `gpu_sharing` is how workloads share a GPU there, None where each has whole ones.
    `virtual_machines`: isolation `vm` exists, and what a machine needs beside its guest is
    reserved. `balancer`: the image of the catalogue that spreads requests over the replicas of a
    service, where nothing of the target does. `guests_on_hosts`: workloads are guests, placed core
    by core on the hosts of an inventory. `one_machine`: a stack is one machine's.
    `lists_machines`: the plan has every machine of the inventory, with the network between them, as
    the cluster's scheduler is configured by it.
    `groups`: a replica of a service may lie on several nodes, whose pods come and go together.
    `pools`: prompts and answers of a service may have replicas of their own, with a router.
    `domains`: the nodes of a run, and of a replica where there are groups, lie in one NVLink domain
    where the plan counts on it.
    `queues_pods`: a queue of the cluster may admit all pods of a run or a replica at once, and a
    JobSet may bring those of a run.
    `installs_components`: the stack brings the catalogue's components. `provider`: whose machines
    its nodes are, in a cluster that it manages. `driver_on_nodes`: they come with the GPU driver,
    `plugin_on_nodes` also with what offers GPUs to pods. `has_instead`: components of the catalogue
    that the stack does not bring, for the target has something else that does the same.
    `infiniband` is what pods ask for its adapters by, `zones` how two of a region are written in a
    manifest. `states_access`: the stack that makes the cluster says how it is reached.
    `other_vendors`: GPUs of any maker are planned, elsewhere those of the first alone.
    `monitors`: the images that watch the workloads, where the stack starts them itself.
    `starts_engines`: what is emitted gives engines their arguments, those for drafting among them;
    elsewhere images start their engines by themselves. `updated_by` is the module that fits a plan
    to the stack that is there. What is `ignored_of_…` is said in a note.
    """

    name: str
    other_names: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    updated_by: str = ""
    gpu_sharing: Literal["mig", "vgpu"] | None
    virtual_machines: bool = False
    guests_on_hosts: bool = False
    one_machine: bool = False
    needs_inventory: bool = False
    lists_machines: bool = False
    groups: bool = False
    pools: bool = False
    domains: bool = False
    queues_pods: bool = False
    provider: str | None = None
    states_access: bool = False
    other_vendors: bool = False
    installs_components: bool = False
    balancer: str | None = None
    monitors: tuple[str, ...] = ()
    starts_engines: bool = False
    driver_on_nodes: bool = False
    plugin_on_nodes: bool = False
    infiniband: str | None = None
    zones: tuple[str, ...] = ()
    has_instead: tuple[str, ...] = ()
    ignored_of_platform: tuple[Ignored, ...] = ()
    ignored_of_workloads: tuple[Ignored, ...] = ()

    def __post_init__(self) -> None:
        if self.guests_on_hosts and not self.needs_inventory:
            raise ValueError(f"target {self.name}: guests need the inventory of their hosts")

    def ignores(self, field: str) -> bool:
        """Whether `field` of the platform has no effect on the target."""
        return any(one.field == field for one in self.ignored_of_platform)

    @property
    def binds_pods(self) -> bool:
        """Whether a cluster's scheduler puts pods on nodes, one by one."""
        return "pulumi.kubernetes" in self.backends

    @property
    def stands_by(self) -> bool:
        """Whether nodes can stand by for a run."""
        return not (self.guests_on_hosts or self.one_machine)

    @property
    def emits(self) -> str:
        """`Emitted by pulumi.kubernetes, helm.`, or that nothing is."""
        if self.backends:
            return f"Emitted by {', '.join(self.backends)}."
        return "Not implemented yet: `gpuplan compile --plan-only` sizes for it."


TARGETS = {
    target.name: target
    for target in (
        Target(
            name="kubernetes",
            other_names=("k8s", "kube"),
            backends=("pulumi.kubernetes", "helm"),
            updated_by="kubernetes.update.carry",
            gpu_sharing="mig",
            other_vendors=True,
            groups=True,
            pools=True,
            domains=True,
            queues_pods=True,
            installs_components=True,
            starts_engines=True,
            ignored_of_platform=(NO_SLURM, NO_QUADLET, NO_CLUSTER, NO_ANSIBLE, NO_VGPUS),
            ignored_of_workloads=(NO_ORDER,),
        ),
        Target(
            name="libvirt",
            other_names=("kvm", "qemu"),
            backends=("libvirt", "pulumi.libvirt"),
            updated_by="plan.changes.moves",
            gpu_sharing="vgpu",
            virtual_machines=True,
            guests_on_hosts=True,
            needs_inventory=True,
            ignored_of_platform=(
                NO_SLURM,
                NO_QUADLET,
                NO_CLUSTER,
                NO_DOMAINS,
                Ignored("storage.class", "volumes are disks of the guests"),
                Ignored("network", "guests have the host's network"),
                Ignored("fabric.resource", "guests get virtual functions of the network cards"),
                Ignored("fabric.switch_label", "guests are placed on the hosts of the inventory"),
                Ignored("queue", "guests run from the start"),
                Ignored("jobs", "guests run from the start"),
            ),
            ignored_of_workloads=(
                Ignored("priority", "the guests of a host are equals"),
                Ignored("preemptible", "nothing stops a guest for another one"),
                Ignored("after", "guests run from the start"),
                Ignored("schedule", "guests run from the start"),
            ),
        ),
        Target(
            name="eks",
            backends=("pulumi.clouds.aws", "pulumi.kubernetes", "helm"),
            updated_by="kubernetes.update.carry",
            gpu_sharing="mig",
            queues_pods=True,
            provider="aws",
            states_access=True,
            zones=("{region}a", "{region}b"),
            installs_components=True,
            starts_engines=True,
            driver_on_nodes=True,
            ignored_of_platform=OF_CLOUDS,
            ignored_of_workloads=(NO_ORDER,),
        ),
        Target(
            name="gke",
            backends=("pulumi.clouds.google", "pulumi.kubernetes", "helm"),
            updated_by="kubernetes.update.carry",
            gpu_sharing="mig",
            groups=True,
            pools=True,
            queues_pods=True,
            provider="gcp",
            states_access=True,
            zones=("{region}-b", "{region}-c"),
            installs_components=True,
            starts_engines=True,
            driver_on_nodes=True,
            plugin_on_nodes=True,
            has_instead=("gpu-operator",),
            ignored_of_platform=OF_CLOUDS,
            ignored_of_workloads=(NO_ORDER,),
        ),
        Target(
            name="aks",
            backends=("pulumi.clouds.azure", "pulumi.kubernetes", "helm"),
            updated_by="kubernetes.update.carry",
            gpu_sharing="mig",
            groups=True,
            pools=True,
            queues_pods=True,
            provider="azure",
            zones=('"1"', '"2"'),
            infiniband="rdma/ib",
            installs_components=True,
            starts_engines=True,
            ignored_of_platform=OF_CLOUDS,
            ignored_of_workloads=(NO_ORDER,),
        ),
        Target(
            name="proxmox",
            other_names=("pve",),
            gpu_sharing="vgpu",
            virtual_machines=True,
            guests_on_hosts=True,
            needs_inventory=True,
        ),
        Target(
            name="vsphere",
            other_names=("vmware", "esxi"),
            gpu_sharing="vgpu",
            virtual_machines=True,
            guests_on_hosts=True,
            needs_inventory=True,
        ),
        Target(name="kubevirt", gpu_sharing="vgpu", virtual_machines=True),
        Target(
            name="slurm",
            backends=("slurm",),
            gpu_sharing="mig",
            needs_inventory=True,
            lists_machines=True,
            domains=True,
            starts_engines=True,
            ignored_of_platform=(
                NO_QUADLET,
                NO_CLUSTER,
                NO_VGPUS,
                Ignored("ansible", "the cluster's role is always there"),
                Ignored("storage.class", "volumes are folders of slurm.storage"),
                Ignored("fabric.resource", "jobs see the network cards of their nodes"),
                Ignored(
                    "fabric.switch_label", "Slurm's topology has the switches of the inventory"
                ),
                Ignored("queue", "Slurm starts the tasks of a job at once"),
                Ignored("jobs", "Slurm requeues a job whole"),
                Ignored("network.dns", "jobs ask the name servers of their nodes"),
                Ignored("network.internet", "jobs reach what their nodes reach"),
                Ignored("network.egress", "jobs reach what their nodes reach"),
                Ignored("network.charts", "no add-ons are installed"),
                Ignored("network.pull_secrets", "whoever fetches the images logs in"),
            ),
        ),
        Target(
            name="docker",
            one_machine=True,
            other_names=("compose", "docker-compose"),
            backends=("docker",),
            gpu_sharing="mig",
            other_vendors=True,
            balancer="haproxy",
            monitors=("dcgm-exporter", "prometheus", "grafana"),
            starts_engines=True,
            ignored_of_platform=(
                NO_SLURM,
                NO_CLUSTER,
                NO_DOMAINS,
                NO_ANSIBLE,
                NO_VGPUS,
                Ignored("storage.class", "volumes are Docker's own"),
                Ignored("fabric.resource", "containers of one machine use no network device"),
                Ignored("fabric.switch_label", "nothing lies on several machines"),
                Ignored("queue", "nothing lies on several machines"),
                Ignored("jobs", "nothing lies on several machines"),
                Ignored("network.dns", "containers ask the machine's name servers"),
                Ignored("network.internet", "containers reach what the machine reaches"),
                Ignored("network.egress", "containers reach what the machine reaches"),
                Ignored("network.charts", "no add-ons are installed"),
                Ignored("network.pull_secrets", "`docker login` on the machine keeps them"),
            ),
            ignored_of_workloads=(
                Ignored("priority", "each container has GPUs and CPUs of its own"),
                Ignored("preemptible", "nothing stops a container for another one"),
            ),
        ),
    )
}
OTHER_NAMES = {other: target.name for target in TARGETS.values() for other in target.other_names}


def implemented() -> tuple[str, ...]:
    """The targets that something is emitted for, in the table's order."""
    return tuple(target.name for target in TARGETS.values() if target.backends)


def of_other_vendors() -> tuple[str, ...]:
    return tuple(target.name for target in TARGETS.values() if target.other_vendors)


def making_machines_of(provider: str) -> str:
    """The target whose stacks make a provider's machines and their cluster; "" where none does."""
    makers = (t.name for t in TARGETS.values() if t.provider == provider and t.backends)
    return next(makers, "")
