"""The digest of an image, from its registry. Source: OCI Distribution Specification 1.1 (pulling
manifests) and the token authentication of CNCF Distribution."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlencode, urlsplit

from gpuplan.errors import Rejected
from gpuplan.frozen import record
from gpuplan.online import messages
from gpuplan.online.http import OK, Answer, get, refuse

DOCKER_HUB = "registry-1.docker.io"
MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
UNAUTHORIZED = 401
_PART = re.compile(r'([a-z_]+)="([^"]*)"')
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@record
class Reference:
    """An image where it lies: `tag` of `repository` at `host`."""

    host: str
    repository: str
    tag: str

    @property
    def url(self) -> str:
        """Plain HTTP on this machine alone, as container engines have it."""
        own = self.host.rpartition(":")[0] or self.host
        scheme = "http" if own in LOOPBACK else "https"
        return f"{scheme}://{self.host}/v2/{self.repository}/manifests/{self.tag}"


def reference(image: str) -> Reference:
    """Without a host it is of Docker Hub, and there without an owner one of `library`."""
    first, slash, rest = image.partition("/")
    named = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host, path = (first, rest) if named else ("docker.io", image)
    name, _, tag = path.rpartition(":") if ":" in path.rpartition("/")[2] else (path, "", "")
    if host == "docker.io":
        host, name = DOCKER_HUB, name if "/" in name else f"library/{name}"
    return Reference(host=host, repository=name, tag=tag or "latest")


def image_digest(image: str) -> str:
    """Of all platforms together where it is for several. Raises `Rejected`."""
    at = reference(image)
    answer = get(at.url, {"Accept": MANIFESTS})
    if answer.status == UNAUTHORIZED and (challenge := answer.headers.get("WWW-Authenticate")):
        token = _token(challenge, at, image)
        answer = get(at.url, {"Accept": MANIFESTS, "Authorization": f"Bearer {token}"})
    if answer.status != OK:
        refuse(answer, at.host, f"image {image}")
    return _digest(answer, at.host, image)


def _token(challenge: str, at: Reference, image: str) -> str:
    """One for reading, which registries give to everybody. Raises `Rejected`."""
    scheme, _, rest = challenge.partition(" ")
    parts = dict(_PART.findall(rest))
    realm = urlsplit(parts.get("realm", ""))
    own = realm.scheme == "http" and realm.hostname in ("localhost", "127.0.0.1", "::1")
    if scheme.lower() != "bearer" or not realm.netloc or not (realm.scheme == "https" or own):
        raise Rejected([messages.not_allowed(at.host, f"image {image}", UNAUTHORIZED)])
    scope = parts.get("scope") or f"repository:{at.repository}:pull"
    asked = {"service": parts.get("service", ""), "scope": scope}
    query = urlencode({name: value for name, value in asked.items() if value})
    answer = get(f"{realm.geturl()}?{query}")
    if answer.status != OK:
        refuse(answer, realm.netloc, f"image {image}")
    tree = answer.json(realm.netloc, f"image {image}")
    token = (tree.get("token") or tree.get("access_token")) if isinstance(tree, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise Rejected([messages.unusable(realm.netloc, f"image {image}", "it holds no token")])
    return token


def _digest(answer: Answer, host: str, image: str) -> str:
    """Of the bytes that came; the registry must not say another one."""
    digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
    stated = answer.headers.get("Docker-Content-Digest", digest)
    tree = answer.json(host, f"image {image}")
    if not isinstance(tree, dict) or tree.get("schemaVersion") != 2:
        raise Rejected([messages.unusable(host, f"image {image}", "it is no manifest")])
    if stated != digest:
        reason = f"it says {stated} and has {digest}"
        raise Rejected([messages.unusable(host, f"image {image}", reason)])
    return digest
