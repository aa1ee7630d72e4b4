"""Who may talk to whom: nobody, then what each workload needs."""

import pulumi
import pulumi_kubernetes as k8s

import cluster

# What several policies allow.
dns = k8s.networking.v1.NetworkPolicyEgressRuleArgs(
    to=[
        k8s.networking.v1.NetworkPolicyPeerArgs(
            namespace_selector=k8s.meta.v1.LabelSelectorArgs(
                match_labels={"kubernetes.io/metadata.name": "kube-system"},
            ),
        ),
        k8s.networking.v1.NetworkPolicyPeerArgs(
            ip_block=k8s.networking.v1.IPBlockArgs(cidr="169.254.20.10/32"),
        ),
    ],
    ports=[
        k8s.networking.v1.NetworkPolicyPortArgs(protocol="UDP", port=53),
        k8s.networking.v1.NetworkPolicyPortArgs(protocol="TCP", port=53),
    ],
)
https = k8s.networking.v1.NetworkPolicyEgressRuleArgs(
    # weights and data over HTTPS, but not the cloud's metadata
    to=[
        k8s.networking.v1.NetworkPolicyPeerArgs(
            ip_block=k8s.networking.v1.IPBlockArgs(cidr="0.0.0.0/0", except_=["169.254.0.0/16"]),
        ),
        k8s.networking.v1.NetworkPolicyPeerArgs(
            ip_block=k8s.networking.v1.IPBlockArgs(
                cidr="::/0",
                except_=["fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"],
            ),
        ),
    ],
    ports=[k8s.networking.v1.NetworkPolicyPortArgs(protocol="TCP", port=443)],
)
uploads_clients_8000 = k8s.networking.v1.NetworkPolicyIngressRuleArgs(
    # the tenant's own pods, and namespaces labelled client.gpuplan.dev/vision-uploads=true
    from_=[
        k8s.networking.v1.NetworkPolicyPeerArgs(pod_selector=k8s.meta.v1.LabelSelectorArgs()),
        k8s.networking.v1.NetworkPolicyPeerArgs(
            namespace_selector=k8s.meta.v1.LabelSelectorArgs(
                match_labels={"client.gpuplan.dev/vision-uploads": "true"},
            ),
        ),
    ],
    ports=[k8s.networking.v1.NetworkPolicyPortArgs(protocol="TCP", port=8000)],
)

tenant_uploads_policy = k8s.networking.v1.NetworkPolicy(
    "tenant-uploads",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="default-deny",
        namespace="vision-uploads",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(),
        policy_types=["Ingress", "Egress"],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

tags_policy = k8s.networking.v1.NetworkPolicy(
    "tags",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tags",
        namespace="vision-uploads",
        labels={
            "app.kubernetes.io/name": "tags",
            "app.kubernetes.io/part-of": "vision",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "uploads",
        },
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={"app.kubernetes.io/name": "tags", "app.kubernetes.io/part-of": "vision"},
        ),
        policy_types=["Ingress", "Egress"],
        ingress=[uploads_clients_8000],
        egress=[dns, https],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

search_policy = k8s.networking.v1.NetworkPolicy(
    "search",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="search",
        namespace="vision-uploads",
        labels={
            "app.kubernetes.io/name": "search",
            "app.kubernetes.io/part-of": "vision",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "uploads",
        },
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "search",
                "app.kubernetes.io/part-of": "vision",
            },
        ),
        policy_types=["Ingress", "Egress"],
        ingress=[uploads_clients_8000],
        egress=[dns, https],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

archive_policy = k8s.networking.v1.NetworkPolicy(
    "archive",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive",
        namespace="vision-uploads",
        labels={
            "app.kubernetes.io/name": "archive",
            "app.kubernetes.io/part-of": "vision",
            "app.kubernetes.io/component": "batch",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "uploads",
        },
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "archive",
                "app.kubernetes.io/part-of": "vision",
            },
        ),
        policy_types=["Ingress", "Egress"],
        egress=[dns, https],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

learn_policy = k8s.networking.v1.NetworkPolicy(
    "learn",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="learn",
        namespace="vision-uploads",
        labels={
            "app.kubernetes.io/name": "learn",
            "app.kubernetes.io/part-of": "vision",
            "app.kubernetes.io/component": "finetuning",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "uploads",
        },
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={"app.kubernetes.io/name": "learn", "app.kubernetes.io/part-of": "vision"},
        ),
        policy_types=["Ingress", "Egress"],
        egress=[dns, https],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)
