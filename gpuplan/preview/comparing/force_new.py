"""The properties that no update can change, by API group and kind.

The Kubernetes provider's own table: pulumi-kubernetes provider/pkg/provider/diff.go (v4.32.0),
without the API versions that Kubernetes dropped before 1.25. The name and the namespace of every
object belong here too, and the `triggers` of pulumi-command (its schema's `replaceOnChanges`,
v1.2.1).
"""

from __future__ import annotations

IDENTITY = ("metadata.name", "metadata.namespace")
HELM_RELEASE = ("name", "namespace")  # helm_release.go, Diff
COMMAND = ("triggers",)

_VOLUME_SOURCES = """
    awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker
    gcePersistentDisk glusterfs hostPath iscsi local nfs photonPersistentDisk portworxVolume
    quobyte rbd scaleIO storageos vsphereVolume
"""
_POD = """
    affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases
    hostIPC hostNetwork hostPID hostname imagePullSecrets nodeName nodeSelector overhead
    preemptionPolicy priority priorityClassName readinessGates restartPolicy runtimeClassName
    schedulerName securityContext serviceAccount serviceAccountName shareProcessNamespace subdomain
    terminationGracePeriodSeconds volumes
"""
_CONTAINER = """
    args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources
    securityContext stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
    volumeDevices volumeMounts workingDir
"""


def _below(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


_STATEFUL_SET = "podManagementPolicy revisionHistoryLimit selector serviceName volumeClaimTemplates"

KUBERNETES: dict[tuple[str, str], tuple[str, ...]] = {
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "StatefulSet"): _below("spec", _STATEFUL_SET),
    ("batch", "Job"): _below("spec", "completions parallelism selector template"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner"),
    ("", "PersistentVolume"): _below("spec", _VOLUME_SOURCES),
    ("", "PersistentVolumeClaim"): _below(
        "spec", "accessModes selector storageClassName volumeName"
    ),
    ("", "Pod"): (
        *_below("spec", _POD),
        *_below("spec.containers[*]", _CONTAINER),
        *_below("spec.initContainers[*]", _CONTAINER),
    ),
    ("", "ResourceQuota"): ("spec.scopes",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP",),
}
# What a ConfigMap and a Secret hold, unless the provider is told that they are mutable.
HELD_DATA = {"ConfigMap": ("binaryData", "data"), "Secret": ("type", "stringData", "data")}
