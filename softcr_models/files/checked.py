"""Data from outside as a model, where nothing is silently taken for what it is not."""

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import SchemaValidator

Model = TypeVar("Model", bound=BaseModel)

_SCALARS = ("bool", "int", "float", "str")
_NO_SCHEMAS = ("default", "metadata", "serialization")


def checked(model: type[Model], content: object) -> Model:
    """Content as a model, as `model.model_validate` makes it, but without conversions of scalars.

    Pydantic takes true for 1, the text "5" for 5 and 5.0 for a whole number. Here these are errors;
    a whole number is still a number, and a list is still a tuple.

    Raises:
        ValidationError: the content is not allowed.
    """
    made: Model = _validator(model).validate_python(content)
    return made


@cache
def _validator(model: type[BaseModel]) -> SchemaValidator:
    schema = _strict(model.__pydantic_core_schema__)
    try:  # otherwise the models inside bring validators of their own
        return SchemaValidator(schema, _use_prebuilt=False)
    except TypeError:  # of a pydantic whose models never do
        return SchemaValidator(schema)


def _strict(schema: Any) -> Any:
    """A copy of a core schema whose scalars are strict, at any depth."""
    if type(schema) in (list, tuple):
        return type(schema)(_strict(each) for each in schema)
    if type(schema) is not dict:
        return schema
    found = {key: each if key in _NO_SCHEMAS else _strict(each) for key, each in schema.items()}
    return found | {"strict": True} if schema.get("type") in _SCALARS else found
