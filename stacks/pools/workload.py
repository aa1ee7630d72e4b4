"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

# Where each workload is found.
addresses = {"documents": "http://documents.pools-research.svc:8000"}

# documents: inference of meta-llama/Llama-3.3-70B-Instruct on 12 × h200-sxm-141gb, $94.94/h
documents_labels = {
    "app.kubernetes.io/name": "documents",
    "app.kubernetes.io/part-of": "pools",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "research",
}
documents_selector = {"app.kubernetes.io/name": "documents", "app.kubernetes.io/part-of": "pools"}
documents_resources = {
    # 24 physical cores as one CPU each: their threads are not known
    "cpu": "24",
    # 16 GiB of it is shared memory
    "memory": "564Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "4",
    "rdma/rdma_shared_device_a": "4",
}

documents_account = k8s.core.v1.ServiceAccount(
    "documents",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents",
        namespace="pools-research",
        labels=documents_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

documents_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "documents-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-models",
        namespace="pools-research",
        labels=documents_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="models-rwx",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "145Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

documents_prefill_statefulset = k8s.apps.v1.StatefulSet(
    "documents-prefill",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-prefill",
        namespace="pools-research",
        labels={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "research",
            "gpuplan.dev/role": "prefill",
        },
    ),
    spec=k8s.apps.v1.StatefulSetSpecArgs(
        # each on 4 × h200-sxm-141gb; meets mean time per output token and time to first token p95
        # and requests per second and gpu memory
        replicas=2,
        selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "documents",
                "app.kubernetes.io/part-of": "pools",
                "gpuplan.dev/role": "prefill",
            },
        ),
        service_name="documents-prefill",
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
            metadata=k8s.meta.v1.ObjectMetaArgs(
                labels={
                    "app.kubernetes.io/name": "documents",
                    "app.kubernetes.io/part-of": "pools",
                    "app.kubernetes.io/component": "inference",
                    "app.kubernetes.io/managed-by": "gpuplan",
                    "gpuplan.dev/tenant": "research",
                    "gpuplan.dev/role": "prefill",
                },
            ),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="documents",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="pools-normal",
                termination_grace_period_seconds=75,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels={
                                "app.kubernetes.io/name": "documents",
                                "app.kubernetes.io/part-of": "pools",
                                "gpuplan.dev/role": "prefill",
                            },
                        ),
                    ),
                ],
                node_selector={"nvidia.com/gpu.product": "NVIDIA-H200"},
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
                            # 16.9 GiB of weights on each of 4 GPUs
                            "--tensor-parallel-size=4",
                            "--max-model-len=25600",
                            # requests at once; their KV cache takes 46.7 GiB of a GPU
                            "--max-num-seqs=120",
                            "--max-num-batched-tokens=12288",
                            # 126 GiB of 140 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # its cache is read over the fabric
                            (
                                '--kv-transfer-config={"kv_connector": "NixlConnector", "kv_role": '
                                '"kv_producer"}'
                            ),
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
                                name="VLLM_NIXL_SIDE_CHANNEL_PORT",
                                value="5600",
                            ),
                            k8s.core.v1.EnvVarArgs(
                                name="VLLM_NIXL_SIDE_CHANNEL_HOST",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    field_ref=k8s.core.v1.ObjectFieldSelectorArgs(
                                        api_version="v1",
                                        field_path="status.podIP",
                                    ),
                                ),
                            ),
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
                            requests=documents_resources,
                            limits=documents_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            read_only_root_filesystem=True,
                            capabilities=k8s.core.v1.CapabilitiesArgs(
                                drop=["ALL"],
                                # RDMA registers pinned memory
                                add=["IPC_LOCK"],
                            ),
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
                            claim_name="documents-models",
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
            cluster.tenant_research_quota,
            cluster.priority_normal_class,
            network.tenant_research_policy,
            network.documents_policy,
            documents_account,
            documents_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="5280s", update="5400s"),
    ),
)

documents_prefill_service = k8s.core.v1.Service(
    "documents-prefill",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-prefill",
        namespace="pools-research",
        labels={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "research",
            "gpuplan.dev/role": "prefill",
        },
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        # the router asks each of its pods by its name
        cluster_ip="None",
        selector={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "gpuplan.dev/role": "prefill",
        },
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

documents_prefill_poddisruptionbudget = k8s.policy.v1.PodDisruptionBudget(
    "documents-prefill",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-prefill",
        namespace="pools-research",
        labels={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "research",
            "gpuplan.dev/role": "prefill",
        },
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "documents",
                "app.kubernetes.io/part-of": "pools",
                "gpuplan.dev/role": "prefill",
            },
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

documents_decode_statefulset = k8s.apps.v1.StatefulSet(
    "documents-decode",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-decode",
        namespace="pools-research",
        labels={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "research",
            "gpuplan.dev/role": "decode",
        },
    ),
    spec=k8s.apps.v1.StatefulSetSpecArgs(
        # each on 4 × h200-sxm-141gb; meets mean time per output token and time to first token p95
        # and requests per second and gpu memory
        replicas=1,
        selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "documents",
                "app.kubernetes.io/part-of": "pools",
                "gpuplan.dev/role": "decode",
            },
        ),
        service_name="documents-decode",
        pod_management_policy="Parallel",
        update_strategy=k8s.apps.v1.StatefulSetUpdateStrategyArgs(
            # no GPU is spare: the one pod goes before its successor comes, so an update is an
            # outage, of 45 min at the worst
            type="RollingUpdate",
        ),
        persistent_volume_claim_retention_policy=k8s.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicyArgs(
            when_deleted="Retain",
            when_scaled="Retain",
        ),
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(
                labels={
                    "app.kubernetes.io/name": "documents",
                    "app.kubernetes.io/part-of": "pools",
                    "app.kubernetes.io/component": "inference",
                    "app.kubernetes.io/managed-by": "gpuplan",
                    "gpuplan.dev/tenant": "research",
                    "gpuplan.dev/role": "decode",
                },
            ),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="documents",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="pools-normal",
                termination_grace_period_seconds=75,
                node_selector={"nvidia.com/gpu.product": "NVIDIA-H200"},
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
                            # 16.9 GiB of weights on each of 4 GPUs
                            "--tensor-parallel-size=4",
                            "--max-model-len=25600",
                            # requests at once; their KV cache takes 46.7 GiB of a GPU
                            "--max-num-seqs=120",
                            "--max-num-batched-tokens=12288",
                            # 126 GiB of 140 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # prompts come from there
                            (
                                '--kv-transfer-config={"kv_connector": "NixlConnector", "kv_role": '
                                '"kv_consumer"}'
                            ),
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
                                name="VLLM_NIXL_SIDE_CHANNEL_PORT",
                                value="5600",
                            ),
                            k8s.core.v1.EnvVarArgs(
                                name="VLLM_NIXL_SIDE_CHANNEL_HOST",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    field_ref=k8s.core.v1.ObjectFieldSelectorArgs(
                                        api_version="v1",
                                        field_path="status.podIP",
                                    ),
                                ),
                            ),
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
                            requests=documents_resources,
                            limits=documents_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            read_only_root_filesystem=True,
                            capabilities=k8s.core.v1.CapabilitiesArgs(
                                drop=["ALL"],
                                # RDMA registers pinned memory
                                add=["IPC_LOCK"],
                            ),
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
                            claim_name="documents-models",
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
            cluster.tenant_research_quota,
            cluster.priority_normal_class,
            network.tenant_research_policy,
            network.documents_policy,
            documents_account,
            documents_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="5280s", update="5280s"),
    ),
)

documents_decode_service = k8s.core.v1.Service(
    "documents-decode",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-decode",
        namespace="pools-research",
        labels={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "research",
            "gpuplan.dev/role": "decode",
        },
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        # the router asks each of its pods by its name
        cluster_ip="None",
        selector={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "gpuplan.dev/role": "decode",
        },
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

k8s.apps.v1.Deployment(
    "documents-router",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-router",
        namespace="pools-research",
        labels={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "research",
            "gpuplan.dev/role": "router",
        },
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # one may be away
        replicas=2,
        selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "documents",
                "app.kubernetes.io/part-of": "pools",
                "gpuplan.dev/role": "router",
            },
        ),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            type="RollingUpdate",
            rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=1, max_unavailable=0),
        ),
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(
                labels={
                    "app.kubernetes.io/name": "documents",
                    "app.kubernetes.io/part-of": "pools",
                    "app.kubernetes.io/component": "inference",
                    "app.kubernetes.io/managed-by": "gpuplan",
                    "gpuplan.dev/tenant": "research",
                    "gpuplan.dev/role": "router",
                },
            ),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="documents",
                automount_service_account_token=False,
                enable_service_links=False,
                priority_class_name="pools-normal",
                # an answer of 800 tokens, as 95 % are at most, is finished; 30 s are the least
                termination_grace_period_seconds=45,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels={
                                "app.kubernetes.io/name": "documents",
                                "app.kubernetes.io/part-of": "pools",
                                "gpuplan.dev/role": "router",
                            },
                        ),
                    ),
                ],
                security_context=k8s.core.v1.PodSecurityContextArgs(
                    run_as_non_root=True,
                    run_as_user=65534,
                    seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault"),
                ),
                containers=[
                    k8s.core.v1.ContainerArgs(
                        name="router",
                        image="vllm/vllm-router:v0.1.17",
                        command=["vllm-router"],
                        args=[
                            "--vllm-pd-disaggregation",
                            "--kv-connector=nixl",
                            "--prefill",
                            "http://documents-prefill-0.documents-prefill.pools-research.svc:8000",
                            "--prefill",
                            "http://documents-prefill-1.documents-prefill.pools-research.svc:8000",
                            "--decode",
                            "http://documents-decode-0.documents-decode.pools-research.svc:8000",
                            "--host=0.0.0.0",
                            "--port=8000",
                            # as the plan counts: prompts and answers fall on all alike
                            "--policy=round_robin",
                            "--worker-startup-timeout-secs=3480",
                            # for 5 s at most requests fail that fall on a server which is gone
                            "--health-check-interval-secs=5",
                            "--health-check-timeout-secs=10",
                            "--health-failure-threshold=1",
                            "--health-success-threshold=1",
                            "--prometheus-host=0.0.0.0",
                            "--prometheus-port=29000",
                        ],
                        ports=[
                            k8s.core.v1.ContainerPortArgs(name="http", container_port=8000),
                            k8s.core.v1.ContainerPortArgs(name="metrics", container_port=29000),
                        ],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/liveness", port="http"),
                            period_seconds=10,
                            # it listens once a server of each kind answers
                            failure_threshold=348,
                        ),
                        readiness_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/readiness", port="http"),
                            period_seconds=10,
                        ),
                        liveness_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/liveness", port="http"),
                            period_seconds=10,
                        ),
                        lifecycle=k8s.core.v1.LifecycleArgs(
                            pre_stop=k8s.core.v1.LifecycleHandlerArgs(
                                sleep=k8s.core.v1.SleepActionArgs(seconds=15),
                            ),
                        ),
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests={"cpu": "2", "memory": "4Gi"},
                            limits={"cpu": "2", "memory": "4Gi"},
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
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
            cluster.tenant_research_quota,
            cluster.priority_normal_class,
            network.tenant_research_policy,
            network.documents_policy,
            documents_account,
            documents_models_claim,
            documents_prefill_statefulset,
            documents_prefill_service,
            documents_prefill_poddisruptionbudget,
            documents_decode_statefulset,
            documents_decode_service,
        ],
    ),
)

k8s.core.v1.Service(
    "documents",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents",
        namespace="pools-research",
        labels=documents_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "gpuplan.dev/role": "router",
        },
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "documents-router",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="documents-router",
        namespace="pools-research",
        labels={
            "app.kubernetes.io/name": "documents",
            "app.kubernetes.io/part-of": "pools",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "research",
            "gpuplan.dev/role": "router",
        },
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(
            match_labels={
                "app.kubernetes.io/name": "documents",
                "app.kubernetes.io/part-of": "pools",
                "gpuplan.dev/role": "router",
            },
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)
