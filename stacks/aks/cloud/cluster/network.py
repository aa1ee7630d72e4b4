"""The cluster's network: one subnet for nodes, which reaches out through one address."""

import ipaddress

import pulumi
from pulumi_azure_native import network, resources

config = pulumi.Config()

zones: list[str] = ["1", "2"]

group = resources.ResourceGroup(
    "cluster",
    resource_group_name="aks",
    location="eastus",
    opts=pulumi.ResourceOptions(protect=True),
)

# Four blocks, the first for nodes; pods have addresses of their own behind these.
whole = ipaddress.ip_network(config.get("cidr") or "10.224.0.0/16")
blocks = [str(block) for block in whole.subnets(prefixlen_diff=2)]

address = network.PublicIPAddress(
    "nat",
    resource_group_name=group.name,
    location=group.location,
    public_ip_allocation_method="Static",
    sku=network.PublicIPAddressSkuArgs(name="Standard"),
    zones=zones or None,
)
# It lives in one zone, the first: where that fails, nodes of the others reach nothing outside.
nat = network.NatGateway(
    "nat",
    resource_group_name=group.name,
    location=group.location,
    sku=network.NatGatewaySkuArgs(name="Standard"),
    public_ip_addresses=[network.SubResourceArgs(id=address.id)],
    zones=zones[:1] or None,
)
vnet = network.VirtualNetwork(
    "cluster",
    resource_group_name=group.name,
    location=group.location,
    address_space=network.AddressSpaceArgs(address_prefixes=[str(whole)]),
    # Subnets are resources of their own: without this an update takes them away.
    opts=pulumi.ResourceOptions(protect=True, ignore_changes=["subnets"]),
)
nodes = network.Subnet(
    "nodes",
    resource_group_name=group.name,
    virtual_network_name=vnet.name,
    address_prefix=blocks[0],
    default_outbound_access=False,
    nat_gateway=network.SubResourceArgs(id=nat.id),
)
