"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {"painter": "http://painter.images-shop.svc:8000"}

# painter: inference of black-forest-labs/FLUX.1-dev on 2 × h100-sxm-80gb, $13.76/h
painter_labels = {
    "app.kubernetes.io/name": "painter",
    "app.kubernetes.io/part-of": "images",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "shop",
}
painter_selector = {"app.kubernetes.io/name": "painter", "app.kubernetes.io/part-of": "images"}
painter_resources = {
    # 6 physical cores of 2 threads
    "cpu": "12",
    # 16 GiB of it is shared memory
    "memory": "80Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

painter_account = k8s.core.v1.ServiceAccount(
    "painter",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="painter",
        namespace="images-shop",
        labels=painter_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_shop_namespace],
    ),
)

painter_secret = k8s.core.v1.Secret(
    "painter",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="painter",
        namespace="images-shop",
        labels=painter_labels,
    ),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_shop_namespace],
    ),
)

painter_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "painter-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="painter-models",
        namespace="images-shop",
        labels=painter_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "35Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_shop_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "painter",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="painter",
        namespace="images-shop",
        labels=painter_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × h100-sxm-80gb; meets mean request latency and images per second
        replicas=2,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=painter_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            type="RollingUpdate",
            # no GPU is spare: one pod goes before one comes
            rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=0, max_unavailable=1),
        ),
        # the start-up probe's time, and before it 1800 s for the image, the volume and the node's
        # driver
        progress_deadline_seconds=3120,
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=painter_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="painter",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="images-normal",
                termination_grace_period_seconds=75,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=painter_selector),
                    ),
                ],
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                    "node.kubernetes.io/instance-type": "p5.4xlarge",
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
                init_containers=[
                    k8s.core.v1.ContainerArgs(
                        name="weights",
                        image="vllm/vllm-omni:v0.26.0",
                        command=[
                            "python3",
                            "-c",
                            (
                                "import shutil\nimport sys\nfrom pathlib import Path\n\nfrom "
                                "huggingface_hub import snapshot_download\n\nmodel, folder, "
                                "*revision = sys.argv[1:]\nkept = Path(folder)\ncache = "
                                'kept.parents[1] / "hub" / ("models--" + kept.parent.name)\nfor '
                                'former in (*kept.parent.glob("*"), cache):\n    if former != kept '
                                "and former.exists():\n        shutil.rmtree(former)\n"
                                "snapshot_download(\n    model,\n    revision=revision[0] if "
                                "revision else None,\n    local_dir=folder,\n    "
                                "allow_patterns=['*/*', 'model_index.json'],\n    "
                                "ignore_patterns=['text_encoders/*', '*.fp16.*', '*.bin', "
                                "'*.msgpack', '*.onnx*', '*.xml'],\n)\n"
                            ),
                            "black-forest-labs/FLUX.1-dev",
                            (
                                "/models/black-forest-labs--FLUX.1-dev/3de623fc3c33e44ffbe2bad470d0"
                                "f45bccf2eb21"
                            ),
                            "3de623fc3c33e44ffbe2bad470d0f45bccf2eb21",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                            k8s.core.v1.EnvVarArgs(name="HF_XET_CACHE", value="/scratch/xet"),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_TOKEN",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    secret_key_ref=k8s.core.v1.SecretKeySelectorArgs(
                                        name="painter",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests={"cpu": "12", "memory": "80Gi", "ephemeral-storage": "50Gi"},
                            limits={"cpu": "12", "memory": "80Gi", "ephemeral-storage": "50Gi"},
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
                containers=[
                    k8s.core.v1.ContainerArgs(
                        name="engine",
                        image="vllm/vllm-omni:v0.26.0",
                        command=["vllm", "serve"],
                        args=[
                            (
                                "/models/black-forest-labs--FLUX.1-dev/3de623fc3c33e44ffbe2bad470d0"
                                "f45bccf2eb21"
                            ),
                            "--served-model-name=black-forest-labs/FLUX.1-dev",
                            "--omni",
                            "--host=0.0.0.0",
                            "--port=8000",
                            # 31.4 GiB of weights
                            "--tensor-parallel-size=1",
                            # 1024 × 1024 pixels: what memory was sized for
                            "--max-generated-image-size=1048576",
                            '--default-sampling-params={"0": {"num_inference_steps": 28}}',
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                            k8s.core.v1.EnvVarArgs(name="HF_XET_CACHE", value="/scratch/xet"),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_TOKEN",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    secret_key_ref=k8s.core.v1.SecretKeySelectorArgs(
                                        name="painter",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            # 31.4 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=132,
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
                            requests=painter_resources,
                            limits=painter_resources,
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
                            claim_name="painter-models",
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
            cluster.tenant_shop_quota,
            cluster.priority_normal_class,
            network.tenant_shop_policy,
            network.painter_policy,
            painter_account,
            painter_secret,
            painter_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="3120s", update="3240s"),
    ),
)

k8s.core.v1.Service(
    "painter",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="painter",
        namespace="images-shop",
        labels=painter_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector=painter_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_shop_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "painter",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="painter",
        namespace="images-shop",
        labels=painter_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=painter_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_shop_namespace],
    ),
)
