"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {"assistant": "http://assistant.aks-support.svc:8000", "tune": "job aks-support/tune"}

# assistant: inference of meta-llama/Llama-3.1-8B-Instruct on 1 × a100-pcie-80gb, $3.67/h
assistant_labels = {
    "app.kubernetes.io/name": "assistant",
    "app.kubernetes.io/part-of": "aks",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
assistant_selector = {"app.kubernetes.io/name": "assistant", "app.kubernetes.io/part-of": "aks"}
assistant_resources = {
    # 6 physical cores of 1 threads
    "cpu": "6",
    # 16 GiB of it is shared memory
    "memory": "80Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

assistant_account = k8s.core.v1.ServiceAccount(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="aks-support",
        labels=assistant_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

assistant_secret = k8s.core.v1.Secret(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="aks-support",
        labels=assistant_labels,
    ),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

assistant_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "assistant-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant-models",
        namespace="aks-support",
        labels=assistant_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="azurefile-csi-premium",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "17Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

k8s.apps.v1.Deployment(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="aks-support",
        labels=assistant_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × a100-pcie-80gb; meets mean time per output token and time to first token p95
        # and requests per second and gpu memory
        replicas=1,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=assistant_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            # no GPU is spare: the one pod goes before its successor comes, so an update is an
            # outage, of 24 min at the worst
            type="Recreate",
        ),
        # the start-up probe's time, and before it 1800 s for the image, the volume and the node's
        # driver
        progress_deadline_seconds=2760,
        revision_history_limit=3,
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=assistant_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="assistant",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="aks-normal",
                termination_grace_period_seconds=75,
                node_selector={
                    "gpuplan.dev/stack": "aks",
                    "gpuplan.dev/pool": "a100-pcie-80gb-x1",
                    "nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe",
                    "node.kubernetes.io/instance-type": "Standard_NC24ads_A100_v4",
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
                            "meta-llama/Llama-3.1-8B-Instruct",
                            "--revision=0e9e39f249a16976918f6564b8830bc894c89659",
                            "--host=0.0.0.0",
                            "--port=8000",
                            "--dtype=bfloat16",
                            # 15 GiB of weights
                            "--tensor-parallel-size=1",
                            "--max-model-len=6144",
                            # requests at once; their KV cache takes 20 GiB of a GPU
                            "--max-num-seqs=152",
                            "--max-num-batched-tokens=3072",
                            # 71.6 GiB of 80 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # an answer of 600 tokens, as 95 % are at most, is finished; 30 s are
                            # the least
                            "--shutdown-timeout=30",
                        ],
                        env=[
                            k8s.core.v1.EnvVarArgs(name="HOME", value="/scratch"),
                            k8s.core.v1.EnvVarArgs(name="HF_HOME", value="/models"),
                            k8s.core.v1.EnvVarArgs(name="XDG_CACHE_HOME", value="/scratch/cache"),
                            k8s.core.v1.EnvVarArgs(name="VLLM_NO_USAGE_STATS", value="1"),
                            k8s.core.v1.EnvVarArgs(
                                name="HF_TOKEN",
                                value_from=k8s.core.v1.EnvVarSourceArgs(
                                    secret_key_ref=k8s.core.v1.SecretKeySelectorArgs(
                                        name="assistant",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=8000)],
                        startup_probe=k8s.core.v1.ProbeArgs(
                            http_get=k8s.core.v1.HTTPGetActionArgs(path="/health", port="http"),
                            period_seconds=10,
                            # 15 GiB of published weights to download once and to read, both at no
                            # less than 100 MB/s, and 600 s to warm up
                            failure_threshold=96,
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
            cluster.tenant_support_quota,
            cluster.priority_normal_class,
            network.tenant_support_policy,
            network.assistant_policy,
            assistant_account,
            assistant_secret,
            assistant_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2760s", update="2760s"),
    ),
)

k8s.core.v1.Service(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="aks-support",
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
        depends_on=[cluster.tenant_support_namespace],
    ),
)

# tune: finetuning of Qwen/Qwen3-32B on 64 × a100-sxm-40gb, $218/h
tune_labels = {
    "app.kubernetes.io/name": "tune",
    "app.kubernetes.io/part-of": "aks",
    "app.kubernetes.io/component": "finetuning",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
tune_selector = {"app.kubernetes.io/name": "tune", "app.kubernetes.io/part-of": "aks"}
tune_resources = {
    # 48 physical cores of 1 threads
    "cpu": "48",
    # 16 GiB of it is shared memory
    "memory": "320Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
    "rdma/ib": "8",
}

tune_account = k8s.core.v1.ServiceAccount(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="tune", namespace="aks-support", labels=tune_labels),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

tune_secret = k8s.core.v1.Secret(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="tune", namespace="aks-support", labels=tune_labels),
    type="Opaque",
    string_data={"HF_TOKEN": config.require_secret("hfToken")},
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

tune_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "tune-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tune-models",
        namespace="aks-support",
        labels=tune_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="azurefile-csi-premium",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "68Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

tune_checkpoints_claim = k8s.core.v1.PersistentVolumeClaim(
    "tune-checkpoints",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tune-checkpoints",
        namespace="aks-support",
        labels=tune_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="azurefile-csi-premium",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "1410Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

tune_dataset_claim = k8s.core.v1.PersistentVolumeClaim(
    "tune-dataset",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tune-dataset",
        namespace="aks-support",
        labels=tune_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="azurefile-csi-premium",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "4Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

tune_service = k8s.core.v1.Service(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tune",
        namespace="aks-support",
        labels=tune_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        cluster_ip="None",
        publish_not_ready_addresses=True,
        selector=tune_selector,
        ports=[k8s.core.v1.ServicePortArgs(name="rendezvous", port=29500)],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

k8s.batch.v1.Job(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tune",
        namespace="aks-support",
        labels=tune_labels,
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=tune_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="tune",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="aks-normal",
                restart_policy="Never",
                subdomain="tune",
                node_selector={
                    "gpuplan.dev/stack": "aks",
                    "gpuplan.dev/pool": "a100-sxm-40gb-x8",
                    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
                    "node.kubernetes.io/instance-type": "Standard_ND96asr_v4",
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
                        image="nvcr.io/nvidia/nemo:26.04",
                        args=[
                            "torchrun",
                            "--nnodes=8",
                            "--node-rank=$(JOB_COMPLETION_INDEX)",
                            "--master-addr=tune-0.tune",
                            "--master-port=29500",
                            "--nproc-per-node=8",
                            "/opt/Megatron-Bridge/scripts/training/run_recipe.py",
                            "--recipe=qwen3_32b_sft_config",
                            "--dataset=llm-finetune-preloaded",
                            "--seq_length=4096",
                            # 4 replicas × 16 micro-batches of 1 = 64 sequences a step
                            "model.tensor_model_parallel_size=8",
                            "model.sequence_parallel=true",
                            "model.pipeline_model_parallel_size=2",
                            "model.virtual_pipeline_model_parallel_size=4",
                            "model.account_for_embedding_in_pipeline_split=false",
                            "model.account_for_loss_in_pipeline_split=false",
                            "model.context_parallel_size=1",
                            "model.recompute_granularity=null",
                            "model.recompute_method=null",
                            "model.recompute_num_layers=null",
                            "ddp.use_distributed_optimizer=true",
                            "optimizer.use_distributed_optimizer=true",
                            "ddp.grad_reduce_in_fp32=true",
                            "model.seq_length=4096",
                            "train.train_iters=191",
                            "train.global_batch_size=64",
                            "train.micro_batch_size=1",
                            # not sized: a tenth of the run, 2,000 steps at most
                            "scheduler.lr_warmup_iters=19",
                            "tokenizer.tokenizer_type=HuggingFaceTokenizer",
                            "tokenizer.tokenizer_model=Qwen/Qwen3-32B",
                            "dataset.dataset_root=/data/support-dialogues",
                            "checkpoint.pretrained_checkpoint=/checkpoints/pretrained",
                            "checkpoint.save=/checkpoints/run",
                            # a pod that starts again goes on
                            "checkpoint.load=/checkpoints/run",
                            # as the volume is sized
                            "checkpoint.most_recent_k=2",
                            # about 18079.5 s at the predicted 4.74 s a step
                            "checkpoint.save_interval=3814",
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
                                        name="tune",
                                        key="HF_TOKEN",
                                    ),
                                ),
                            ),
                        ],
                        resources=k8s.core.v1.ResourceRequirementsArgs(
                            requests=tune_resources,
                            limits=tune_resources,
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
                            claim_name="tune-models",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="checkpoints",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="tune-checkpoints",
                        ),
                    ),
                    k8s.core.v1.VolumeArgs(
                        name="dataset",
                        persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                            claim_name="tune-dataset",
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
            network.tune_policy,
            tune_account,
            tune_secret,
            tune_models_claim,
            tune_checkpoints_claim,
            tune_dataset_claim,
            tune_service,
        ],
        delete_before_replace=True,
    ),
)
