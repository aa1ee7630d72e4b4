"""The workloads: their accounts, secrets, volumes, pods and addresses."""

from pathlib import Path

import pulumi
import pulumi_kubernetes as k8s

import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {"pretrain": "job mixtral-research/pretrain"}

# pretrain: training of mistralai/Mixtral-8x7B-v0.1 on 128 × h100-sxm-80gb, $881/h
pretrain_labels = {
    "app.kubernetes.io/name": "pretrain",
    "app.kubernetes.io/part-of": "mixtral",
    "app.kubernetes.io/component": "training",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "research",
}
pretrain_selector = {"app.kubernetes.io/name": "pretrain", "app.kubernetes.io/part-of": "mixtral"}
pretrain_resources = {
    # 48 physical cores as one CPU each: their threads are not known
    "cpu": "48",
    # 16 GiB of it is shared memory
    "memory": "640Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
    "rdma/rdma_shared_device_a": "8",
}

pretrain_account = k8s.core.v1.ServiceAccount(
    "pretrain",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain",
        namespace="mixtral-research",
        labels=pretrain_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

pretrain_secret = k8s.core.v1.Secret(
    "pretrain",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain",
        namespace="mixtral-research",
        labels=pretrain_labels,
    ),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

pretrain_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "pretrain-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain-models",
        namespace="mixtral-research",
        labels=pretrain_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "711Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

pretrain_checkpoints_claim = k8s.core.v1.PersistentVolumeClaim(
    "pretrain-checkpoints",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain-checkpoints",
        namespace="mixtral-research",
        labels=pretrain_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "2010Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

pretrain_dataset_claim = k8s.core.v1.PersistentVolumeClaim(
    "pretrain-dataset",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain-dataset",
        namespace="mixtral-research",
        labels=pretrain_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "10296Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

pretrain_config = k8s.core.v1.ConfigMap(
    "pretrain",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain",
        namespace="mixtral-research",
        labels=pretrain_labels,
    ),
    data={
        "axolotl.yaml": Path("workloads/pretrain/axolotl.yaml").read_text(encoding="utf-8"),
        "deepspeed.json": Path("workloads/pretrain/deepspeed.json").read_text(encoding="utf-8"),
    },
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

pretrain_service = k8s.core.v1.Service(
    "pretrain",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain",
        namespace="mixtral-research",
        labels=pretrain_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        cluster_ip="None",
        publish_not_ready_addresses=True,
        selector=pretrain_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="rendezvous", port=29500)],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_research_namespace],
    ),
)

k8s.batch.v1.Job(
    "pretrain",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="pretrain",
        namespace="mixtral-research",
        labels=pretrain_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.batch.v1.JobSpecArgs(
        completion_mode="Indexed",
        completions=16,
        parallelism=16,
        # 3 failures of every pod
        backoff_limit=48,
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
                labels=pretrain_labels,
                annotations={"gpuplan.dev/config": "08d4797e"},
            ),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="pretrain",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="mixtral-low",
                restart_policy="Never",
                subdomain="pretrain",
                node_selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
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
                        image="axolotlai/axolotl:0.18.0-py3.12-cu130-2.12.0",
                        args=[
                            "axolotl",
                            "train",
                            "/etc/gpuplan/axolotl.yaml",
                            "--launcher=torchrun",
                            "--",
                            "--nnodes=16",
                            "--node-rank=$(JOB_COMPLETION_INDEX)",
                            "--master-addr=pretrain-0.pretrain",
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
                                        name="pretrain",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=pretrain_resources,
                            limits=pretrain_resources,
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
                            claim_name="pretrain-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="checkpoints",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="pretrain-checkpoints",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="dataset",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="pretrain-dataset",
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
                        config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name="pretrain"),
                    ),
                ],
            ),
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            cluster.tenant_research_quota,
            cluster.priority_low_class,
            network.tenant_research_policy,
            network.pretrain_policy,
            pretrain_account,
            pretrain_secret,
            pretrain_models_claim,
            pretrain_checkpoints_claim,
            pretrain_dataset_claim,
            pretrain_config,
            pretrain_service,
        ],
        delete_before_replace=True,
    ),
)
