"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {
    "tags": "http://tags.vision-uploads.svc:8000",
    "search": "http://search.vision-uploads.svc:8000",
    "archive": "job vision-uploads/archive",
    "learn": "job vision-uploads/learn",
}

# tags: inference of google/vit-large-patch16-224 on 3 × l4, $2.93/h
tags_labels = {
    "app.kubernetes.io/name": "tags",
    "app.kubernetes.io/part-of": "vision",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "uploads",
}
tags_selector = {"app.kubernetes.io/name": "tags", "app.kubernetes.io/part-of": "vision"}
tags_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 7 GiB of it is shared memory
    "memory": "28Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

tags_account = k8s.core.v1.ServiceAccount(
    "tags",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tags",
        namespace="vision-uploads",
        labels=tags_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

tags_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "tags-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tags-models",
        namespace="vision-uploads",
        labels=tags_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "2Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "tags",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tags",
        namespace="vision-uploads",
        labels=tags_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × l4; meets request latency p95 and requests per second and gpu memory
        replicas=3,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=tags_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            type="RollingUpdate",
            # no GPU is spare: one pod goes before one comes
            rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=0, max_unavailable=1),
        ),
        # the start-up probe's time, and before it 1800 s for the image, the volume and the node's
        # driver
        progress_deadline_seconds=2460,
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=tags_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="tags",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="vision-normal",
                termination_grace_period_seconds=75,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=tags_selector),
                    ),
                ],
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-L4",
                    "node.kubernetes.io/instance-type": "g6.2xlarge",
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
                        image="nvcr.io/nvidia/tritonserver:26.10-py3",
                        command=["tritonserver"],
                        args=[
                            "--model-repository=/models/triton",
                            "--http-port=8000",
                            # images of a step: what memory was sized for
                            "--backend-config=onnxruntime,default-max-batch-size=256",
                            # as long as a request takes: those at work are finished; 30 s are the
                            # least
                            "--exit-timeout-secs=30",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(
                                path="/v2/health/ready",
                                port="http",
                            ),
                            period_seconds=10,
                            # 1.13 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=66,
                        ),
                        readiness_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(
                                path="/v2/health/ready",
                                port="http",
                            ),
                            period_seconds=10,
                        ),
                        liveness_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(
                                path="/v2/health/ready",
                                port="http",
                            ),
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
                            requests=tags_resources,
                            limits=tags_resources,
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
                            claim_name="tags-models",
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
            cluster.tenant_uploads_quota,
            cluster.priority_normal_class,
            network.tenant_uploads_policy,
            network.tags_policy,
            tags_account,
            tags_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2460s", update="3960s"),
    ),
)

k8s.core.v1.Service(
    "tags",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tags",
        namespace="vision-uploads",
        labels=tags_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=tags_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "tags",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tags",
        namespace="vision-uploads",
        labels=tags_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=tags_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

# search: inference of openai/clip-vit-large-patch14 on 1 × t4, $0.75/h
search_labels = {
    "app.kubernetes.io/name": "search",
    "app.kubernetes.io/part-of": "vision",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "uploads",
}
search_selector = {"app.kubernetes.io/name": "search", "app.kubernetes.io/part-of": "vision"}
search_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 7 GiB of it is shared memory
    "memory": "28Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

search_account = k8s.core.v1.ServiceAccount(
    "search",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="search",
        namespace="vision-uploads",
        labels=search_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

search_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "search-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="search-models",
        namespace="vision-uploads",
        labels=search_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "2Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "search",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="search",
        namespace="vision-uploads",
        labels=search_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × t4; meets mean request latency and requests per second and gpu memory
        replicas=1,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=search_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            # no GPU is spare: the one pod goes before its successor comes, so an update is an
            # outage, of 22 min at the worst
            type="Recreate",
        ),
        # the start-up probe's time, and before it 1800 s for the image, the volume and the node's
        # driver
        progress_deadline_seconds=2460,
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=search_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="search",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="vision-normal",
                termination_grace_period_seconds=75,
                node_selector={
                    "nvidia.com/gpu.product": "Tesla-T4",
                    "node.kubernetes.io/instance-type": "g4dn.2xlarge",
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
                            "openai/clip-vit-large-patch14",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--dtype=float16",
                            # images are read, none is written
                            "--runner=pooling",
                            # images of a step
                            "--max-num-seqs=256",
                            # 13.5 GiB of 15 GiB
                            "--gpu-memory-utilization=0.9",
                            # as long as a request takes: those at work are finished; 30 s are the
                            # least
                            "--shutdown-timeout=30",
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
                            # 1.59 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=66,
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
                            requests=search_resources,
                            limits=search_resources,
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
                            claim_name="search-models",
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
            cluster.tenant_uploads_quota,
            cluster.priority_normal_class,
            network.tenant_uploads_policy,
            network.search_policy,
            search_account,
            search_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2460s", update="2460s"),
    ),
)

k8s.core.v1.Service(
    "search",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="search",
        namespace="vision-uploads",
        labels=search_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=search_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

# archive: batch of facebook/dinov2-large on 5 × t4, $3.76/h
archive_labels = {
    "app.kubernetes.io/name": "archive",
    "app.kubernetes.io/part-of": "vision",
    "app.kubernetes.io/component": "batch",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "uploads",
}
archive_selector = {"app.kubernetes.io/name": "archive", "app.kubernetes.io/part-of": "vision"}
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
        namespace="vision-uploads",
        labels=archive_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

archive_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "archive-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive-models",
        namespace="vision-uploads",
        labels=archive_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "2Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

archive_requests_claim = k8s.core.v1.PersistentVolumeClaim(
    "archive-requests",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive-requests",
        namespace="vision-uploads",
        labels=archive_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "43948Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

archive_results_claim = k8s.core.v1.PersistentVolumeClaim(
    "archive-results",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive-results",
        namespace="vision-uploads",
        labels=archive_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "966Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.batch.v1.Job(
    "archive",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="archive",
        namespace="vision-uploads",
        labels=archive_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.batch.v1.JobSpecArgs(
        # no GPU is taken until its requests are there
        suspend=config.require_bool("hold-archive"),
        completion_mode="Indexed",
        completions=5,
        parallelism=5,
        # 3 failures of every pod
        backoff_limit=15,
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
                priority_class_name="vision-normal",
                restart_policy="Never",
                node_selector={
                    "nvidia.com/gpu.product": "Tesla-T4",
                    "node.kubernetes.io/instance-type": "g4dn.2xlarge",
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
                        image="nvcr.io/nvidia/tritonserver:26.10-py3",
                        command=["python3", "/requests/embed.py"],
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
            cluster.tenant_uploads_quota,
            cluster.priority_normal_class,
            network.tenant_uploads_policy,
            network.archive_policy,
            archive_account,
            archive_models_claim,
            archive_requests_claim,
            archive_results_claim,
        ],
        delete_before_replace=True,
    ),
)

# learn: finetuning of google/vit-large-patch16-224 on 8 × h100-sxm-80gb, $55.04/h
learn_labels = {
    "app.kubernetes.io/name": "learn",
    "app.kubernetes.io/part-of": "vision",
    "app.kubernetes.io/component": "finetuning",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "uploads",
}
learn_selector = {"app.kubernetes.io/name": "learn", "app.kubernetes.io/part-of": "vision"}
learn_resources = {
    # 48 physical cores of 2 threads
    "cpu": "96",
    # 16 GiB of it is shared memory
    "memory": "640Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
}

learn_account = k8s.core.v1.ServiceAccount(
    "learn",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="learn",
        namespace="vision-uploads",
        labels=learn_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
    ),
)

learn_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "learn-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="learn-models",
        namespace="vision-uploads",
        labels=learn_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "2Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

learn_checkpoints_claim = k8s.core.v1.PersistentVolumeClaim(
    "learn-checkpoints",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="learn-checkpoints",
        namespace="vision-uploads",
        labels=learn_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "12Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

learn_dataset_claim = k8s.core.v1.PersistentVolumeClaim(
    "learn-dataset",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="learn-dataset",
        namespace="vision-uploads",
        labels=learn_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "154Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_uploads_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.batch.v1.Job(
    "learn",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="learn",
        namespace="vision-uploads",
        labels=learn_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.batch.v1.JobSpecArgs(
        completion_mode="Indexed",
        completions=1,
        parallelism=1,
        # 3 failures of every pod
        backoff_limit=3,
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=learn_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="learn",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="vision-normal",
                restart_policy="Never",
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                    "node.kubernetes.io/instance-type": "p5.48xlarge",
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
                        image="pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
                        command=["torchrun", "--nproc-per-node=8", "/data/train.py"],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_DATASETS_CACHE",
                                value="/data/datasets",
                            ),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=learn_resources,
                            limits=learn_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
                        ),
                        volume_mounts=[
                            k8s.core.v1.VolumeMountArgs(name="models", mount_path="/models"),
                            k8s.core.v1.VolumeMountArgs(
                                name="checkpoints",
                                mount_path="/checkpoints",
                            ),
                            k8s.core.v1.VolumeMountArgs(name="dataset", mount_path="/data"),
                            k8s.core.v1.VolumeMountArgs(name="scratch", mount_path="/scratch"),
                            k8s.core.v1.VolumeMountArgs(name="shm", mount_path="/dev/shm"),
                        ],
                    ),
                ],
                volumes=[
                    k8s.core.v1.VolumeArgs(
                        name="models",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="learn-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="checkpoints",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="learn-checkpoints",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="dataset",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="learn-dataset",
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
            cluster.tenant_uploads_quota,
            cluster.priority_normal_class,
            network.tenant_uploads_policy,
            network.learn_policy,
            learn_account,
            learn_models_claim,
            learn_checkpoints_claim,
            learn_dataset_claim,
        ],
        delete_before_replace=True,
    ),
)
