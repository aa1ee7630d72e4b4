"""Who may talk to whom: nobody, then what each workload needs."""

import pulumi
import pulumi_kubernetes as k8s

import cluster

tenant_legal_policy = k8s.networking.v1.NetworkPolicy(
    "tenant-legal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="default-deny",
        namespace="nvl72-legal",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(),
        policy_types=["Ingress", "Egress"],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_legal_namespace],
    ),
)

reader_policy = k8s.networking.v1.NetworkPolicy(
    "reader",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader",
        namespace="nvl72-legal",
        labels={
            "app.kubernetes.io/name": "reader",
            "app.kubernetes.io/part-of": "nvl72",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "legal",
        },
    ),
    spec=k8s.networking.v1.NetworkPolicySpecArgs(
        pod_selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={"app.kubernetes.io/name": "reader", "app.kubernetes.io/part-of": "nvl72"},
        ),
        policy_types=["Ingress", "Egress"],
        ingress=[
            k8s.networking.v1.NetworkPolicyIngressRuleArgs(
                from_=[
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        pod_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels={
                                "app.kubernetes.io/name": "reader",
                                "app.kubernetes.io/part-of": "nvl72",
                            },
                        ),
                    ),
                ],
            ),
            k8s.networking.v1.NetworkPolicyIngressRuleArgs(
                # the tenant's own pods, and namespaces labelled client.gpuplan.dev/nvl72-legal=true
                from_=[
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        pod_selector=k8s.meta.v1.LabelSelectorArgs(),
                    ),
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        namespace_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels={"client.gpuplan.dev/nvl72-legal": "true"},
                        ),
                    ),
                ],
                ports=[k8s.networking.v1.NetworkPolicyPortArgs(protocol="TCP", port=8000)],
            ),
        ],
        egress=[
            k8s.networking.v1.NetworkPolicyEgressRuleArgs(
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
            ),
            k8s.networking.v1.NetworkPolicyEgressRuleArgs(
                # weights and data over HTTPS, but not the cloud's metadata
                to=[
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        ip_block=k8s.networking.v1.IPBlockArgs(
                            cidr="0.0.0.0/0",
                            except_=["169.254.0.0/16"],
                        ),
                    ),
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        ip_block=k8s.networking.v1.IPBlockArgs(
                            cidr="::/0",
                            except_=["fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"],
                        ),
                    ),
                ],
                ports=[k8s.networking.v1.NetworkPolicyPortArgs(protocol="TCP", port=443)],
            ),
            k8s.networking.v1.NetworkPolicyEgressRuleArgs(
                to=[
                    k8s.networking.v1.NetworkPolicyPeerArgs(
                        pod_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels={
                                "app.kubernetes.io/name": "reader",
                                "app.kubernetes.io/part-of": "nvl72",
                            },
                        ),
                    ),
                ],
            ),
        ],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_legal_namespace],
    ),
)
