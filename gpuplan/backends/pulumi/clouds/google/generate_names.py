"""Write `names.json`: the values that Google's own API descriptions enumerate, of what is set.

    python -m gpuplan.backends.pulumi.clouds.google.generate_names

The SDK's types are texts, so that no type checker sees a value that Google has not. Needs
google-api-python-client, whose wheel holds the discovery documents. `fields` are all that GKE
knows of a node pool, by which the names of the SDK's arguments are held against the API's.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

NAMES = Path(__file__).with_name("names.json")
# The keyword of a program, the schema of the Kubernetes Engine API, and its property.
ENUMS = {
    "channel": ("ReleaseChannel", "channel"),
    "cluster_dns": ("DNSConfig", "clusterDns"),
    "cluster_dns_scope": ("DNSConfig", "clusterDnsScope"),
    "consume_reservation_type": ("ReservationAffinity", "consumeReservationType"),
    "datapath_provider": ("NetworkConfig", "datapathProvider"),
    "effect": ("NodeTaint", "effect"),
    "gpu_driver_version": ("GPUDriverInstallationConfig", "gpuDriverVersion"),
    "location_policy": ("NodePoolAutoscaling", "locationPolicy"),
    "mode": ("WorkloadMetadataConfig", "mode"),
    "strategy": ("UpgradeSettings", "strategy"),
    "placement": ("PlacementPolicy", "type"),
}
# Values that only the text of a property names, between quotes or as items.
TEXTS = {
    "cpu_manager_policy": ("NodeKubeletConfig", "cpuManagerPolicy"),
    "accelerator_network_profile": ("NodeNetworkConfig", "acceleratorNetworkProfile"),
    "scope": ("TopologyManager", "scope"),
}
ITEMS = re.compile(r'"([a-zA-Z-]+)"|\* ([a-z-]+)')
COMPONENTS = ("LoggingComponentConfig", "MonitoringComponentConfig")
FIELDS = ("NodePool", "NodeConfig", "NodeKubeletConfig", "AcceleratorConfig", "NodeNetworkConfig")


def document(name: str) -> dict[str, Any]:
    """A discovery document of the installed client."""
    spec = importlib.util.find_spec("googleapiclient")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "discovery_cache" / "documents"
    tree: dict[str, Any] = json.loads((folder / f"{name}.json").read_bytes())
    return tree


def generate() -> str:
    container, compute = document("container.v1"), document("compute.v1")
    schemas = container["schemas"]
    version = importlib.metadata.version("google-api-python-client")
    revisions = f"container.v1 {container['revision']}, compute.v1 {compute['revision']}"
    tree: dict[str, Any] = {"source": f"google-api-python-client {version}: {revisions}"}
    for keyword, (schema, name) in ENUMS.items():
        tree[keyword] = sorted(schemas[schema]["properties"][name]["enum"])
    for keyword, (schema, name) in TEXTS.items():
        text = schemas[schema]["properties"][name]["description"]
        tree[keyword] = sorted({a or b for a, b in ITEMS.findall(text)})
    tree["enable_components"] = sorted(
        {
            n
            for c in COMPONENTS
            for n in schemas[c]["properties"]["enableComponents"]["items"]["enum"]
        }
    )
    tree["quotas"] = sorted(
        name
        for name in compute["schemas"]["Quota"]["properties"]["metric"]["enum"]
        if "GPU" in name
    )
    tree["fields"] = {name: sorted(schemas[name]["properties"]) for name in FIELDS}
    return json.dumps(tree, indent=1) + "\n"


if __name__ == "__main__":
    NAMES.write_text(generate(), encoding="utf-8")
