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

tenant_training_policy = k8s.networking.v1.NetworkPolicy(
    "tenant-training",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="default-deny",
        namespace="finetune-training",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(),
        policy_types=["Ingress", "Egress"],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

full_8b_policy = k8s.networking.v1.NetworkPolicy(
    "full-8b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b",
        namespace="finetune-training",
        labels={
            "app.kubernetes.io/name": "full-8b",
            "app.kubernetes.io/part-of": "finetune",
            "app.kubernetes.io/component": "finetuning",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "training",
        },
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "full-8b",
                "app.kubernetes.io/part-of": "finetune",
            },
        ),
        policy_types=["Ingress", "Egress"],
        ingress=[
            k8s.networking.v1.NetworkPolicyIngressRuleArgs(
                from_=[
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        pod_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels={
                                "app.kubernetes.io/name": "full-8b",
                                "app.kubernetes.io/part-of": "finetune",
                            },
                        ),
                    ),
                ],
            ),
        ],
        egress=[
            dns,
            https,
            k8s.networking.v1.NetworkPolicyEgressRuleArgs(
                to=[
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        pod_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels={
                                "app.kubernetes.io/name": "full-8b",
                                "app.kubernetes.io/part-of": "finetune",
                            },
                        ),
                    ),
                ],
            ),
        ],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

lora_70b_policy = k8s.networking.v1.NetworkPolicy(
    "lora-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b",
        namespace="finetune-training",
        labels={
            "app.kubernetes.io/name": "lora-70b",
            "app.kubernetes.io/part-of": "finetune",
            "app.kubernetes.io/component": "finetuning",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "training",
        },
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "lora-70b",
                "app.kubernetes.io/part-of": "finetune",
            },
        ),
        policy_types=["Ingress", "Egress"],
        egress=[dns, https],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)
