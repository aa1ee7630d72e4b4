"""The cluster's network: private subnets for nodes and pods, public ones for what faces out."""

import ipaddress

import pulumi
import pulumi_aws as aws

config = pulumi.Config()

zones = ["us-east-1a", "us-east-1b"]

# Sixteen blocks: the first of them for nodes and pods, those from the ninth on public.
whole = ipaddress.ip_network(config.get("cidr") or "10.0.0.0/16")
blocks = [str(block) for block in whole.subnets(prefixlen_diff=4)]

vpc = aws.ec2.Vpc(
    "cluster",
    cidr_block=str(whole),
    enable_dns_hostnames=True,
    enable_dns_support=True,
    tags={"Name": "eks"},
    opts=pulumi.ResourceOptions(protect=True),
)
gateway = aws.ec2.InternetGateway("cluster", vpc_id=vpc.id, tags={"Name": "eks"})

outwards = aws.ec2.RouteTable(
    "public",
    vpc_id=vpc.id,
    routes=[aws.ec2.RouteTableRouteArgs(cidr_block="0.0.0.0/0", gateway_id=gateway.id)],
)
public: dict[str, aws.ec2.Subnet] = {}
for number, zone in enumerate(zones):
    public[zone] = aws.ec2.Subnet(
        f"public-{zone}",
        vpc_id=vpc.id,
        availability_zone=zone,
        cidr_block=blocks[8 + number],
        tags={"kubernetes.io/role/elb": "1"},
    )
    aws.ec2.RouteTableAssociation(
        f"public-{zone}",
        subnet_id=public[zone].id,
        route_table_id=outwards.id,
    )

# One for all zones: where its zone fails, nodes of the others reach nothing outside.
address = aws.ec2.Eip("nat", domain="vpc")
nat = aws.ec2.NatGateway(
    "nat",
    allocation_id=address.allocation_id,
    subnet_id=public[zones[0]].id,
    opts=pulumi.ResourceOptions(depends_on=[gateway]),
)
inwards = aws.ec2.RouteTable(
    "private",
    vpc_id=vpc.id,
    routes=[aws.ec2.RouteTableRouteArgs(cidr_block="0.0.0.0/0", nat_gateway_id=nat.id)],
)
private: dict[str, aws.ec2.Subnet] = {}
for number, zone in enumerate(zones):
    private[zone] = aws.ec2.Subnet(
        f"private-{zone}",
        vpc_id=vpc.id,
        availability_zone=zone,
        cidr_block=blocks[number],
        tags={"kubernetes.io/role/internal-elb": "1"},
    )
    aws.ec2.RouteTableAssociation(
        f"private-{zone}",
        subnet_id=private[zone].id,
        route_table_id=inwards.id,
    )

# Layers of images lie in S3: past the NAT gateway they cost nothing.
aws.ec2.VpcEndpoint(
    "s3",
    vpc_id=vpc.id,
    service_name="com.amazonaws.us-east-1.s3",
    vpc_endpoint_type="Gateway",
    route_table_ids=[inwards.id],
)
