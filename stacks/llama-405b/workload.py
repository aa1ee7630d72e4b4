"""The workloads: their accounts, secrets, volumes, pods and addresses."""

import pulumi
import pulumi_kubernetes as k8s

import addons
import cluster
import network

# Where each workload is found.
addresses = {"reader": "http://reader.llama-405b-legal.svc:8000"}

# reader: inference of meta-llama/Llama-3.1-405B-Instruct on 12 × h100-sxm-80gb, $82.56/h
reader_labels = {
    "app.kubernetes.io/name": "reader",
    "app.kubernetes.io/part-of": "llama-405b",
    "app.kubernetes.io/component": "inference",
    "app.kubernetes.io/managed-by": "gpuplan",
    "gpuplan.dev/tenant": "legal",
}
reader_selector = {"app.kubernetes.io/name": "reader", "app.kubernetes.io/part-of": "llama-405b"}
reader_resources = {
    # 24 physical cores as one CPU each: their threads are not known
    "cpu": "24",
    # 16 GiB of it is shared memory
    "memory": "320Gi",
    "ephemeral-storage": "50Gi",
    "nvidia.com/gpu": "4",
    "rdma/rdma_shared_device_a": "4",
}

reader_account = k8s.core.v1.ServiceAccount(
    "reader",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader",
        namespace="llama-405b-legal",
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
        namespace="llama-405b-legal",
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

k8s.apiextensions.CustomResource(
    "reader",
    api_version="leaderworkerset.x-k8s.io/v1",
    kind="LeaderWorkerSet",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader-nodes",
        namespace="llama-405b-legal",
        labels={
            "app.kubernetes.io/name": "reader",
            "app.kubernetes.io/part-of": "llama-405b",
            "app.kubernetes.io/component": "inference",
            "app.kubernetes.io/managed-by": "gpuplan",
            "gpuplan.dev/tenant": "legal",
            "kueue.x-k8s.io/queue-name": "gpus",
        },
    ),
    spec={
        # each on 12 × h100-sxm-80gb; meets mean time per output token and time to first token p95
        # and requests per second and gpu memory
        "replicas": 1,
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": {
            "type": "RollingUpdate",
            # no GPU is spare: the one pod goes before its successor comes, so an update is an
            # outage, of 159 min at the worst
            "rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "leaderWorkerTemplate": {
            # a pod on each node
            "size": 3,
            # a replica whose part is gone serves nothing: its pods come anew, all of them
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": {
                "metadata": {
                    "labels": {
                        "app.kubernetes.io/name": "reader",
                        "app.kubernetes.io/part-of": "llama-405b",
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
                    "priorityClassName": "llama-405b-high",
                    "terminationGracePeriodSeconds": 185,
                    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
                    "affinity": {
                        # nodes of one switch, as far as there are some
                        "podAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 100,
                                    "podAffinityTerm": {
                                        "labelSelector": {"matchLabels": reader_selector},
                                        "matchLabelKeys": [
                                            "leaderworkerset.sigs.k8s.io/group-index",
                                        ],
                                        "topologyKey": "example.com/leaf-switch",
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
                                "--quantization=fp8",
                                # 31.8 GiB of weights on each of 12 GPUs
                                "--tensor-parallel-size=4",
                                "--pipeline-parallel-size=3",
                                "--max-model-len=20480",
                                # requests at once; their KV cache takes 20.7 GiB of a GPU
                                "--max-num-seqs=117",
                                "--max-num-batched-tokens=9216",
                                # 71.3 GiB of 79.6 GiB
                                "--gpu-memory-utilization=0.9",
                                "--kv-cache-dtype=auto",
                                "--distributed-executor-backend=mp",
                                "--nnodes=3",
                                "--master-addr=$(LWS_LEADER_ADDRESS)",
                                "--master-port=29501",
                                "--node-rank=0",
                                # an answer of 1,000 tokens, as 95 % are at most, is finished
                                "--shutdown-timeout=140",
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
                            "resources": {"requests": reader_resources, "limits": reader_resources},
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {
                                    "drop": ["ALL"],
                                    # RDMA registers pinned memory
                                    "add": ["IPC_LOCK"],
                                },
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
                },
            },
            "workerTemplate": {
                "metadata": {
                    "labels": {
                        "app.kubernetes.io/name": "reader",
                        "app.kubernetes.io/part-of": "llama-405b",
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
                    "priorityClassName": "llama-405b-high",
                    "terminationGracePeriodSeconds": 185,
                    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
                    "affinity": {
                        # nodes of one switch, as far as there are some
                        "podAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 100,
                                    "podAffinityTerm": {
                                        "labelSelector": {"matchLabels": reader_selector},
                                        "matchLabelKeys": [
                                            "leaderworkerset.sigs.k8s.io/group-index",
                                        ],
                                        "topologyKey": "example.com/leaf-switch",
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
                                "--quantization=fp8",
                                # 31.8 GiB of weights on each of 12 GPUs
                                "--tensor-parallel-size=4",
                                "--pipeline-parallel-size=3",
                                "--max-model-len=20480",
                                # requests at once; their KV cache takes 20.7 GiB of a GPU
                                "--max-num-seqs=117",
                                "--max-num-batched-tokens=9216",
                                # 71.3 GiB of 79.6 GiB
                                "--gpu-memory-utilization=0.9",
                                "--kv-cache-dtype=auto",
                                "--distributed-executor-backend=mp",
                                "--nnodes=3",
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
                                        "seconds": 155,
                                    },
                                },
                            },
                            "resources": {"requests": reader_resources, "limits": reader_resources},
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {
                                    "drop": ["ALL"],
                                    # RDMA registers pinned memory
                                    "add": ["IPC_LOCK"],
                                },
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
                },
            },
        },
    },
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[
            *addons.installed,
            cluster.tenant_legal_quota,
            cluster.priority_high_class,
            network.tenant_legal_policy,
            network.reader_policy,
            cluster.tenant_legal_localqueue,
            reader_account,
            reader_models_claim,
        ],
    ),
)

k8s.core.v1.Service(
    "reader",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="reader",
        namespace="llama-405b-legal",
        labels=reader_labels,
        annotations={"pulumi.com/skipAwait": "true"},
    ),
    spec=k8s.core.v1.ServiceSpecArgs(
        type="ClusterIP",
        selector={
            "app.kubernetes.io/name": "reader",
            "app.kubernetes.io/part-of": "llama-405b",
            "gpuplan.dev/role": "leader",
        },
        ports=[k8s.core.v1.ServicePortArgs(name="http", port=8000, target_port="http")],
    ),
    opts=pulumi.ResourceOptions(
        provider=cluster.provider,
        depends_on=[cluster.tenant_legal_namespace],
    ),
)
