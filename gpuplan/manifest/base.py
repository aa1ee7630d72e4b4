"""What every document of a manifest is made of."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import (
    definition_reference_schema,
    definitions_schema,
    no_info_before_validator_function,
    no_info_plain_validator_function,
)

from gpuplan.frozen import frozen

NAMES = "x-names"  # in a schema: what the field is a name of
DOCUMENT = "document"  # in what pydantic makes of a type: the document that is made later
QUANTITY = "x-quantity"  # in a schema: what is written with a unit
NAME = r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$"
NAME_LENGTH = 40  # of the longest one
CLASS_NAME = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$"
LABEL_KEY = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)"
SERVER = rf"^https?://{HOST}(:[0-9]{{1,5}})?(/[A-Za-z0-9._~/-]*)?$"
REGISTRY = rf"^{HOST}(:[0-9]{{1,5}})?(/[a-z0-9]([a-z0-9._/-]*[a-z0-9])?)?$"
RULES = {
    NAME: "Lower-case letters, digits and '-', at most 40 characters, a letter first.",
    CLASS_NAME: "A name as Kubernetes has it: lower-case letters, digits, '-' and '.'.",
    LABEL_KEY: "The key of a label of Kubernetes, with its prefix: example.com/name.",
    SERVER: "http:// or https://, a host, perhaps a port and a path; no user, no password.",
    REGISTRY: "A host, perhaps a port and a path in lower case, without http://.",
    VARIABLE: "Letters, digits and '_', no digit first.",
}


class Document(BaseModel):
    """Unknown fields are errors; scalars are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


@frozen
class _Later:
    """What reads a document is made when one is met: most manifests have few of them, and making
    what reads all of them takes longer than to read one."""

    def __get_pydantic_core_schema__(self, source: Any, _: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_plain_validator_function(source.model_validate, metadata={DOCUMENT: source})

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        from pydantic import TypeAdapter

        kind = schema["metadata"][DOCUMENT]
        named: Any = {**TypeAdapter(kind).core_schema, "ref": f"{kind.__qualname__}:{id(kind)}"}
        return handler(definitions_schema(definition_reference_schema(named["ref"]), [named]))


D = TypeVar("D", bound=Document)
Later = Annotated[D, _Later()]


def required(description: str, *examples: object) -> Any:
    """A field that must be written. The first of `examples` stands in docs/manifest.md; each is
    accepted (tests/cli/test_manifest_fields.py)."""
    return Field(description=description, examples=list(examples))


def optional(description: str, *examples: object) -> Any:
    """As `required`; None where it is not written."""
    return Field(None, description=description, examples=list(examples))


@frozen
class Names:
    """The field is a name of `kind`: `gpuplan.schemas` lists those that there are."""

    kind: Literal["gpu", "model", "engine"]

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), NAMES: self.kind}


Name = Annotated[str, Field(pattern=NAME, description=RULES[NAME])]
Positive = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
GpusOfNode = Annotated[int, Field(ge=1, le=1024)]
Text = Annotated[str, Field(pattern=r"\S", description="A text that is not empty.")]
GpuName = Annotated[str, Field(pattern=r"\S"), Names("gpu")]
ModelName = Annotated[str, Field(pattern=r"\S"), Names("model")]
EngineName = Annotated[str, Field(pattern=r"\S"), Names("engine")]
ClassName = Annotated[str, Field(pattern=CLASS_NAME, max_length=253, description=RULES[CLASS_NAME])]
LabelKey = Annotated[str, Field(pattern=LABEL_KEY, max_length=253, description=RULES[LABEL_KEY])]
QueueName = Annotated[str, Field(pattern=CLASS_NAME, max_length=63, description=RULES[CLASS_NAME])]


@frozen
class Shorthand:
    """Accept a bare number or text where a mapping with `field` is meant; the schema says so."""

    field: str
    kind: Literal["number", "string", "duration"]
    names: Literal["", "model", "engine"] = ""

    def expand(self, value: object) -> object:
        kinds = {"string": (str,), "number": (int, float)}.get(self.kind, (str, int, float))
        bare = isinstance(value, kinds) and not isinstance(value, bool)
        return {self.field: value} if bare else value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_before_validator_function(self.expand, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        named = {NAMES: self.names} if self.names else {}
        bare: dict[str, str] = {"type": self.kind, **named}
        if self.kind == "duration":
            bare = {"type": "string", QUANTITY: "duration with its unit"}
        return {"anyOf": [handler(schema), bare]}
