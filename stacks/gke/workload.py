"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import cluster
import network

config = pulumi.Config()

# Where each workload is found.
addresses = {"assistant": "http://assistant.gke-support.svc:8000", "tune": "job gke-support/tune"}

# assistant: inference of meta-llama/Llama-3.1-8B-Instruct on 2 × l4, $2.00/h
assistant_labels = {
    "app.kubernetes.io/name": "assistant",
    "app.kubernetes.io/part-of": "gke",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
assistant_selector = {"app.kubernetes.io/name": "assistant", "app.kubernetes.io/part-of": "gke"}
assistant_resources = {
    # 4 physical cores of 2 threads
    "cpu": "8",
    # 7 GiB of it is shared memory
    "memory": "30Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "1",
}

assistant_account = k8s.core.v1.ServiceAccount(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="gke-support",
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
        namespace="gke-support",
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
        namespace="gke-support",
        labels=assistant_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="lustre",
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
        namespace="gke-support",
        labels=assistant_labels,
    ),
    spec=k8s.apps.v1.DeploymentSpecArgs(
        # each on 1 × l4; meets mean time per output token and time to first token p95 and requests
        # per second and gpu memory
        replicas=2,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=assistant_selector),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            type="RollingUpdate",
            # no GPU is spare: one pod goes before one comes
            rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=0, max_unavailable=1),
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
                priority_class_name="gke-normal",
                termination_grace_period_seconds=81,
                topology_spread_constraints=[
                    k8s.core.v1.TopologySpreadConstraintArgs(
                        max_skew=1,
                        topology_key="kubernetes.io/hostname",
                        # replicas spread over nodes where they can, but share one at need
                        when_unsatisfiable="ScheduleAnyway",
                        label_selector=k8s.meta.v1.LabelSelectorArgs(
                            match_labels=assistant_selector,
                        ),
                    ),
                ],
                node_selector={
                    "gpuplan.dev/stack": "gke",
                    "gpuplan.dev/pool": "l4-x1",
                    "node.kubernetes.io/instance-type": "g2-standard-12",
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
                            "--quantization=fp8",
                            # 8.46 GiB of weights
                            "--tensor-parallel-size=1",
                            "--max-model-len=6144",
                            # requests at once; their KV cache takes 5.76 GiB of a GPU
                            "--max-num-seqs=40",
                            "--max-num-batched-tokens=2048",
                            # 19.7 GiB of 22.4 GiB
                            "--gpu-memory-utilization=0.9",
                            "--kv-cache-dtype=auto",
                            # an answer of 600 tokens, as 95 % are at most, is finished
                            "--shutdown-timeout=36",
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
            cluster.tenant_support_quota,
            cluster.priority_normal_class,
            network.tenant_support_policy,
            network.assistant_policy,
            assistant_account,
            assistant_secret,
            assistant_models_claim,
        ],
        custom_timeouts=pulumi.CustomTimeouts(create="2760s", update="3000s"),
    ),
)

k8s.core.v1.Service(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="gke-support",
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

k8s.policy.v1.PodDisruptionBudget(
    "assistant",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant",
        namespace="gke-support",
        labels=assistant_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=assistant_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

# tune: finetuning of meta-llama/Llama-3.3-70B-Instruct on 32 × h200-sxm-141gb, $160/h
tune_labels = {
    "app.kubernetes.io/name": "tune",
    "app.kubernetes.io/part-of": "gke",
    "app.kubernetes.io/component": "finetuning",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "support",
}
tune_selector = {"app.kubernetes.io/name": "tune", "app.kubernetes.io/part-of": "gke"}
tune_resources = {
    # 48 physical cores of 2 threads
    "cpu": "96",
    # 16 GiB of it is shared memory
    "memory": "1128Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "8",
}

tune_account = k8s.core.v1.ServiceAccount(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="tune", namespace="gke-support", labels=tune_labels),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

tune_secret = k8s.core.v1.Secret(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="tune", namespace="gke-support", labels=tune_labels),
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
        namespace="gke-support",
        labels=tune_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="lustre",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "148Gi"}),
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
        namespace="gke-support",
        labels=tune_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="lustre",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "3036Gi"}),
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
        namespace="gke-support",
        labels=tune_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="lustre",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "44Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

tune_devices = k8s.resource.v1.ResourceClaimTemplate(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="tune", namespace="gke-support", labels=tune_labels),
    spec=k8s.resource.v1.ResourceClaimTemplateSpecArgs(
        spec=k8s.resource.v1.ResourceClaimSpecArgs(
            devices=k8s.resource.v1.DeviceClaimArgs(
                requests=[
                    k8s.resource.v1.DeviceRequestArgs(
                        name="cards",
                        exactly=k8s.resource.v1.ExactDeviceRequestArgs(
                            device_class_name="mrdma.google.com",
                            allocation_mode="ExactCount",
                            # the cards beside its GPUs
                            count=8,
                        ),
                    ),
                ],
            ),
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_support_namespace],
    ),
)

tune_service = k8s.core.v1.Service(
    "tune",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="tune",
        namespace="gke-support",
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
        namespace="gke-support",
        labels=tune_labels,
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
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=tune_labels),
            spec=k8s.core.v1.PodSpecArgs(
                service_account_name="tune",
                automount_service_account_token=False,
                # a Service called like the engine would set variables that the engine reads
                enable_service_links=False,
                priority_class_name="gke-normal",
                restart_policy="Never",
                subdomain="tune",
                node_selector={
                    "gpuplan.dev/stack": "gke",
                    "gpuplan.dev/pool": "h200-sxm-141gb-x8",
                    "node.kubernetes.io/instance-type": "a3-ultragpu-8g",
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
                            "--nnodes=4",
                            "--node-rank=$(JOB_COMPLETION_INDEX)",
                            "--master-addr=tune-0.tune",
                            "--master-port=29500",
                            "--nproc-per-node=8",
                            "/opt/Megatron-Bridge/scripts/training/run_recipe.py",
                            "--recipe=llama31_70b_sft_config",
                            "--dataset=llm-finetune-preloaded",
                            "--seq_length=8192",
                            # 8 replicas × 8 micro-batches of 1 = 64 sequences a step
                            "model.tensor_model_parallel_size=4",
                            "model.sequence_parallel=true",
                            "model.pipeline_model_parallel_size=1",
                            "model.virtual_pipeline_model_parallel_size=null",
                            "model.account_for_embedding_in_pipeline_split=false",
                            "model.account_for_loss_in_pipeline_split=false",
                            "model.context_parallel_size=1",
                            "model.recompute_granularity=null",
                            "model.recompute_method=null",
                            "model.recompute_num_layers=null",
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
                            "train.train_iters=1145",
                            "train.global_batch_size=64",
                            "train.micro_batch_size=1",
                            # not sized: a tenth of the run, 2,000 steps at most
                            "scheduler.lr_warmup_iters=114",
                            "tokenizer.tokenizer_type=HuggingFaceTokenizer",
                            "tokenizer.tokenizer_model=meta-llama/Llama-3.3-70B-Instruct",
                            "dataset.dataset_root=/data/support-dialogues",
                            "checkpoint.pretrained_checkpoint=/checkpoints/pretrained",
                            "checkpoint.save=/checkpoints/run",
                            # a pod that starts again goes on
                            "checkpoint.load=/checkpoints/run",
                            # as the volume is sized
                            "checkpoint.most_recent_k=2",
                            # about 26531.4 s at the predicted 13.7 s a step
                            "checkpoint.save_interval=1931",
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
                            claims=[k8s.core.v1.ResourceClaimArgs(name="cards")],
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
                resource_claims=[
                    k8s.core.v1.PodResourceClaimArgs(
                        name="cards",
                        resource_claim_template_name="tune",
                    ),
                ],
            ),
        ),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            cluster.tenant_support_quota,
            cluster.priority_normal_class,
            network.tenant_support_policy,
            network.tune_policy,
            tune_account,
            tune_secret,
            tune_models_claim,
            tune_checkpoints_claim,
            tune_dataset_claim,
            tune_devices,
            tune_service,
        ],
        delete_before_replace=True,
    ),
)
