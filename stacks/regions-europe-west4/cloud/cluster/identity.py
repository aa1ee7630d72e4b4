"""Who the nodes are: an account with what GKE's own agents on them need, and nothing for pods."""

import pulumi
import pulumi_gcp as gcp

project = pulumi.Config("gcp").require("project")

nodes = gcp.serviceaccount.Account(
    "nodes",
    account_id="regions-europe-west4-nodes",
    display_name="Nodes of regions-europe-west4",
)
right = gcp.projects.IAMMember(
    "nodes",
    project=project,
    role="roles/container.defaultNodeServiceAccount",
    member=nodes.member,
)
