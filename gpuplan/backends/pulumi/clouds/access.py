"""How the workloads' stack reaches a cluster that another stack of ours made: a kubeconfig that has
no secret in it."""

from __future__ import annotations

from gpuplan.backends.pulumi.clouds.programs import cluster_module
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Expression, Name
from gpuplan.render.tree import File

API = "client.authentication.k8s.io/v1beta1"
EXPORT = ("kubeconfig", "access.reached")


def access(
    cloud: Cloud, certificate: str, command: str, *args: Expression, bare: bool = False
) -> File:
    """`certificate` is the attribute of the cluster that has its authority's; `command` with its
    `args` brings whoever runs it a token. `bare`: its endpoint is an address without a scheme."""
    asked: dict[str, Expression] = {
        "apiVersion": API,
        "command": command,
        "args": list(args),
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    name = Name("name")
    reached: dict[str, Expression] = {
        "server": Name("endpoint"),
        "certificate-authority-data": Name("certificate"),
    }
    tree: dict[str, Expression] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": reached}],
        "users": [{"name": name, "user": {"exec": asked}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    text = render(
        "python",
        "pulumi/clouds/access.py.j2",
        module=Verbatim(cluster_module(cloud)),
        tree=Verbatim(python.expression(tree, indent=4, lead="tree = ")),
        certificate=Verbatim(certificate),
        bare=bare,
    )
    return File("access.py", text)
