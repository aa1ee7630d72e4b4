"""Write `names.json`: the values that Azure's own models enumerate, of what the programs set.

    python -m gpuplan.backends.pulumi.clouds.azure.generate_names

The SDK takes any text for them, so that no type checker sees a value that AKS has not. Needs
azure-mgmt-containerservice.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

NAMES = Path(__file__).with_name("names.json")
PACKAGE = "azure-mgmt-containerservice"
# The keyword of a program, and the enumeration of the models.
ENUMERATIONS = {
    "driver": "GPUDriver",
    "gpu_instance_profile": "GPUInstanceProfile",
    "kubelet_disk_type": "KubeletDiskType",
    "mode": "AgentPoolMode",
    "network_dataplane": "NetworkDataplane",
    "network_plugin": "NetworkPlugin",
    "network_plugin_mode": "NetworkPluginMode",
    "network_policy": "NetworkPolicy",
    "load_balancer_sku": "LoadBalancerSku",
    "node_os_upgrade_channel": "NodeOSUpgradeChannel",
    "os_disk_type": "OSDiskType",
    "os_sku": "OSSKU",
    "os_type": "OSType",
    "outbound_type": "OutboundType",
    "scale_set_eviction_policy": "ScaleSetEvictionPolicy",
    "scale_set_priority": "ScaleSetPriority",
    "support_plan": "KubernetesSupportPlan",
    "tier": "ManagedClusterSKUTier",
    "type": "AgentPoolType",
    "upgrade_channel": "UpgradeChannel",
}
# What the models say in words alone: `Allowed values are 'none' and 'static'.`
DESCRIBED = {
    "cpu_manager_policy": "KubeletConfig",
    "topology_manager_policy": "KubeletConfig",
    "private_dns_zone": "ManagedClusterAPIServerAccessProfile",
}
# The fields of an agent pool and of its kubelet: what AKS has no name for cannot be set.
MODELS = ("KubeletConfig", "LinuxOSConfig", "ManagedClusterAgentPoolProfileProperties")


def generate() -> str:
    models: Any = importlib.import_module("azure.mgmt.containerservice.models")
    tree: dict[str, Any] = {
        "source": f"{PACKAGE} {importlib.metadata.version(PACKAGE)}",
        "values": {
            keyword: sorted(member.value for member in getattr(models, name))
            for keyword, name in ENUMERATIONS.items()
        }
        | {
            keyword: described(getattr(models, name), keyword)
            for keyword, name in DESCRIBED.items()
        },
        "fields": {name: sorted(fields(getattr(models, name))) for name in MODELS},
    }
    return json.dumps(tree, indent=1, sort_keys=True) + "\n"


def described(model: Any, field: str) -> list[str]:
    """The values that a field's own words allow."""
    text = " ".join((model.__doc__ or "").split())
    _, _, behind = text.partition(f":ivar {field}:")
    sentence = re.search(r"Allowed values are ([^.]*)\.", behind.partition(":vartype")[0])
    if sentence is None:
        raise ValueError(f"{model.__name__}.{field} says no values")
    return sorted(re.findall(r"'([^']*)'", sentence.group(1)))


def fields(model: Any) -> list[str]:
    """Of a model, as its words list them."""
    return re.findall(r":ivar (\w+):", model.__doc__ or "")


if __name__ == "__main__":
    NAMES.write_text(generate(), encoding="utf-8")
