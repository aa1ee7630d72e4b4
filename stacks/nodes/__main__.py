"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import machines

pulumi.export("guests", machines.guests)
