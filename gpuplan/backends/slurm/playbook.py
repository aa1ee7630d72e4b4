"""An Ansible role that runs ./deploy.sh on every machine where it would change something."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.outside.cluster import Cluster
from gpuplan.render.environments import render
from gpuplan.render.tree import File

ROLE = "ansible/roles/slurm"
FOLDER = "/var/lib/gpuplan"  # of each machine's copy


def files(name: str, cluster: Cluster) -> Iterator[File]:
    """`name` is the cluster's."""
    servers = list(dict.fromkeys((cluster.controller, cluster.database)))
    nodes = [n for m in cluster.machines for n in m.names if n not in servers]
    values: dict[str, dict[str, object]] = {
        "ansible/site.yml": {},
        "ansible/inventory.yml": {"servers": servers, "nodes": nodes},
        f"{ROLE}/tasks/main.yml": {},
        f"{ROLE}/defaults/main.yml": {"folder": f"{FOLDER}/{name}"},
        f"{ROLE}/meta/main.yml": {},
    }
    for path, given in values.items():
        template = path.removesuffix("/main.yml").rpartition("/")[2].removesuffix(".yml")
        yield File(path, render("yaml", f"slurm/ansible/{template}.yml.j2", **given))
