"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import access
import control

pulumi.export("name", control.name)
pulumi.export("location", control.location)
pulumi.export("nodes", control.identity.nodes.email)
pulumi.export("kubeconfig", access.reached)
