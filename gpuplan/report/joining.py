"""What guests that become nodes of a cluster need: `gpuplan explain STACK WORKLOAD.join`.

Pure functions over the plan's plain tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.wording import Tree

TOKENS = {
    "kubeadm": "a bootstrap token (`kubeadm token create`), which lives a day by itself",
    "k3s": "the node token of the server (/var/lib/rancher/k3s/server/node-token)",
    "slurm": "the key of munge, as the controller has it",
}
WRONG = {
    "kubeadm": "kubeadm fails and joins nothing, and tries again each ten seconds: "
    "`journalctl -u gpuplan-join`",
    "k3s": "the agent ends, and is started again each ten seconds: `journalctl -u gpuplan-join`",
    "slurm": "the controller refuses the node, which stays down: `journalctl -u slurmd`",
}
UNDONE = "as docs/hypervisors.md says: on the cluster, in the guest, then in the inventory"


def clusters(plan: Tree, work: Tree) -> list[Tree]:
    """What the hosts of a workload's guests say of a cluster, each once."""
    names = {m["host"] for m in plan.get("virtual_machines", ()) if m["workload"] == work["name"]}
    joins = [h["join"] for h in plan.get("hosts", ()) if h["name"] in names and h.get("join")]
    return [j for n, j in enumerate(joins) if j not in joins[:n]]


def join_facts(plan: Tree, work: Tree, join: Tree) -> Iterator[tuple[str, str]]:
    """What joins what, by which secret, and what becomes of it, each with its name."""
    from gpuplan.plan.site import JOIN_FILE, JOIN_LABEL, SECRETS, SLURM_NODES, feature

    kind = join["kind"]
    guests = [m["name"] for m in plan["virtual_machines"] if m["workload"] == work["name"]]
    yield "nodes", ", ".join(guests)
    version = join.get("version")
    yield "version", f"{version}, as the inventory says" if version else "the distribution's"
    token = f"{SECRETS}/{plan['name']}/{JOIN_FILE}"
    yield "token", f"{token} on each host: {TOKENS[kind]}"
    yield "proof", _proof(join)
    yield "absent", "QEMU starts no guest whose file is absent on its host"
    yield "wrong", WRONG[kind]
    if kind == "slurm":
        yield "lines", f"{SLURM_NODES}/nodes.conf and gres.conf: for the controller, before a start"
        yield "feature", feature(work["name"])
    else:
        yield "label", f"{JOIN_LABEL}={work['name']}"
    yield "starts", "nothing by itself: the cluster's scheduler starts work in the guests"
    yield "undone", UNDONE


def _proof(join: Tree) -> str:
    if join["kind"] == "kubeadm":
        return f"the hash of its authority: {', '.join(join['ca_cert_hashes'])}"
    if join["kind"] == "k3s":
        return "the hash of its authority, where the token has one (it begins with K10)"
    return "munge's key, which both have"
