"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

# Where each workload is found.
addresses = {"reasoner": "http://reasoner.deepseek-v3-research.svc:8000"}

# reasoner: inference of deepseek-ai/DeepSeek-V3 on 8 × h200-sxm-141gb, $63.30/h
reasoner_labels = {
    "app.kubernetes.io/name": "reasoner",
    "app.kubernetes.io/part-of": "deepseek-v3",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "research",
}
reasoner_selector = {
    "app.kubernetes.io/name": "reasoner",
    "app.kubernetes.io/part-of": "deepseek-v3",
}
reasoner_resources = {
    # 48 physical cores of 2 threads
    "cpu": "96",
    # 16 GiB of it is shared memory
    "memory": "1128Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
}

reasoner_account = k8s.core.v1.ServiceAccount(
    "reasoner",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reasoner",
        namespace="deepseek-v3-research",
        labels=reasoner_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

reasoner_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "reasoner-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reasoner-models",
        namespace="deepseek-v3-research",
        labels=reasoner_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "690Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "reasoner",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reasoner",
        namespace="deepseek-v3-research",
        labels=reasoner_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 8 × h200-sxm-141gb; meets mean time per output token and time to first token p95
        # and requests per second and gpu memory
        replicas=1,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=reasoner_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            # no GPU is spare: the one pod goes before its successor comes, so an update is an
            # outage, of 135 min at the worst
            type="Recreate",
        ),
        # the start-up probe's time, and before it 1800 s for the image, the volume and the node's
        # driver
        progress_deadline_seconds=15900,
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=reasoner_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="reasoner",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="deepseek-v3-normal",
                termination_grace_period_seconds=133,
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-H200",
                    "node.kubernetes.io/instance-type": "p5en.48xlarge",
                },
                affinity=k8s.core.v1.AffinityArgs(
                    pod_anti_affinity=k8s.core.v1.PodAntiAffinityArgs(
                        # isolation 'node': no pod of another tenant on the same node
                        required_during_scheduling_ignored_during_execution=[
                            k8s.core.v1.PodAffinityTermArgs(
                                label_selector=k8s.meta.v1.LabelSelectorArgs(
                                    match_expressions=[
                                        k8s.meta.v1.LabelSelectorRequirementArgs(
                                            key="app.kubernetes.io/managed-by",
                                            operator="In",
                                            values=["gpuplan"],
                                        ),
                                        k8s.meta.v1.LabelSelectorRequirementArgs(
                                            key="gpuplan.dev/tenant",
                                            operator="NotIn",
                                            values=["research"],
                                        ),
                                    ],
                                ),
                                namespace_selector=k8s.meta.v1.LabelSelectorArgs(),
                                topology_key="kubernetes.io/hostname",
                            ),
                        ],
                    ),
                ),
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
                            "deepseek-ai/DeepSeek-V3",
                            "--revision=e815299b0bcbac849fa540c768ef21845365c9eb",
                            "--host=0.0.0.0",
                            "--port=8000",
                            # 79.2 GiB of weights on each of 8 GPUs
                            "--tensor-parallel-size=8",
                            "--max-model-len=16384",
                            # requests at once; their KV cache takes 38.5 GiB of a GPU
                            "--max-num-seqs=184",
                            "--max-num-batched-tokens=8192",
                            # 126 GiB of 140 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # an answer of 2,000 tokens, as 95 % are at most, is finished
                            "--shutdown-timeout=88",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HOME", value="/scratch"),
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            # 627 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=1410,
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
                            requests=reasoner_resources,
                            limits=reasoner_resources,
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
                            claim_name="reasoner-models",
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
            network.reasoner_policy,
            reasoner_account,
            reasoner_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="15900s", update="15900s"),
    ),
)

k8s.core.v1.Service(
    "reasoner",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reasoner",
        namespace="deepseek-v3-research",
        labels=reasoner_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=reasoner_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)
