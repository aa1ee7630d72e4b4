"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {"full-70b": "job tune-70b-training/full-70b"}

# full-70b: finetuning of meta-llama/Llama-3.1-70B on 32 × h100-sxm-80gb, $220/h
full_70b_labels = {
    "app.kubernetes.io/name": "full-70b",
    "app.kubernetes.io/part-of": "tune-70b",
    "app.kubernetes.io/component": "finetuning",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "training",
}
full_70b_selector = {"app.kubernetes.io/name": "full-70b", "app.kubernetes.io/part-of": "tune-70b"}
full_70b_resources = {
    # 48 physical cores as one CPU each: their threads are not known
    "cpu": "48",
    # 16 GiB of it is shared memory
    "memory": "640Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
    "rdma/rdma_shared_device_a": "8",
}

full_70b_account = k8s.core.v1.ServiceAccount(
    "full-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-70b",
        namespace="tune-70b-training",
        labels=full_70b_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

full_70b_secret = k8s.core.v1.Secret(
    "full-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-70b",
        namespace="tune-70b-training",
        labels=full_70b_labels,
    ),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

full_70b_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "full-70b-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-70b-models",
        namespace="tune-70b-training",
        labels=full_70b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "147Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

full_70b_checkpoints_claim = k8s.core.v1.PersistentVolumeClaim(
    "full-70b-checkpoints",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-70b-checkpoints",
        namespace="tune-70b-training",
        labels=full_70b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "3036Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

full_70b_dataset_claim = k8s.core.v1.PersistentVolumeClaim(
    "full-70b-dataset",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-70b-dataset",
        namespace="tune-70b-training",
        labels=full_70b_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="shared-nvme",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "35Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

full_70b_service = k8s.core.v1.Service(
    "full-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-70b",
        namespace="tune-70b-training",
        labels=full_70b_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        cluster_ip="None",
        publish_not_ready_addresses=True,
        selector=full_70b_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="rendezvous", port=29500)],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_training_namespace],
    ),
)

k8s.batch.v1.Job(
    "full-70b",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="full-70b",
        namespace="tune-70b-training",
        labels=full_70b_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.batch.v1.JobSpecArgs(
        completion_mode="Indexed",
        completions=4,
        parallelism=4,
        # 3 failures of every pod
        backoff_limit=12,
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=full_70b_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="full-70b",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="tune-70b-normal",
                restart_policy="Never",
                subdomain="full-70b",
                node_selector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
                affinity=k8s.core.v1.AffinityArgs(
                    # nodes of one switch, as far as there are some
                    pod_affinity=k8s.core.v1.PodAffinityArgs(
                        preferred_during_scheduling_ignored_during_execution=[
                            k8s.core.v1.WeightedPodAffinityTermArgs(
                                weight=100,
                                pod_affinity_term=k8s.core.v1.PodAffinityTermArgs(
                                    label_selector=k8s.meta.v1.LabelSelectorArgs(
                                        match_labels=full_70b_selector,
                                    ),
                                    topology_key="example.com/leaf-switch",
                                ),
                            ),
                        ],
                    ),
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
                                            values=["training"],
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
                        image="nvcr.io/nvidia/nemo:26.04",
                        args=[
                            "torchrun",
                            "--nnodes=4",
                            "--node-rank=$(JOB_COMPLETION_INDEX)",
                            "--master-addr=full-70b-0.full-70b",
                            "--master-port=29500",
                            "--nproc-per-node=8",
                            "/opt/Megatron-Bridge/scripts/training/run_recipe.py",
                            "--recipe=llama31_70b_sft_config",
                            "--dataset=llm-finetune-preloaded",
                            "--seq_length=8192",
                            # 32 replicas × 2 micro-batches of 1 = 64 sequences a step
                            "model.tensor_model_parallel_size=1",
                            "model.sequence_parallel=false",
                            "model.pipeline_model_parallel_size=1",
                            "model.virtual_pipeline_model_parallel_size=null",
                            "model.account_for_embedding_in_pipeline_split=false",
                            "model.account_for_loss_in_pipeline_split=false",
                            "model.context_parallel_size=1",
                            "model.recompute_granularity=full",
                            "model.recompute_method=uniform",
                            "model.recompute_num_layers=1",
                            "ddp.use_distributed_optimizer=true",
                            "optimizer.use_distributed_optimizer=true",
                            "ddp.grad_reduce_in_fp32=true",
                            "dist.use_megatron_fsdp=true",
                            "ddp.use_megatron_fsdp=true",
                            "ddp.data_parallel_sharding_strategy=optim_grads_params",
                            "ddp.average_in_collective=false",
                            "model.init_model_with_meta_device=true",
                            "checkpoint.ckpt_format=fsdp_dtensor",
                            "model.seq_length=8192",
                            "train.train_iters=1908",
                            "train.global_batch_size=64",
                            "train.micro_batch_size=1",
                            # not sized: a tenth of the run, 2,000 steps at most
                            "scheduler.lr_warmup_iters=190",
                            "tokenizer.tokenizer_type=HuggingFaceTokenizer",
                            "tokenizer.tokenizer_model=meta-llama/Llama-3.1-70B",
                            "dataset.dataset_root=/data/support-dialogues",
                            "checkpoint.pretrained_checkpoint=/checkpoints/pretrained",
                            "checkpoint.save=/checkpoints/run",
                            # a pod that starts again goes on
                            "checkpoint.load=/checkpoints/run",
                            # as the volume is sized
                            "checkpoint.most_recent_k=2",
                            # about 16779.9 s at the predicted 17.4 s a step
                            "checkpoint.save_interval=967",
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
                                        name="full-70b",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=full_70b_resources,
                            limits=full_70b_resources,
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
                        ],
                    ),
                ],
                volumes=[
                    k8s.core.v1.VolumeArgs(
                        name="models",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="full-70b-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="checkpoints",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="full-70b-checkpoints",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="dataset",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="full-70b-dataset",
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
            cluster.tenant_training_quota,
            cluster.priority_normal_class,
            network.tenant_training_policy,
            network.full_70b_policy,
            full_70b_account,
            full_70b_secret,
            full_70b_models_claim,
            full_70b_checkpoints_claim,
            full_70b_dataset_claim,
            full_70b_service,
        ],
        delete_before_replace=True,
    ),
)
