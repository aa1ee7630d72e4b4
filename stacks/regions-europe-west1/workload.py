"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {"assistant": "http://assistant.regions-europe-west1-support.svc:8000"}

# assistant: inference of meta-llama/Llama-3.1-8B-Instruct on 4 × l4, $3.76/h
assistant_labels = {
    "app.kubernetes.io/name": "assistant",
    "app.kubernetes.io/part-of": "regions-europe-west1",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
assistant_selector = {
    "app.kubernetes.io/name": "assistant",
    "app.kubernetes.io/part-of": "regions-europe-west1",
}
assistant_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 7 GiB of it is shared memory
    "memory": "28Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

assistant_account = k8s.core.v1.ServiceAccount(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="regions-europe-west1-support",
        labels=assistant_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

assistant_secret = k8s.core.v1.Secret(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="regions-europe-west1-support",
        labels=assistant_labels,
    ),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

k8s.apps.v1.StatefulSet(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="regions-europe-west1-support",
        labels=assistant_labels,
    ),
    spec=k8s.apps.v1.StatefulSetSpecArgs(
        # each on 1 × l4; meets mean time per output token and time to first token p95 and requests
        # per second and gpu memory
        replicas=4,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=assistant_selector),
        service_name="assistant",
        pod_management_policy="Parallel",
        update_strategy=k8s.apps.v1.StatefulSetUpdateStrategyArgs(
            # no GPU is spare: one pod goes before one comes
            type="RollingUpdate",
        ),
        persistent_volume_claim_retention_policy=k8s.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicyArgs(
            when_deleted="Retain",
            when_scaled="Retain",
        ),
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=assistant_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="assistant",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="regions-europe-west1-normal",
                termination_grace_period_seconds=81,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels=assistant_selector,
                        ),
                    ),
                ],
                node_selector={
                    "gpuplan.dev/stack": "regions-europe-west1",
                    "gpuplan.dev/pool": "l4-x1",
                    "node.kubernetes.io/instance-type": "g2-standard-8",
                },
                tolerations=[
                    k8s.core.v1.TolerationArgs(
                        key="nvidia.com/gpu",
                        operator="Exists",
                        effect="NoSchedule",
                    ),
                ],
                security_context=k8s.core.v1.PodSecurityContextArgs(
                    seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault"),
                ),
                containers=[
                    k8s.core.v1.ContainerArgs(
                        name="engine",
                        image="vllm/vllm-openai:v0.27.1",
                        command=["vllm", "serve"],
                        args=[
                            "meta-llama/Llama-3.1-8B-Instruct",
                            "--revision=0e9e39f249a16976918f6564b8830bc894c89659",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--quantization=fp8",
                            # 8.46 GiB of weights
                            "--tensor-parallel-size=1",
                            "--max-model-len=6144",
                            # requests at once; their KV cache takes 5.76 GiB of a GPU
                            "--max-num-seqs=40",
                            "--max-num-batched-tokens=2048",
                            # 19.7 GiB of 22.4 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # an answer of 600 tokens, as 95 % are at most, is finished
                            "--shutdown-timeout=36",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HOME", value="/scratch"),
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_TOKEN",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    secret_key_ref=k8s.core.v1.SecretKeySelectorArgs(
                                        name="assistant",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            # 15 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=96,
                        ),
                        readiness_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                        ),
                        liveness_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            timeout_seconds=10,
                            failure_threshold=6,
                            # what hangs has no one to drain
                            termination_grace_period_seconds=10,
                        ),
                        lifecycle=k8s.core.v1.LifecycleArgs(
                            pre_stop=k8s.core.v1.LifecycleHandlerArgs(
                                sleep=k8s.core.v1.SleepActionArgs(
                                    # until no new requests come; then the engine drains
                                    seconds=15,
                                ),
                            ),
                        ),
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=assistant_resources,
                            limits=assistant_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            read_only_root_filesystem=True,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
                        ),
                        volume_mounts=[
                            k8s.core.v1.VolumeMountArgs(name="models", mount_path="/models"),
                            k8s.core.v1.VolumeMountArgs(name="scratch", mount_path="/scratch"),
                            k8s.core.v1.VolumeMountArgs(name="tmp", mount_path="/tmp"),
                            k8s.core.v1.VolumeMountArgs(name="shm", mount_path="/dev/shm"),
                        ],
                    ),
                ],
                volumes=[
                    k8s.core.v1.VolumeArgs(
                        name="scratch",
                        empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(size_limit="50Gi"),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="tmp",
                        empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(size_limit="50Gi"),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="shm",
                        empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(
                            medium="Memory",
                            # ranks exchange data through /dev/shm; the default of 64 MiB is too
                            # small
                            size_limit="7Gi",
                        ),
                    ),
                ],
            ),
        ),
        volume_claim_templates=[
            k8s.core.v1.PersistentVolumeClaimArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(name="models", labels=assistant_selector),
                spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
                    access_modes=["ReadWriteOnce"],
                    storage_class_name="hyperdisk-balanced",
                    resources=k8s.core.v1.VolumeResourceRequirementsArgs(
                        requests={"storage": "17Gi"},
                    ),
                ),
            ),
        ],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            cluster.tenant_support_quota,
            cluster.priority_normal_class,
            network.tenant_support_policy,
            network.assistant_policy,
            assistant_account,
            assistant_secret,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2760s", update="6000s"),
    ),
)

k8s.core.v1.Service(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="regions-europe-west1-support",
        labels=assistant_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=assistant_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="regions-europe-west1-support",
        labels=assistant_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=assistant_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)
