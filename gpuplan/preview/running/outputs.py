"""What is known of a resource's outputs before it exists, on the wire."""

from __future__ import annotations

from typing import Any

from gpuplan.preview.urn import package_of
from gpuplan.preview.values import SECRET_SIGNATURE, SIGNATURE, UNKNOWN_WIRE


def known_outputs(request: Any) -> Any:
    """The inputs, which every provider gives back; what is missing the SDK holds for unknown.

    Takes a RegisterResourceRequest, gives a Struct. A name that the Kubernetes provider would make
    up is unknown, and so are Azure's identities, a list that comes back as a map; outputs that the
    program declares secret are.
    """
    outputs = type(request.object)()
    outputs.CopyFrom(request.object)
    if package_of(request.type) == "kubernetes" and _is_autonamed(outputs):
        outputs.get_or_create_struct("metadata").update({"name": UNKNOWN_WIRE})
    if package_of(request.type) == "azure-native" and "identity" in outputs.fields:
        outputs.update({"identity": UNKNOWN_WIRE})
    for name in request.additionalSecretOutputs:
        if name in outputs.fields and not _is_secret(outputs.fields[name]):
            _hide(outputs, name)
    return outputs


def _hide(outputs: Any, name: str) -> None:
    plain = type(outputs.fields[name])()
    plain.CopyFrom(outputs.fields[name])
    wrapped = outputs.get_or_create_struct(name)
    wrapped.Clear()
    wrapped.update({SIGNATURE: SECRET_SIGNATURE})
    wrapped.fields["value"].CopyFrom(plain)


def _is_secret(value: Any) -> bool:
    fields = value.struct_value.fields
    return SIGNATURE in fields and fields[SIGNATURE].string_value == SECRET_SIGNATURE


def _is_autonamed(outputs: Any) -> bool:
    """Whether the Kubernetes provider would choose the object's name."""
    if "kind" not in outputs.fields:
        return False
    if "metadata" not in outputs.fields:  # reading a missing field of a Struct would add it
        return True
    metadata = outputs.fields["metadata"]
    named = "name" in metadata.struct_value.fields
    return metadata.WhichOneof("kind") == "struct_value" and not named
