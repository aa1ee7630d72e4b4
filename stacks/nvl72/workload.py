"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

# Where each workload is found.
addresses = {"reader": "http://reader.nvl72-legal.svc:8000"}

# reader: inference of meta-llama/Llama-3.1-405B-Instruct on 16 × gb200-186gb, $433/h
reader_labels = {
    "app.kubernetes.io/name": "reader",
    "app.kubernetes.io/part-of": "nvl72",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "legal",
}
reader_selector = {"app.kubernetes.io/name": "reader", "app.kubernetes.io/part-of": "nvl72"}
reader_resources = {
    # 24 physical cores as one CPU each: their threads are not known
    "cpu": "24",
    # 16 GiB of it is shared memory
    "memory": "744Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "4",
}

reader_account = k8s.core.v1.ServiceAccount(
    "reader",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader",
        namespace="nvl72-legal",
        labels=reader_labels,
    ),
    automount_service_account_token=False,
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_legal_namespace],
    ),
)

reader_models_claim = k8s.core.v1.PersistentVolumeClaim(
    "reader-models",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader-models",
        namespace="nvl72-legal",
        labels=reader_labels,
    ),
    spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
        access_modes=["ReadWriteMany"],
        storage_class_name="models-rwx",
        resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": "832Gi"}),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_legal_namespace],
        protect=True,
        retain_on_delete=True,
    ),
)

reader_computedomain = k8s.apiextensions.CustomResource(
    "reader",
    api_version="resource.nvidia.com/v1beta1",
    kind="ComputeDomain",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader",
        namespace="nvl72-legal",
        labels=reader_labels,
    ),
    spec={
        # its daemons start with the pods and wait for nobody
        "numNodes": 0,
        "channel": {"resourceClaimTemplate": {"name": "reader-nvlink"}},
    },
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[*addons.installed, cluster.tenant_legal_namespace],
    ),
)

k8s.apiextensions.CustomResource(
    "reader",
    api_version="leaderworkerset.x-k8s.io/v1",
    kind="LeaderWorkerSet",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader-nodes",
        namespace="nvl72-legal",
        labels={
            "app.kubernetes.io/name": "reader",
            "app.kubernetes.io/part-of": "nvl72",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "legal",
            "kueue.x-k8s.io/queue-name": "gpus",
        },
    ),
    spec={
        # each on 8 × gb200-186gb; meets mean time per output token and time to first token p95 and
        # requests per second and gpu memory
        "replicas": 2,
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": {
            "type": "RollingUpdate",
            # no GPU is spare: one pod goes before one comes
            "rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "leaderWorkerTemplate": {
            # a pod on each node
            "size": 2,
            # a replica whose part is gone serves nothing: its pods come anew, all of them
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": {
                "metadata": {
                    "labels": {
                        "app.kubernetes.io/name": "reader",
                        "app.kubernetes.io/part-of": "nvl72",
                        "app.kubernetes.io/component": "inference",
                        "app.kubernetes.io/managed-by": "gpuplan",
                        "gpuplan.dev/tenant": "legal",
                        "gpuplan.dev/role": "leader",
                    },
                },
                "spec": {
                    "serviceAccountName": "reader",
                    "automountServiceAccountToken": False,
                    # a Service called like the engine would set variables that the engine reads
                    "enableServiceLinks": False,
                    "priorityClassName": "nvl72-normal",
                    "terminationGracePeriodSeconds": 96,
                    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-GB200"},
                    "affinity": {
                        # NVLink joins the GPUs of all 2 nodes
                        "podAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "labelSelector": {"matchLabels": reader_selector},
                                    "matchLabelKeys": ["leaderworkerset.sigs.k8s.io/group-index"],
                                    "topologyKey": "nvidia.com/gpu.clique",
                                },
                            ],
                        },
                        "podAntiAffinity": {
                            # where most nodes are free: groups that begin where one has room wait
                            # for ever
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 100,
                                    "podAffinityTerm": {
                                        "labelSelector": {
                                            "matchLabels": {
                                                "app.kubernetes.io/name": "reader",
                                                "app.kubernetes.io/part-of": "nvl72",
                                                "gpuplan.dev/role": "leader",
                                            },
                                        },
                                        "topologyKey": "nvidia.com/gpu.clique",
                                    },
                                },
                                {
                                    "weight": 50,
                                    "podAffinityTerm": {
                                        "labelSelector": {
                                            "matchExpressions": [
                                                {
                                                    "key": "app.kubernetes.io/managed-by",
                                                    "operator": "In",
                                                    "values": ["gpuplan"],
                                                },
                                                {
                                                    "key": "app.kubernetes.io/name",
                                                    "operator": "NotIn",
                                                    "values": ["reader"],
                                                },
                                            ],
                                        },
                                        "namespaceSelector": {},
                                        "topologyKey": "nvidia.com/gpu.clique",
                                    },
                                },
                            ],
                        },
                    },
                    "tolerations": [
                        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                    ],
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [
                        {
                            "name": "engine",
                            "image": "vllm/vllm-openai:v0.27.1",
                            "command": ["vllm", "serve"],
                            "args": [
                                "meta-llama/Llama-3.1-405B-Instruct",
                                "--revision=be673f326cab4cd22ccfef76109faf68e41aa5f1",
                                "--host=0.0.0.0",
                                "--port=8000",
                                "--dtype=bfloat16",
                                # 94.5 GiB of weights on each of 8 GPUs
                                "--tensor-parallel-size=8",
                                "--max-model-len=20480",
                                # requests at once; their KV cache takes 14.3 GiB of a GPU
                                "--max-num-seqs=56",
                                "--max-num-batched-tokens=9216",
                                # 166 GiB of 185 GiB
                                "--gpu-memory-utilization=0.9",
                                "--kv-cache-dtype=auto",
                                "--distributed-executor-backend=mp",
                                "--nnodes=2",
                                "--master-addr=$(LWS_LEADER_ADDRESS)",
                                "--master-port=29501",
                                "--node-rank=0",
                                # an answer of 1,000 tokens, as 95 % are at most, is finished
                                "--shutdown-timeout=51",
                            ],
                            "env": [
                                {"name": "HOME", "value": "/scratch"},
                                {"name": "HF_HOME", "value": "/models"},
                                {"name": "XDG_CACHE_HOME", "value": "/scratch/cache"},
                                {"name": "VLLM_NO_USAGE_STATS", "value": "1"},
                                {
                                    "name": "HF_TOKEN",
                                    "valueFrom": {
                                        "secretKeyRef": {"name": "huggingface", "key": "token"},
                                    },
                                },
                            ],
                            "ports": [{"name": "http", "containerPort": 8000}],
                            "startupProbe": {
                                "httpGet": {"path": "/health", "port": "http"},
                                "periodSeconds": 10,
                                # 756 GiB of published weights to download once and to read, both at
                                # no less than 100 MB/s, and 600 s to warm up
                                "failureThreshold": 1686,
                            },
                            "readinessProbe": {
                                "httpGet": {"path": "/health", "port": "http"},
                                "periodSeconds": 10,
                            },
                            "livenessProbe": {
                                "httpGet": {"path": "/health", "port": "http"},
                                "periodSeconds": 10,
                                "timeoutSeconds": 10,
                                "failureThreshold": 6,
                                # what hangs has no one to drain
                                "terminationGracePeriodSeconds": 10,
                            },
                            "lifecycle": {
                                "preStop": {
                                    "sleep": {
                                        # until no new requests come; then the engine drains
                                        "seconds": 15,
                                    },
                                },
                            },
                            "resources": {
                                "requests": reader_resources,
                                "limits": reader_resources,
                                "claims": [{"name": "nvlink"}],
                            },
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                            "volumeMounts": [
                                {"name": "models", "mountPath": "/models"},
                                {"name": "scratch", "mountPath": "/scratch"},
                                {"name": "tmp", "mountPath": "/tmp"},
                                {"name": "shm", "mountPath": "/dev/shm"},
                            ],
                        },
                    ],
                    "volumes": [
                        {"name": "models", "persistentVolumeClaim": {"claimName": "reader-models"}},
                        {"name": "scratch", "emptyDir": {"sizeLimit": "50Gi"}},
                        {"name": "tmp", "emptyDir": {"sizeLimit": "50Gi"}},
                        {
                            "name": "shm",
                            "emptyDir": {
                                "medium": "Memory",
                                # ranks exchange data through /dev/shm; the default of 64 MiB is too
                                # small
                                "sizeLimit": "16Gi",
                            },
                        },
                    ],
                    "resourceClaims": [
                        {"name": "nvlink", "resourceClaimTemplateName": "reader-nvlink"},
                    ],
                },
            },
            "workerTemplate": {
                "metadata": {
                    "labels": {
                        "app.kubernetes.io/name": "reader",
                        "app.kubernetes.io/part-of": "nvl72",
                        "app.kubernetes.io/component": "inference",
                        "app.kubernetes.io/managed-by": "gpuplan",
                        "gpuplan.dev/tenant": "legal",
                        "gpuplan.dev/role": "worker",
                    },
                },
                "spec": {
                    "serviceAccountName": "reader",
                    "automountServiceAccountToken": False,
                    # a Service called like the engine would set variables that the engine reads
                    "enableServiceLinks": False,
                    "priorityClassName": "nvl72-normal",
                    "terminationGracePeriodSeconds": 96,
                    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-GB200"},
                    "affinity": {
                        # NVLink joins the GPUs of all 2 nodes: the leader comes first
                        "podAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "labelSelector": {
                                        "matchLabels": {
                                            "app.kubernetes.io/name": "reader",
                                            "app.kubernetes.io/part-of": "nvl72",
                                            "gpuplan.dev/role": "leader",
                                        },
                                    },
                                    "matchLabelKeys": ["leaderworkerset.sigs.k8s.io/group-index"],
                                    "topologyKey": "nvidia.com/gpu.clique",
                                },
                            ],
                        },
                    },
                    "tolerations": [
                        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                    ],
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [
                        {
                            "name": "engine",
                            "image": "vllm/vllm-openai:v0.27.1",
                            "command": ["vllm", "serve"],
                            "args": [
                                "meta-llama/Llama-3.1-405B-Instruct",
                                "--revision=be673f326cab4cd22ccfef76109faf68e41aa5f1",
                                "--host=0.0.0.0",
                                "--port=8000",
                                "--dtype=bfloat16",
                                # 94.5 GiB of weights on each of 8 GPUs
                                "--tensor-parallel-size=8",
                                "--max-model-len=20480",
                                # requests at once; their KV cache takes 14.3 GiB of a GPU
                                "--max-num-seqs=56",
                                "--max-num-batched-tokens=9216",
                                # 166 GiB of 185 GiB
                                "--gpu-memory-utilization=0.9",
                                "--kv-cache-dtype=auto",
                                "--distributed-executor-backend=mp",
                                "--nnodes=2",
                                "--master-addr=$(LWS_LEADER_ADDRESS)",
                                "--master-port=29501",
                                "--headless",
                                "--node-rank=$(LWS_WORKER_INDEX)",
                            ],
                            "env": [
                                {"name": "HOME", "value": "/scratch"},
                                {"name": "HF_HOME", "value": "/models"},
                                {"name": "XDG_CACHE_HOME", "value": "/scratch/cache"},
                                {"name": "VLLM_NO_USAGE_STATS", "value": "1"},
                                {
                                    "name": "HF_TOKEN",
                                    "valueFrom": {
                                        "secretKeyRef": {"name": "huggingface", "key": "token"},
                                    },
                                },
                            ],
                            "lifecycle": {
                                "preStop": {
                                    "sleep": {
                                        # until the leader has answered what is at work
                                        "seconds": 66,
                                    },
                                },
                            },
                            "resources": {
                                "requests": reader_resources,
                                "limits": reader_resources,
                                "claims": [{"name": "nvlink"}],
                            },
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                            "volumeMounts": [
                                {"name": "models", "mountPath": "/models"},
                                {"name": "scratch", "mountPath": "/scratch"},
                                {"name": "tmp", "mountPath": "/tmp"},
                                {"name": "shm", "mountPath": "/dev/shm"},
                            ],
                        },
                    ],
                    "volumes": [
                        {"name": "models", "persistentVolumeClaim": {"claimName": "reader-models"}},
                        {"name": "scratch", "emptyDir": {"sizeLimit": "50Gi"}},
                        {"name": "tmp", "emptyDir": {"sizeLimit": "50Gi"}},
                        {
                            "name": "shm",
                            "emptyDir": {
                                "medium": "Memory",
                                # ranks exchange data through /dev/shm; the default of 64 MiB is too
                                # small
                                "sizeLimit": "16Gi",
                            },
                        },
                    ],
                    "resourceClaims": [
                        {"name": "nvlink", "resourceClaimTemplateName": "reader-nvlink"},
                    ],
                },
            },
        },
    },
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_legal_quota,
            cluster.priority_normal_class,
            network.tenant_legal_policy,
            network.reader_policy,
            cluster.tenant_legal_localqueue,
            reader_account,
            reader_models_claim,
            reader_computedomain,
        ],
    ),
)

k8s.core.v1.Service(
    "reader",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader",
        namespace="nvl72-legal",
        labels=reader_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector={
            "app.kubernetes.io/name": "reader",
            "app.kubernetes.io/part-of": "nvl72",
            "gpuplan.dev/role": "leader",
        },
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_legal_namespace],
    ),
)

k8s.policy.v1.PodDisruptionBudget(
    "reader",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader",
        namespace="nvl72-legal",
        labels=reader_labels,
    ),
    spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(
        max_unavailable=1,
        # a drain does not wait for a pod that serves nobody
        unhealthy_pod_eviction_policy="AlwaysAllow",
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=reader_selector),
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_legal_namespace],
    ),
)
