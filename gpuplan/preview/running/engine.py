"""The engine of a preview: answers a program as `pulumi preview` does when nothing exists yet.

Two gRPC services (ResourceMonitor, Engine) on one Unix socket and one worker thread, so requests
are handled one by one and no state needs a lock. Nothing is created: identifiers and outputs that
providers make stay unknown.
Source: pulumi pkg/resource/deploy/source_eval.go and step_generator.go (3.259).
"""

from __future__ import annotations

import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn

from gpuplan.preview import urn as urns
from gpuplan.preview.registered import LogMessage
from gpuplan.preview.running.outputs import known_outputs
from gpuplan.preview.running.protocol import Protocol
from gpuplan.preview.values import UNKNOWN_WIRE

MAXIMUM_MESSAGE_BYTES = 400 * 1024 * 1024  # the SDK's own limit
FEATURES = (
    "SECRETS",
    "RESOURCE_REFERENCES",
    "ALIAS_SPECS",
    "REPLACEMENT_TRIGGER",
    "DELETED_WITH",
    "REPLACE_WITH",
    "PARAMETERIZATION",
)
LEGACY_FEATURES = {
    "secrets",
    "resourceReferences",
    "aliasSpecs",
    "replacementTrigger",
    "deletedWith",
    "replaceWith",
    "parameterization",
}
# The namespace whose UID tells a cluster from all others.
IDENTITY = ("kubernetes:core/v1:Namespace", "kube-system")
_TYPE_TOKEN = re.compile(r"[^:]+:[^:]*:[^:]+")


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration as it came, with what the engine decided: name, inheritance, provider."""

    urn: str
    request: Any
    protect: bool
    retain_on_delete: bool
    provider: str
    package_version: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused. `kind` is invoke, call, read, duplicate or option."""

    kind: str
    subject: str
    request: Any
    message: str


@dataclass(slots=True)
class Monitor:
    """The ResourceMonitor service; method names are the protocol's. `cluster_uid` is that of the
    cluster which a program is let to believe that it reaches."""

    protocol: Protocol
    project: str
    stack: str
    cluster_uid: str | None = None
    registrations: dict[str, Registration] = field(default_factory=dict)
    outputs: Any = None
    packages: dict[str, Any] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    messages: list[LogMessage] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if not name[0].isupper():
            raise AttributeError(name)
        return self._unsupported(name)

    def _unsupported(self, name: str) -> Any:
        code = self.protocol.grpc.StatusCode.UNIMPLEMENTED

        def handler(_request: Any, context: Any) -> NoReturn:
            context.abort(code, f"a preview does not support {name}")
            raise AssertionError

        return handler

    def _refuse(
        self, context: Any, kind: str, subject: str, request: Any, message: str
    ) -> NoReturn:
        self.refusals.append(Refusal(kind, subject, request, message))
        context.abort(self.protocol.grpc.StatusCode.FAILED_PRECONDITION, message)
        raise AssertionError

    # --- what the SDK asks first ------------------------------------------------------------------

    def GetDeploymentInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        known = self.protocol.resource.ResourceMonitorFeature
        names = (f"RESOURCE_MONITOR_FEATURE_{f}" for f in FEATURES)
        return self.protocol.resource.DeploymentInfo(
            project=self.project,
            stack=self.stack,
            dryRun=True,
            supportedFeatures=[known.Value(n) for n in names if n in known.keys()],  # noqa: SIM118
        )

    def SupportsFeature(self, request: Any, _context: Any) -> Any:  # noqa: N802
        supported = request.id in LEGACY_FEATURES
        return self.protocol.resource.SupportsFeatureResponse(hasSupport=supported)

    def RegisterPackage(self, request: Any, _context: Any) -> Any:  # noqa: N802
        reference = str(uuid.uuid5(uuid.NAMESPACE_URL, request.SerializeToString().hex()))
        self.packages[reference] = request
        return self.protocol.resource.RegisterPackageResponse(ref=reference)

    # --- resources --------------------------------------------------------------------------------

    def RegisterResource(self, request: Any, context: Any) -> Any:  # noqa: N802
        parent = self.registrations.get(request.parent)
        if request.parent and parent is None:
            text = f"could not find parent resource {request.parent}"
            self._refuse(context, "option", request.parent, request, text)
        managed = request.custom or request.remote
        if managed and not _TYPE_TOKEN.fullmatch(request.type):
            text = f"'{request.type}' is not a type of the form package:module:Name"
            self._refuse(context, "option", request.type, request, text)
        urn = self._urn(request)
        if urn in self.registrations:
            text = f"Duplicate resource URN '{urn}'; try giving it a unique name"
            self._refuse(context, "duplicate", urn, request, text)
        self.registrations[urn] = self._registration(urn, request, parent)
        return self.protocol.resource.RegisterResourceResponse(
            urn=urn,
            id=UNKNOWN_WIRE if request.type.startswith(urns.PROVIDER_TYPE) else "",
            object=known_outputs(request) if request.custom else None,
        )

    def _urn(self, request: Any) -> str:
        parent_type = urns.qualified_type(request.parent) if request.parent else ""
        return urns.make(self.stack, self.project, parent_type, request.type, request.name)

    def _registration(self, urn: str, request: Any, parent: Registration | None) -> Registration:
        package = self.packages.get(request.packageRef)
        return Registration(
            urn=urn,
            request=request,
            protect=_own_or(request, "protect", parent),
            retain_on_delete=_own_or(request, "retainOnDelete", parent, "retain_on_delete"),
            provider=self._provider(request, parent),
            package_version=request.version or (package.version if package else ""),
            aliases=tuple(self._aliases(request, parent)),
        )

    def _provider(self, request: Any, parent: Registration | None) -> str:
        """The provider's reference (`URN::ID`), empty for the default one."""
        if request.provider or parent is None:
            return str(request.provider)
        package = urns.package_of(request.type)
        for offered in (request.providers, parent.request.providers):
            if package in offered and (request.custom or request.remote):
                return str(offered[package])
        fits = urns.package_of(urns.type_of(parent.provider.rpartition("::")[0])) == package
        inherits = fits or not (request.custom or request.remote)
        return parent.provider if inherits else ""

    def _aliases(self, request: Any, parent: Registration | None) -> list[str]:
        """URNs this resource had before, its own and those it has through its parent's."""
        own = [*request.aliasURNs, *(self._alias(a, request) for a in request.aliases)]
        aliases = list(own)
        for parent_alias in parent.aliases if parent else ():
            parent_name = parent.request.name if parent else ""
            names = [(request.type, request.name)]
            names += [(urns.type_of(a), urns.name_of(a)) for a in own]
            for kind, name in names:
                aliases.append(urns.inherited_alias(kind, name, parent_name, parent_alias))
        return sorted(set(aliases))

    def _alias(self, alias: Any, request: Any) -> str:
        if alias.WhichOneof("alias") == "urn":
            return str(alias.urn)
        spec = alias.spec
        parent = "" if spec.noParent else spec.parentUrn or request.parent
        return urns.make(
            spec.stack or self.stack,
            spec.project or self.project,
            urns.qualified_type(parent) if parent else "",
            spec.type or request.type,
            spec.name or request.name,
        )

    def RegisterResourceOutputs(self, request: Any, _context: Any) -> Any:  # noqa: N802
        if urns.type_of(request.urn) == urns.STACK_TYPE:
            self.outputs = request.outputs
        return self.protocol.empty

    def SignalAndWaitForShutdown(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return self.protocol.empty

    # --- what only a provider could answer --------------------------------------------------------

    def Invoke(self, request: Any, context: Any) -> NoReturn:  # noqa: N802
        text = f"a preview has no provider to answer the invoke of '{request.tok}'"
        self._refuse(context, "invoke", request.tok, request, text)

    def Call(self, request: Any, context: Any) -> NoReturn:  # noqa: N802
        text = f"a preview has no provider to answer the call of '{request.tok}'"
        self._refuse(context, "call", request.tok, request, text)

    def ReadResource(self, request: Any, context: Any) -> Any:  # noqa: N802
        if (request.type, request.id) == IDENTITY and self.cluster_uid:
            answer = self.protocol.resource.ReadResourceResponse(urn=self._urn(request))
            metadata = {"name": request.id, "uid": self.cluster_uid}
            answer.properties.update({"metadata": metadata})
            return answer
        if request.type != urns.STACK_REFERENCE_TYPE:
            subject = f"{request.type} {request.id}"
            text = f"a preview has no provider to read '{subject}'"
            self._refuse(context, "read", subject, request, text)
        urn = self._urn(request)
        text = f"outputs of stack '{request.id}' are unknown here"
        self.messages.append(LogMessage(severity="info", text=text, urn=urn))
        answer = self.protocol.resource.ReadResourceResponse(urn=urn)
        unknown = dict.fromkeys(("outputs", "secretOutputNames"), UNKNOWN_WIRE)
        answer.properties.update({"name": request.id, **unknown})
        return answer


@dataclass(slots=True)
class Log:
    """The Engine service: the program's messages and the root resource."""

    protocol: Protocol
    messages: list[LogMessage]
    root: str = ""

    def Log(self, request: Any, _context: Any) -> Any:  # noqa: N802
        severities = {1: "info", 2: "warning", 3: "error"}
        if request.severity in severities and not request.ephemeral:
            kind: Any = severities[request.severity]
            self.messages.append(LogMessage(severity=kind, text=request.message, urn=request.urn))
        return self.protocol.empty

    def GetRootResource(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return self.protocol.engine.GetRootResourceResponse(urn=self.root)

    def SetRootResource(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self.root = request.urn
        return self.protocol.engine.SetRootResourceResponse()

    def StartDebugging(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return self.protocol.empty

    def RequirePulumiVersion(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return self.protocol.engine.RequirePulumiVersionResponse()


class Engine:
    """Both services, listening at `address` while the context is open."""

    def __init__(
        self,
        protocol: Protocol,
        address: str,
        project: str,
        stack: str,
        cluster_uid: str | None = None,
    ) -> None:
        self.monitor = Monitor(protocol, project, stack, cluster_uid)
        options = [
            (f"grpc.max_{way}_message_length", MAXIMUM_MESSAGE_BYTES) for way in ("receive", "send")
        ]
        self._server = protocol.grpc.server(ThreadPoolExecutor(max_workers=1), options=options)
        protocol.resource_grpc.add_ResourceMonitorServicer_to_server(self.monitor, self._server)
        log = Log(protocol, self.monitor.messages)
        protocol.engine_grpc.add_EngineServicer_to_server(log, self._server)
        self._server.add_insecure_port(address)

    def __enter__(self) -> Monitor:
        self._server.start()
        return self.monitor

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _problem: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._server.stop(None).wait()


def _own_or(request: Any, name: str, parent: Registration | None, inherited: str = "") -> bool:
    if request.HasField(name):
        return bool(getattr(request, name))
    return bool(getattr(parent, inherited or name)) if parent else False
