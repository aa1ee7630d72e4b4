"""The workloads: their accounts, secrets, volumes, pods and addresses."""

from pathlib import Path

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {
    "full-8b": "job finetune-training/full-8b",
    "lora-70b": "job finetune-training/lora-70b",
}

# full-8b: finetuning of meta-llama/Llama-3.1-8B on 64 × a100-sxm-80gb, $177/h
full_8b_labels = {
    "app.kubernetes.io/name": "full-8b",
    "app.kubernetes.io/part-of": "finetune",
    "app.kubernetes.io/component": "finetuning",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "training",
}
full_8b_selector = {"app.kubernetes.io/name": "full-8b", "app.kubernetes.io/part-of": "finetune"}
full_8b_resources = {
    # 40 physical cores of 2 threads
    "cpu": "80",
    # 16 GiB of it is shared memory
    "memory": "640Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
    "rdma/rdma_shared_device_a": "8",
}

full_8b_account = k8s.core.v1.ServiceAccount(
    "full-8b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b",
        namespace="finetune-training",
        labels=full_8b_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

full_8b_secret = k8s.core.v1.Secret(
    "full-8b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b",
        namespace="finetune-training",
        labels=full_8b_labels,
    ),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

full_8b_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "full-8b-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b-models",
        namespace="finetune-training",
        labels=full_8b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "25Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

full_8b_checkpoints_claim = k8s.core.v1.PersistentVolumeClaim(
    "full-8b-checkpoints",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b-checkpoints",
        namespace="finetune-training",
        labels=full_8b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "346Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

full_8b_dataset_claim = k8s.core.v1.PersistentVolumeClaim(
    "full-8b-dataset",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b-dataset",
        namespace="finetune-training",
        labels=full_8b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "138Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

full_8b_config = k8s.core.v1.ConfigMap(
    "full-8b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b",
        namespace="finetune-training",
        labels=full_8b_labels,
    ),
    data={
        "axolotl.yaml": Path("workloads/full-8b/axolotl.yaml").read_text(encoding="utf-8"),
        "deepspeed.json": Path("workloads/full-8b/deepspeed.json").read_text(encoding="utf-8"),
    },
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

full_8b_service = k8s.core.v1.Service(
    "full-8b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b",
        namespace="finetune-training",
        labels=full_8b_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        cluster_ip="None",
        publish_not_ready_addresses=True,
        selector=full_8b_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="rendezvous", port=29500)],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

k8s.batch.v1.Job(
    "full-8b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-8b",
        namespace="finetune-training",
        labels=full_8b_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.batch.v1.JobSpecArgs(
        completion_mode="Indexed",
        completions=8,
        parallelism=8,
        # 3 failures of every pod
        backoff_limit=24,
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
            metadata=k8s.meta.v1.ObjectMetaArgs(
                labels=full_8b_labels,
                annotations={"gpuplan.dev/config": "6bfbbb64"},
            ),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="full-8b",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="finetune-low-preemptible",
                restart_policy="Never",
                subdomain="full-8b",
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                    "node.kubernetes.io/instance-type": "a2-ultragpu-8g",
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
                        image="axolotlai/axolotl:0.18.0-py3.12-cu130-2.12.0",
                        args=[
                            "axolotl",
                            "train",
                            "/etc/gpuplan/axolotl.yaml",
                            "--launcher=torchrun",
                            "--",
                            "--nnodes=8",
                            "--node-rank=$(JOB_COMPLETION_INDEX)",
                            "--master-addr=full-8b-0.full-8b",
                            "--master-port=29500",
                            "--nproc-per-node=8",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_DATASETS_CACHE",
                                value="/data/datasets",
                            ),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_TOKEN",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    secret_key_ref=k8s.core.v1.SecretKeySelectorArgs(
                                        name="full-8b",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=full_8b_resources,
                            limits=full_8b_resources,
                        ),
                        security_context=k8s.core.v1.SecurityContextArgs(
                            allow_privilege_escalation=False,
                            capabilities=k8s.core.v1.CapabilitiesArgs(
                                drop=["ALL"],
                                # RDMA registers pinned memory
                                add=["IPC_LOCK"],
                            ),
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
                            k8s.core.v1.VolumeMountArgs(
                                name="config",
                                mount_path="/etc/gpuplan",
                                read_only=True,
                            ),
                        ],
                    ),
                ],
                volumes=[
                    k8s.core.v1.VolumeArgs(
                        name="models",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="full-8b-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="checkpoints",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="full-8b-checkpoints",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="dataset",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="full-8b-dataset",
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
                    k8s.core.v1.VolumeArgs(
                        name="config",
                        config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name="full-8b"),
                    ),
                ],
            ),
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_training_quota,
            cluster.priority_low_preemptible_class,
            network.tenant_training_policy,
            network.full_8b_policy,
            full_8b_account,
            full_8b_secret,
            full_8b_models_claim,
            full_8b_checkpoints_claim,
            full_8b_dataset_claim,
            full_8b_config,
            full_8b_service,
        ],
        delete_before_replace=True,
    ),
)

# lora-70b: finetuning of meta-llama/Llama-3.3-70B-Instruct on 8 × h100-sxm-80gb, $88.49/h
lora_70b_labels = {
    "app.kubernetes.io/name": "lora-70b",
    "app.kubernetes.io/part-of": "finetune",
    "app.kubernetes.io/component": "finetuning",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "training",
}
lora_70b_selector = {"app.kubernetes.io/name": "lora-70b", "app.kubernetes.io/part-of": "finetune"}
lora_70b_resources = {
    # 48 physical cores of 2 threads
    "cpu": "96",
    # 16 GiB of it is shared memory
    "memory": "640Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
}

lora_70b_account = k8s.core.v1.ServiceAccount(
    "lora-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b",
        namespace="finetune-training",
        labels=lora_70b_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

lora_70b_secret = k8s.core.v1.Secret(
    "lora-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b",
        namespace="finetune-training",
        labels=lora_70b_labels,
    ),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

lora_70b_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "lora-70b-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b-models",
        namespace="finetune-training",
        labels=lora_70b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "145Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

lora_70b_checkpoints_claim = k8s.core.v1.PersistentVolumeClaim(
    "lora-70b-checkpoints",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b-checkpoints",
        namespace="finetune-training",
        labels=lora_70b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "9Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

lora_70b_dataset_claim = k8s.core.v1.PersistentVolumeClaim(
    "lora-70b-dataset",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b-dataset",
        namespace="finetune-training",
        labels=lora_70b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteOnce"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "7Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

lora_70b_config = k8s.core.v1.ConfigMap(
    "lora-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b",
        namespace="finetune-training",
        labels=lora_70b_labels,
    ),
    data={
        "axolotl.yaml": Path("workloads/lora-70b/axolotl.yaml").read_text(encoding="utf-8"),
        "deepspeed.json": Path("workloads/lora-70b/deepspeed.json").read_text(encoding="utf-8"),
    },
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

k8s.batch.v1.Job(
    "lora-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="lora-70b",
        namespace="finetune-training",
        labels=lora_70b_labels,
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
            metadata=k8s.meta.v1.ObjectMetaArgs(
                labels=lora_70b_labels,
                annotations={"gpuplan.dev/config": "9af45592"},
            ),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="lora-70b",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="finetune-normal",
                restart_policy="Never",
                node_selector={
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                    "node.kubernetes.io/instance-type": "a3-highgpu-8g",
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
                        image="axolotlai/axolotl:0.18.0-py3.12-cu130-2.12.0",
                        args=[
                            "axolotl",
                            "train",
                            "/etc/gpuplan/axolotl.yaml",
                            "--launcher=torchrun",
                            "--",
                            "--nnodes=1",
                            "--standalone",
                            "--nproc-per-node=8",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_DATASETS_CACHE",
                                value="/data/datasets",
                            ),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_TOKEN",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    secret_key_ref=k8s.core.v1.SecretKeySelectorArgs(
                                        name="lora-70b",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=lora_70b_resources,
                            limits=lora_70b_resources,
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
                            k8s.core.v1.VolumeMountArgs(
                                name="config",
                                mount_path="/etc/gpuplan",
                                read_only=True,
                            ),
                        ],
                    ),
                ],
                volumes=[
                    k8s.core.v1.VolumeArgs(
                        name="models",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="lora-70b-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="checkpoints",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="lora-70b-checkpoints",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="dataset",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="lora-70b-dataset",
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
                    k8s.core.v1.VolumeArgs(
                        name="config",
                        config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name="lora-70b"),
                    ),
                ],
            ),
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_training_quota,
            cluster.priority_normal_class,
            network.tenant_training_policy,
            network.lora_70b_policy,
            lora_70b_account,
            lora_70b_secret,
            lora_70b_models_claim,
            lora_70b_checkpoints_claim,
            lora_70b_dataset_claim,
            lora_70b_config,
        ],
        delete_before_replace=True,
    ),
)
