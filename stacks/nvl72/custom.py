"""Your own changes to this stack. gpuplan wrote this file once and never writes it again.

`change` sees each resource of the program before Pulumi does: pull secrets, sidecars, annotations
and tolerations are added here, and resources of your own below. `gpuplan preview .` shows what
comes of it, `gpuplan check . --preview` judges that.
"""

from typing import Any

import pulumi


def change(kind: str, name: str, props: dict[str, Any]) -> None:
    """Change `props` in place. Put new lists and mappings in place of those that are there: several
    resources may share one. For example, with `import pulumi_kubernetes as k8s` above:

    if kind == "kubernetes:apps/v1:Deployment":
        pod = props["spec"].template.spec
        pod.tolerations = [*pod.tolerations, k8s.core.v1.TolerationArgs(key="team")]
    """


def transform(
    args: pulumi.ResourceTransformationArgs,
) -> pulumi.ResourceTransformationResult | None:
    if args.opts.id is not None:
        return None  # it is only read
    props: dict[str, Any] = dict(args.props)
    change(args.type_, args.name, props)
    return pulumi.ResourceTransformationResult(props, args.opts)


# From here on: `__main__.py` imports this file before all that registers resources.
pulumi.runtime.register_stack_transformation(transform)
