"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

# Where each workload is found.
addresses = {"helpdesk": "http://helpdesk.mi300x-support.svc:8000"}

# helpdesk: inference of meta-llama/Llama-3.1-70B-Instruct on 8 × mi300x-192gb, $48.00/h
helpdesk_labels = {
    "app.kubernetes.io/name": "helpdesk",
    "app.kubernetes.io/part-of": "mi300x",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
helpdesk_selector = {"app.kubernetes.io/name": "helpdesk", "app.kubernetes.io/part-of": "mi300x"}
helpdesk_resources = {
    # 6 physical cores of 1 threads
    "cpu": "6",
    # 16 GiB of it is shared memory
    "memory": "192Gi",
    "ephemeral-storage": "50Gi",
    "amd.com/gpu": "1",
}

helpdesk_account = k8s.core.v1.ServiceAccount(
    "helpdesk",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="helpdesk",
        namespace="mi300x-support",
        labels=helpdesk_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

helpdesk_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "helpdesk-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="helpdesk-models",
        namespace="mi300x-support",
        labels=helpdesk_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "145Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "helpdesk",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="helpdesk",
        namespace="mi300x-support",
        labels=helpdesk_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × mi300x-192gb; meets mean time per output token and time to first token p95 and
        # requests per second and gpu memory
        replicas=8,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=helpdesk_selector),
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=helpdesk_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="helpdesk",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="mi300x-normal",
                termination_grace_period_seconds=100,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels=helpdesk_selector,
                        ),
                    ),
                ],
                node_selector={"node.kubernetes.io/instance-type": "Standard_ND96isr_MI300X_v5"},
                tolerations=[
                    k8s.core.v1.TolerationArgs(
                        key="amd.com/gpu",
                        operator="Exists",
                        effect="NoSchedule",
                    ),
                ],
                security_context=k8s.core.v1.PodSecurityContextArgs(
                    seccomp_profile=k8s.core.v1.SeccompProfileArgs(
                        # ROCm maps memory of other processes, as vLLM's and AMD's own pods do
                        type="Unconfined",
                    ),
                ),
                containers=[
                    k8s.core.v1.ContainerArgs(
                        name="engine",
                        image="vllm/vllm-openai-rocm:v0.27.1",
                        command=["vllm", "serve"],
                        args=[
                            "meta-llama/Llama-3.1-70B-Instruct",
                            "--revision=1605565b47bb9346c5515c34102e054115b4f98b",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--quantization=fp8",
                            # 67.7 GiB of weights
                            "--tensor-parallel-size=1",
                            "--max-model-len=7168",
                            # requests at once; their KV cache takes 40.3 GiB of a GPU
                            "--max-num-seqs=96",
                            "--max-num-batched-tokens=8192",
                            # 172 GiB of 192 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # an answer of 700 tokens, as 95 % are at most, is finished
                            "--shutdown-timeout=55",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_ROCM_USE_AITER", value="1"),
                            k8s.core.v1.EnvVarArgs(name="HSA_NO_SCRATCH_RECLAIM", value="1"),
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
                            requests=helpdesk_resources,
                            limits=helpdesk_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(
                                drop=["ALL"],
                                add=["SYS_PTRACE"],
                            ),
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
                            claim_name="helpdesk-models",
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
            cluster.tenant_support_quota,
            cluster.priority_normal_class,
            network.tenant_support_policy,
            network.helpdesk_policy,
            helpdesk_account,
            helpdesk_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="5280s", update="21600s"),
    ),
)

k8s.core.v1.Service(
    "helpdesk",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="helpdesk",
        namespace="mi300x-support",
        labels=helpdesk_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=helpdesk_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "helpdesk",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="helpdesk",
        namespace="mi300x-support",
        labels=helpdesk_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=helpdesk_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)
