"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

# Where each workload is found.
addresses = {"assistant": "http://assistant.assistant-70b-platform.svc:8000"}

# assistant: inference of meta-llama/Llama-3.3-70B-Instruct on 6 × h100-sxm-80gb, $41.28/h
assistant_labels = {
    "app.kubernetes.io/name": "assistant",
    "app.kubernetes.io/part-of": "assistant-70b",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "platform",
}
assistant_selector = {
    "app.kubernetes.io/name": "assistant",
    "app.kubernetes.io/part-of": "assistant-70b",
}
assistant_resources = {
    # 12 physical cores of 2 threads
    "cpu": "24",
    # 16 GiB of it is shared memory
    "memory": "160Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "2",
}

assistant_account = k8s.core.v1.ServiceAccount(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="assistant-70b-platform",
        labels=assistant_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_platform_namespace],
    ),
)

assistant_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "assistant-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant-models",
        namespace="assistant-70b-platform",
        labels=assistant_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="models-rwx",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "145Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_platform_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="assistant-70b-platform",
        labels=assistant_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 2 × h100-sxm-80gb; meets mean time per output token and time to first token p95
        # and requests per second and gpu memory
        replicas=3,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=assistant_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            type="RollingUpdate",
            # no GPU is spare: one pod goes before one comes
            rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=0, max_unavailable=1),
        ),
        # the start-up probe's time, and before it 1800 s for the image, the volume and the node's
        # driver
        progress_deadline_seconds=5280,
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=assistant_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="assistant",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="assistant-70b-high",
                termination_grace_period_seconds=75,
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
                    "gpuplan.dev/stack": "assistant-70b",
                    "gpuplan.dev/pool": "h100-sxm-80gb",
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
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
                            "meta-llama/Llama-3.3-70B-Instruct",
                            "--revision=6f6073b423013f6a7d4d9f39144961bfbfbc386b",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--quantization=fp8",
                            # 33.8 GiB of weights on each of 2 GPUs
                            "--tensor-parallel-size=2",
                            "--max-model-len=10240",
                            # requests at once; their KV cache takes 18.8 GiB of a GPU
                            "--max-num-seqs=64",
                            "--max-num-batched-tokens=8192",
                            # 71.3 GiB of 79.6 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # an answer of 800 tokens, as 95 % are at most, is finished; 30 s are
                            # the least
                            "--shutdown-timeout=30",
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
                                        name="huggingface",
                                        key="token",
                                    ),
                                ),
                            ),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            # 131 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=348,
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
                        name="models",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="assistant-models",
                        ),
                    ),
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
                            size_limit="16Gi",
                        ),
                    ),
                ],
            ),
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_platform_quota,
            cluster.priority_high_class,
            network.tenant_platform_policy,
            network.assistant_policy,
            assistant_account,
            assistant_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="5280s", update="8100s"),
    ),
)

k8s.core.v1.Service(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="assistant-70b-platform",
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
        depends_on=[cluster.tenant_platform_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="assistant-70b-platform",
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
        depends_on=[cluster.tenant_platform_namespace],
    ),
)
