"""Where charts name registries: their images come from mirrors, with their secrets.

Source of the GPU operator's: deployments/gpu-operator/values.yaml and templates of
NVIDIA/gpu-operator at v26.3.3, and its page on air-gapped installation. Of the parts that the stack
does not switch on, none is here.
"""

from __future__ import annotations

from gpuplan.plan.outside.network import Network, mirrored
from gpuplan.render.commented import Because, Tree

# Each part's value `repository`, by the chart's own default.
REPOSITORIES = {
    ("operator",): "nvcr.io/nvidia",
    ("validator",): "nvcr.io/nvidia",
    ("driver",): "nvcr.io/nvidia",
    ("driver", "manager"): "nvcr.io/nvidia/cloud-native",
    ("toolkit",): "nvcr.io/nvidia/k8s",
    ("devicePlugin",): "nvcr.io/nvidia",
    ("dcgmExporter",): "nvcr.io/nvidia/k8s",
    ("gfd",): "nvcr.io/nvidia",
    ("migManager",): "nvcr.io/nvidia/cloud-native",
}
DISCOVERY = "node-feature-discovery"
DISCOVERY_IMAGE = "registry.k8s.io/nfd/node-feature-discovery"


def with_mirrors(tree: Tree, network: Network | None) -> Tree:
    """The values `tree` with what mirrors and pull secrets add."""
    if network is None:
        return tree
    for path, repository in REPOSITORIES.items():
        mirror = mirrored(repository, network)
        if mirror != repository:
            _put(tree, (*path, "repository"), mirror)
        if network.pull_secrets and len(path) == 1:
            _put(tree, (*path, "imagePullSecrets"), list(network.pull_secrets))
    mirror = mirrored(DISCOVERY_IMAGE, network)
    if mirror != DISCOVERY_IMAGE:
        _put(tree, (DISCOVERY, "image", "repository"), mirror)
    if network.pull_secrets:
        named = [{"name": name} for name in network.pull_secrets]
        _put(tree, (DISCOVERY, "imagePullSecrets"), named)
    return tree


def with_image(tree: Tree, repository: str, network: Network | None) -> Tree:
    """The values `tree` of a chart with one image, from its mirror and with its secrets."""
    if (mirror := mirrored(repository, network)) != repository:
        tree["image"] = {"repository": Because(mirror, "as platform.network says")}
    if network and network.pull_secrets:
        tree["imagePullSecrets"] = [{"name": name} for name in network.pull_secrets]
    return tree


def _put(tree: Tree, path: tuple[str, ...], value: object) -> None:
    *folders, name = path
    for folder in folders:
        tree = tree.setdefault(folder, {})
    tree[name] = Because(value, "as platform.network says")
