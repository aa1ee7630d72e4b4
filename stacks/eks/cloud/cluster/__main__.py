"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import access
import control

pulumi.export("name", control.name)
pulumi.export("vpc", control.vpc_id)
pulumi.export("subnets", control.subnets)
pulumi.export("securityGroup", control.security_group)
pulumi.export("nodeRole", control.node_role)
pulumi.export("nodeRoleName", control.node_role_name)
pulumi.export("kubeconfig", access.reached)
