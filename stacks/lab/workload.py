"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

# Where each workload is found.
addresses = {
    "desks": "http://desks-0.desks.lab-research.svc:8888",
    "benches": "http://benches-0.benches.lab-research.svc:8888",
    "stations": "http://stations-0.stations.lab-research.svc:8888",
    "assistant": "http://assistant.lab-research.svc:8000",
}

# desks: notebook on 2 × 1g.10gb, $8.85/h
desks_labels = {
    "app.kubernetes.io/name": "desks",
    "app.kubernetes.io/part-of": "lab",
    "app.kubernetes.io/component": "notebook",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "research",
}
desks_selector = {"app.kubernetes.io/name": "desks", "app.kubernetes.io/part-of": "lab"}
desks_resources = {
    # 1 physical core of 2 threads
    "cpu": "2",
    # 3 GiB of it is shared memory
    "memory": "12Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/mig-1g.10gb": "1",
}

desks_account = k8s.core.v1.ServiceAccount(
    "desks",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="desks",
        namespace="lab-research",
        labels=desks_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

desks_service = k8s.core.v1.Service(
    "desks",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="desks",
        namespace="lab-research",
        labels=desks_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        cluster_ip="None",
        selector=desks_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8888, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

k8s.apps.v1.StatefulSet(
    "desks",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="desks",
        namespace="lab-research",
        labels=desks_labels,
        annotations={"kubernetes.io/description": "Teaching, nine at once"},
    ),
    spec=k8s.apps.v1.StatefulSetSpecArgs(
        replicas=9,
        service_name="desks",
        pod_management_policy="Parallel",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=desks_selector),
        persistent_volume_claim_retention_policy=k8s.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicyArgs(
            when_deleted="Retain",
            when_scaled="Retain",
        ),
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=desks_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="desks",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="lab-normal",
                node_selector={
                    "gpuplan.dev/stack": "lab",
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
                    fs_group=100,
                ),
                containers=[
                    k8s.core.v1.ContainerArgs(
                        name="engine",
                        image="quay.io/jupyter/pytorch-notebook:cuda12-python-3.13.14",
                        command=["start-notebook.py", "--ServerApp.ip=0.0.0.0"],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/scratch"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8888)],
                        readiness_probe=k8s.core.v1.ProbeArgs(
                            tcp_socket=k8s.core.v1.TCPSocketActionArgs(port="http"),
                            period_seconds=10,
                        ),
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=desks_resources,
                            limits=desks_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
                        ),
                        volume_mounts=[
                            k8s.core.v1.VolumeMountArgs(name="home", mount_path="/home/jovyan"),
                            k8s.core.v1.VolumeMountArgs(name="scratch", mount_path="/scratch"),
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
                        name="shm",
                        empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(
                            medium="Memory",
                            # ranks exchange data through /dev/shm; the default of 64 MiB is too
                            # small
                            size_limit="3Gi",
                        ),
                    ),
                ],
            ),
        ),
        volume_claim_templates=[
            k8s.core.v1.PersistentVolumeClaimArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(name="home", labels=desks_selector),
                spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
                    access_modes=["ReadWriteOnce"],
                    resources=k8s.core.v1.VolumeResourceRequirementsArgs(
                        requests={"storage": "50Gi"},
                    ),
                ),
            ),
        ],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_research_quota,
            cluster.priority_normal_class,
            network.tenant_research_policy,
            network.desks_policy,
            desks_account,
            desks_service,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="1800s", update="11880s"),
    ),
)

# benches: notebook on 2 × 3g.40gb, $10.32/h
benches_labels = {
    "app.kubernetes.io/name": "benches",
    "app.kubernetes.io/part-of": "lab",
    "app.kubernetes.io/component": "notebook",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "research",
}
benches_selector = {"app.kubernetes.io/name": "benches", "app.kubernetes.io/part-of": "lab"}
benches_resources = {
    # 3 physical cores of 2 threads
    "cpu": "6",
    # 10 GiB of it is shared memory
    "memory": "40Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/mig-3g.40gb": "1",
}

benches_account = k8s.core.v1.ServiceAccount(
    "benches",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="benches",
        namespace="lab-research",
        labels=benches_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

benches_service = k8s.core.v1.Service(
    "benches",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="benches",
        namespace="lab-research",
        labels=benches_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        cluster_ip="None",
        selector=benches_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8888, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

k8s.apps.v1.StatefulSet(
    "benches",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="benches",
        namespace="lab-research",
        labels=benches_labels,
        annotations={
            "kubernetes.io/description": "Experiments with models of a few billion parameters",
        },
    ),
    spec=k8s.apps.v1.StatefulSetSpecArgs(
        replicas=3,
        service_name="benches",
        pod_management_policy="Parallel",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=benches_selector),
        persistent_volume_claim_retention_policy=k8s.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicyArgs(
            when_deleted="Retain",
            when_scaled="Retain",
        ),
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=benches_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="benches",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="lab-normal",
                node_selector={
                    "gpuplan.dev/stack": "lab",
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
                    fs_group=100,
                ),
                containers=[
                    k8s.core.v1.ContainerArgs(
                        name="engine",
                        image="quay.io/jupyter/pytorch-notebook:cuda12-python-3.13.14",
                        command=["start-notebook.py", "--ServerApp.ip=0.0.0.0"],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/scratch"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8888)],
                        readiness_probe=k8s.core.v1.ProbeArgs(
                            tcp_socket=k8s.core.v1.TCPSocketActionArgs(port="http"),
                            period_seconds=10,
                        ),
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=benches_resources,
                            limits=benches_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
                        ),
                        volume_mounts=[
                            k8s.core.v1.VolumeMountArgs(name="home", mount_path="/home/jovyan"),
                            k8s.core.v1.VolumeMountArgs(name="scratch", mount_path="/scratch"),
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
                        name="shm",
                        empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(
                            medium="Memory",
                            # ranks exchange data through /dev/shm; the default of 64 MiB is too
                            # small
                            size_limit="10Gi",
                        ),
                    ),
                ],
            ),
        ),
        volume_claim_templates=[
            k8s.core.v1.PersistentVolumeClaimArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(name="home", labels=benches_selector),
                spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
                    access_modes=["ReadWriteOnce"],
                    resources=k8s.core.v1.VolumeResourceRequirementsArgs(
                        requests={"storage": "50Gi"},
                    ),
                ),
            ),
        ],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_research_quota,
            cluster.priority_normal_class,
            network.tenant_research_policy,
            network.benches_policy,
            benches_account,
            benches_service,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="1800s", update="3960s"),
    ),
)

# stations: notebook on 1 × 1g.20gb, $6.88/h
stations_labels = {
    "app.kubernetes.io/name": "stations",
    "app.kubernetes.io/part-of": "lab",
    "app.kubernetes.io/component": "notebook",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "research",
}
stations_selector = {"app.kubernetes.io/name": "stations", "app.kubernetes.io/part-of": "lab"}
stations_resources = {
    # 1 physical core of 2 threads
    "cpu": "2",
    # 5 GiB of it is shared memory
    "memory": "20Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/mig-1g.20gb": "1",
}

stations_account = k8s.core.v1.ServiceAccount(
    "stations",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="stations",
        namespace="lab-research",
        labels=stations_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

stations_service = k8s.core.v1.Service(
    "stations",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="stations",
        namespace="lab-research",
        labels=stations_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        cluster_ip="None",
        selector=stations_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8888, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

k8s.apps.v1.StatefulSet(
    "stations",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="stations",
        namespace="lab-research",
        labels=stations_labels,
    ),
    spec=k8s.apps.v1.StatefulSetSpecArgs(
        replicas=4,
        service_name="stations",
        pod_management_policy="Parallel",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=stations_selector),
        persistent_volume_claim_retention_policy=k8s.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicyArgs(
            when_deleted="Retain",
            when_scaled="Retain",
        ),
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=stations_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="stations",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="lab-normal",
                node_selector={
                    "gpuplan.dev/stack": "lab",
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
                    fs_group=100,
                ),
                containers=[
                    k8s.core.v1.ContainerArgs(
                        name="engine",
                        image="quay.io/jupyter/pytorch-notebook:cuda12-python-3.13.14",
                        command=["start-notebook.py", "--ServerApp.ip=0.0.0.0"],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/scratch"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8888)],
                        readiness_probe=k8s.core.v1.ProbeArgs(
                            tcp_socket=k8s.core.v1.TCPSocketActionArgs(port="http"),
                            period_seconds=10,
                        ),
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=stations_resources,
                            limits=stations_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
                        ),
                        volume_mounts=[
                            k8s.core.v1.VolumeMountArgs(name="home", mount_path="/home/jovyan"),
                            k8s.core.v1.VolumeMountArgs(name="scratch", mount_path="/scratch"),
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
                        name="shm",
                        empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(
                            medium="Memory",
                            # ranks exchange data through /dev/shm; the default of 64 MiB is too
                            # small
                            size_limit="5Gi",
                        ),
                    ),
                ],
            ),
        ),
        volume_claim_templates=[
            k8s.core.v1.PersistentVolumeClaimArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(name="home", labels=stations_selector),
                spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
                    access_modes=["ReadWriteOnce"],
                    resources=k8s.core.v1.VolumeResourceRequirementsArgs(
                        requests={"storage": "50Gi"},
                    ),
                ),
            ),
        ],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_research_quota,
            cluster.priority_normal_class,
            network.tenant_research_policy,
            network.stations_policy,
            stations_account,
            stations_service,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="1800s", update="5280s"),
    ),
)

# assistant: inference of meta-llama/Llama-3.1-70B-Instruct on 2 × h100-sxm-80gb, $13.76/h
assistant_labels = {
    "app.kubernetes.io/name": "assistant",
    "app.kubernetes.io/part-of": "lab",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "research",
}
assistant_selector = {"app.kubernetes.io/name": "assistant", "app.kubernetes.io/part-of": "lab"}
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
        namespace="lab-research",
        labels=assistant_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

assistant_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "assistant-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant-models",
        namespace="lab-research",
        labels=assistant_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "145Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="lab-research",
        labels=assistant_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 2 × h100-sxm-80gb; meets mean time per output token and time to first token p95
        # and requests per second and gpu memory
        replicas=1,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=assistant_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            # no GPU is spare: the one pod goes before its successor comes, so an update is an
            # outage, of 45 min at the worst
            type="Recreate",
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
                priority_class_name="lab-normal",
                termination_grace_period_seconds=75,
                node_selector={
                    "gpuplan.dev/stack": "lab",
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
                            "meta-llama/Llama-3.1-70B-Instruct",
                            "--revision=1605565b47bb9346c5515c34102e054115b4f98b",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--quantization=fp8",
                            # 33.8 GiB of weights on each of 2 GPUs
                            "--tensor-parallel-size=2",
                            "--max-model-len=4096",
                            # requests at once; their KV cache takes 11.4 GiB of a GPU
                            "--max-num-seqs=96",
                            "--max-num-batched-tokens=8192",
                            # 71.3 GiB of 79.6 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # an answer of 400 tokens, as 95 % are at most, is finished; 30 s are
                            # the least
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
            cluster.tenant_research_quota,
            cluster.priority_normal_class,
            network.tenant_research_policy,
            network.assistant_policy,
            assistant_account,
            assistant_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="5280s", update="5280s"),
    ),
)

k8s.core.v1.Service(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="lab-research",
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
        depends_on=[cluster.tenant_research_namespace],
    ),
)
