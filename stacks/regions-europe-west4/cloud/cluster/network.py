"""The network of the nodes: addresses of their own, and a way out without any of the internet's."""

import pulumi
import pulumi_gcp as gcp

config = pulumi.Config()

network = gcp.compute.Network(
    "cluster",
    name="regions-europe-west4",
    auto_create_subnetworks=False,
    opts=pulumi.ResourceOptions(protect=True),
)
subnet = gcp.compute.Subnetwork(
    "cluster",
    name="regions-europe-west4",
    network=network.id,
    region="europe-west4",
    ip_cidr_range=config.get("nodesCidr") or "10.0.0.0/20",
    private_ip_google_access=True,
    secondary_ip_ranges=[
        gcp.compute.SubnetworkSecondaryIpRangeArgs(
            range_name="pods",
            ip_cidr_range=config.get("podsCidr") or "10.4.0.0/14",
        ),
        gcp.compute.SubnetworkSecondaryIpRangeArgs(
            range_name="services",
            ip_cidr_range=config.get("servicesCidr") or "10.8.0.0/20",
        ),
    ],
)

# Images and models come through it; nothing comes in.
router = gcp.compute.Router("cluster", name="regions-europe-west4", network=network.id, region="europe-west4")
gcp.compute.RouterNat(
    "cluster",
    name="regions-europe-west4",
    router=router.name,
    region="europe-west4",
    nat_ip_allocate_option="AUTO_ONLY",
    source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
)
