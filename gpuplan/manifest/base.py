"""What every document of a manifest is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function


class Document(BaseModel):
    """Unknown fields are errors; scalars are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
        description="Lower-case letters, digits and '-', at most 40 characters, a letter first.",
    ),
]
Positive = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
GpusOfNode = Annotated[int, Field(ge=1, le=1024)]
Text = Annotated[str, Field(pattern=r"\S", description="A text that is not empty.")]
ClassName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
        max_length=253,
        description="A name as Kubernetes has it: lower-case letters, digits, '-' and '.'.",
    ),
]


@dataclass(frozen=True, slots=True)
class Shorthand:
    """Accept a bare number or text where a mapping with `field` is meant; the schema says so."""

    field: str
    kind: Literal["number", "string"]

    def expand(self, value: object) -> object:
        kinds = (str,) if self.kind == "string" else (int, float)
        bare = isinstance(value, kinds) and not isinstance(value, bool)
        return {self.field: value} if bare else value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_before_validator_function(self.expand, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": self.kind}]}
