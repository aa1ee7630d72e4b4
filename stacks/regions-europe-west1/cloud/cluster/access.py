"""How other stacks reach the cluster: its address, its certificate, and what asks who they are."""

import json

import pulumi

import control


def kubeconfig(found: list[str]) -> str:
    """Nothing in it is secret: whoever uses it asks for a token of their own."""
    name, address, certificate = found
    endpoint = f"https://{address}"
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": endpoint, "certificate-authority-data": certificate},
            },
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "command": "gke-gcloud-auth-plugin",
                        "args": [],
                        "interactiveMode": "Never",
                        "provideClusterInfo": True,
                    },
                },
            },
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(tree)


reached = pulumi.Output.all(
    control.cluster.name,
    control.cluster.endpoint,
    control.cluster.master_auth.cluster_ca_certificate,
).apply(kubeconfig)
