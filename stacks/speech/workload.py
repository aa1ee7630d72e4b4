"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {
    "calls": "http://calls.speech-support.svc:8000",
    "archive": "job speech-support/archive",
}

# calls: inference of openai/whisper-large-v3 on 2 × l4, $1.71/h
calls_labels = {
    "app.kubernetes.io/name": "calls",
    "app.kubernetes.io/part-of": "speech",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
calls_selector = {"app.kubernetes.io/name": "calls", "app.kubernetes.io/part-of": "speech"}
calls_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 7 GiB of it is shared memory
    "memory": "28Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

calls_account = k8s.core.v1.ServiceAccount(
    "calls",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="calls",
        namespace="speech-support",
        labels=calls_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

calls_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "calls-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="calls-models",
        namespace="speech-support",
        labels=calls_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "4Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "calls",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="calls",
        namespace="speech-support",
        labels=calls_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × l4; meets mean request latency and requests per second and gpu memory
        replicas=2,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=calls_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            type="RollingUpdate",
            # no GPU is spare: one pod goes before one comes
            rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=0, max_unavailable=1),
        ),
        # the start-up probe's time, and before it 1800 s for the image, the volume and the node's
        # driver
        progress_deadline_seconds=2520,
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=calls_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="calls",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="speech-normal",
                termination_grace_period_seconds=75,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=calls_selector),
                    ),
                ],
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-L4",
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
                        image="registry.example.org/vllm-audio:v0.27.1",
                        command=["vllm", "serve"],
                        args=[
                            "openai/whisper-large-v3",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--dtype=float16",
                            # 2.87 GiB of weights
                            "--tensor-parallel-size=1",
                            "--max-model-len=448",
                            # requests at once; their KV cache takes 12.8 GiB of a GPU
                            "--max-num-seqs=43",
                            "--max-num-batched-tokens=2048",
                            # 20.1 GiB of 22.4 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # as long as a request takes: those at work are finished; 30 s are the
                            # least
                            "--shutdown-timeout=30",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            # 2.87 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=72,
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
                            requests=calls_resources,
                            limits=calls_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
                        ),
                        volume_mounts=[
                            k8s.core.v1.VolumeMountArgs(name="models", mount_path="/models"),
                            k8s.core.v1.VolumeMountArgs(name="scratch", mount_path="/scratch"),
                            k8s.core.v1.VolumeMountArgs(name="shm", mount_path="/dev/shm"),
                        ],
                    ),
                ],
                volumes=[
                    k8s.core.v1.VolumeArgs(
                        name="models",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="calls-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="scratch",
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
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_support_quota,
            cluster.priority_normal_class,
            network.tenant_support_policy,
            network.calls_policy,
            calls_account,
            calls_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2520s", update="2640s"),
    ),
)

k8s.core.v1.Service(
    "calls",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="calls",
        namespace="speech-support",
        labels=calls_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=calls_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "calls",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="calls",
        namespace="speech-support",
        labels=calls_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=calls_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

# archive: batch of openai/whisper-large-v3-turbo on 2 × l4, $1.71/h
archive_labels = {
    "app.kubernetes.io/name": "archive",
    "app.kubernetes.io/part-of": "speech",
    "app.kubernetes.io/component": "batch",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
archive_selector = {"app.kubernetes.io/name": "archive", "app.kubernetes.io/part-of": "speech"}
archive_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 7 GiB of it is shared memory
    "memory": "28Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

archive_account = k8s.core.v1.ServiceAccount(
    "archive",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive",
        namespace="speech-support",
        labels=archive_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

archive_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "archive-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive-models",
        namespace="speech-support",
        labels=archive_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "2Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

archive_requests_claim = k8s.core.v1.PersistentVolumeClaim(
    "archive-requests",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive-requests",
        namespace="speech-support",
        labels=archive_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "1181Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

archive_results_claim = k8s.core.v1.PersistentVolumeClaim(
    "archive-results",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive-results",
        namespace="speech-support",
        labels=archive_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "1Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.batch.v1.Job(
    "archive",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive",
        namespace="speech-support",
        labels=archive_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.batch.v1.JobSpecArgs(
        # no GPU is taken until its requests are there
        suspend=config.require_bool("hold-archive"),
        completion_mode="Indexed",
        completions=2,
        parallelism=2,
        # 3 failures of every pod
        backoff_limit=6,
        pod_failure_policy=k8s.batch.v1.PodFailurePolicyArgs(
            rules=[
                k8s.batch.v1.PodFailurePolicyRuleArgs(
                    action="Ignore",
                    # a pod that was preempted or drained has not failed
                    on_pod_conditions=[
                        k8s.batch.v1.PodFailurePolicyOnPodConditionsPatternArgs(
                            type="DisruptionTarget",
                            status="True",
                        ),
                    ],
                ),
            ],
        ),
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=archive_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="archive",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="speech-normal",
                restart_policy="Never",
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-L4",
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
                        image="registry.example.org/vllm-audio:v0.27.1",
                        command=["python3", "/requests/transcribe.py"],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=archive_resources,
                            limits=archive_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
                        ),
                        volume_mounts=[
                            k8s.core.v1.VolumeMountArgs(name="models", mount_path="/models"),
                            k8s.core.v1.VolumeMountArgs(name="requests", mount_path="/requests"),
                            k8s.core.v1.VolumeMountArgs(name="results", mount_path="/results"),
                            k8s.core.v1.VolumeMountArgs(name="scratch", mount_path="/scratch"),
                            k8s.core.v1.VolumeMountArgs(name="shm", mount_path="/dev/shm"),
                        ],
                    ),
                ],
                volumes=[
                    k8s.core.v1.VolumeArgs(
                        name="models",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="archive-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="requests",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="archive-requests",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="results",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="archive-results",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="scratch",
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
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_support_quota,
            cluster.priority_normal_class,
            network.tenant_support_policy,
            network.archive_policy,
            archive_account,
            archive_models_claim,
            archive_requests_claim,
            archive_results_claim,
        ],
        delete_before_replace=True,
    ),
)
