"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {
    "embedder": "http://embedder.search.svc:8000",
    "reranker": "http://reranker.search.svc:8000",
    "corpus": "job search/corpus",
}

# embedder: inference of BAAI/bge-m3 on 1 × l4, $0.98/h
embedder_labels = {
    "app.kubernetes.io/name": "embedder",
    "app.kubernetes.io/part-of": "search",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "search",
}
embedder_selector = {"app.kubernetes.io/name": "embedder", "app.kubernetes.io/part-of": "search"}
embedder_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 7 GiB of it is shared memory
    "memory": "28Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

embedder_account = k8s.core.v1.ServiceAccount(
    "embedder",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="embedder",
        namespace="search",
        labels=embedder_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
    ),
)

embedder_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "embedder-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="embedder-models",
        namespace="search",
        labels=embedder_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "3Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "embedder",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="embedder",
        namespace="search",
        labels=embedder_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × l4; meets request latency p95 and requests per second and gpu memory
        replicas=1,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=embedder_selector),
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=embedder_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="embedder",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="search-normal",
                termination_grace_period_seconds=75,
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
                        image="vllm/vllm-openai:v0.27.1",
                        command=["vllm", "serve"],
                        args=[
                            "BAAI/bge-m3",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--dtype=bfloat16",
                            # texts are read, none is written
                            "--runner=pooling",
                            "--convert=embed",
                            # 1.06 GiB of weights
                            "--tensor-parallel-size=1",
                            "--max-model-len=512",
                            # texts at once: the tokens of a step are taken before all places are
                            "--max-num-seqs=256",
                            "--max-num-batched-tokens=2048",
                            # 20.1 GiB of 22.4 GiB
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
                            # 2.12 GiB of published weights to download once and to read, both at no
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
                            requests=embedder_resources,
                            limits=embedder_resources,
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
                            claim_name="embedder-models",
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
            cluster.tenant_search_quota,
            cluster.priority_normal_class,
            network.tenant_search_policy,
            network.embedder_policy,
            embedder_account,
            embedder_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2460s", update="2460s"),
    ),
)

k8s.core.v1.Service(
    "embedder",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="embedder",
        namespace="search",
        labels=embedder_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=embedder_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
    ),
)

# reranker: inference of BAAI/bge-reranker-v2-m3 on 2 × l40s, $4.48/h
reranker_labels = {
    "app.kubernetes.io/name": "reranker",
    "app.kubernetes.io/part-of": "search",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "search",
}
reranker_selector = {"app.kubernetes.io/name": "reranker", "app.kubernetes.io/part-of": "search"}
reranker_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 11 GiB of it is shared memory
    "memory": "45Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

reranker_account = k8s.core.v1.ServiceAccount(
    "reranker",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reranker",
        namespace="search",
        labels=reranker_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
    ),
)

reranker_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "reranker-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reranker-models",
        namespace="search",
        labels=reranker_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "3Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "reranker",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reranker",
        namespace="search",
        labels=reranker_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × l40s; meets request latency p95 and requests per second and gpu memory
        replicas=2,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=reranker_selector),
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=reranker_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="reranker",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="search-normal",
                termination_grace_period_seconds=75,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels=reranker_selector,
                        ),
                    ),
                ],
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-L40S",
                    "node.kubernetes.io/instance-type": "g6e.2xlarge",
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
                        image="ghcr.io/huggingface/text-embeddings-inference:cuda-1.9.3",
                        args=[
                            "--model-id=BAAI/bge-reranker-v2-m3",
                            "--hostname=0.0.0.0",
                            "--port=8000",
                            "--dtype=float16",
                            # 1.06 GiB of weights
                            "--max-batch-tokens=16384",
                            # twice those that run, at least
                            "--max-concurrent-requests=512",
                            "--max-client-batch-size=50",
                            "--auto-truncate=false",
                            # the image's own variable names /data
                            "--huggingface-hub-cache=/models/hub",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HOME", value="/scratch"),
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            # 2.12 GiB of published weights to download once and to read, both at no
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
                                    # the engine drops its requests: as long as a request takes:
                                    # those at work are finished; 30 s are the least
                                    seconds=45,
                                ),
                            ),
                        ),
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=reranker_resources,
                            limits=reranker_resources,
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
                            claim_name="reranker-models",
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
                            size_limit="11Gi",
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
            cluster.tenant_search_quota,
            cluster.priority_normal_class,
            network.tenant_search_policy,
            network.reranker_policy,
            reranker_account,
            reranker_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2460s", update="2640s"),
    ),
)

k8s.core.v1.Service(
    "reranker",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reranker",
        namespace="search",
        labels=reranker_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=reranker_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "reranker",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reranker",
        namespace="search",
        labels=reranker_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=reranker_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
    ),
)

# corpus: batch of BAAI/bge-m3 on 1 × l40s, $2.24/h
corpus_labels = {
    "app.kubernetes.io/name": "corpus",
    "app.kubernetes.io/part-of": "search",
    "app.kubernetes.io/component": "batch",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "search",
}
corpus_selector = {"app.kubernetes.io/name": "corpus", "app.kubernetes.io/part-of": "search"}
corpus_resources = {
    # 2 physical cores of 2 threads
    "cpu": "4",
    # 11 GiB of it is shared memory
    "memory": "45Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

corpus_account = k8s.core.v1.ServiceAccount(
    "corpus",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="corpus", namespace="search", labels=corpus_labels),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
    ),
)

corpus_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "corpus-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="corpus-models",
        namespace="search",
        labels=corpus_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "3Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

corpus_requests_claim = k8s.core.v1.PersistentVolumeClaim(
    "corpus-requests",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="corpus-requests",
        namespace="search",
        labels=corpus_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "6Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

corpus_results_claim = k8s.core.v1.PersistentVolumeClaim(
    "corpus-results",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="corpus-results",
        namespace="search",
        labels=corpus_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "49Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_search_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.batch.v1.Job(
    "corpus",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="corpus",
        namespace="search",
        labels=corpus_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.batch.v1.JobSpecArgs(
        # no GPU is taken until its requests are there
        suspend=config.require_bool("hold-corpus"),
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=corpus_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="corpus",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="search-normal-preemptible",
                restart_policy="Never",
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-L40S",
                    "node.kubernetes.io/instance-type": "g6e.2xlarge",
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
                        command=["vllm", "run-batch"],
                        args=[
                            "--input-file=/requests/requests-$(JOB_COMPLETION_INDEX).jsonl",
                            "--output-file=/results/results-$(JOB_COMPLETION_INDEX).jsonl",
                            "--model=BAAI/bge-m3",
                            "--dtype=bfloat16",
                            # texts are read, none is written
                            "--runner=pooling",
                            "--convert=embed",
                            # 1.06 GiB of weights
                            "--tensor-parallel-size=1",
                            "--max-model-len=2048",
                            # texts at once: the tokens of a step are taken before all places are
                            "--max-num-seqs=256",
                            "--max-num-batched-tokens=2048",
                            # 40.5 GiB of 45 GiB
                            "--gpu-memory-utilization=0.9",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=corpus_resources,
                            limits=corpus_resources,
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
                            claim_name="corpus-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="requests",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="corpus-requests",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="results",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="corpus-results",
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
                            size_limit="11Gi",
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
            cluster.tenant_search_quota,
            cluster.priority_normal_preemptible_class,
            network.tenant_search_policy,
            network.corpus_policy,
            corpus_account,
            corpus_models_claim,
            corpus_requests_claim,
            corpus_results_claim,
        ],
        delete_before_replace=True,
    ),
)
