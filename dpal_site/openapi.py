"""Tags, examples and schemas that the description of the REST interface has beside those of its routes."""

import json
import re
import shlex
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from django.utils.translation import override

from annotation.choices.presets import PRESETS
from annotation.projects.forms.configuration import settings_schema

# Each module of routes begins by it.
BEGINNING: Final = re.compile(r"^(The )?REST routes? (of |for )?(the )?")
# Of a value that only its name explains.
BY_NAME: Final[Mapping[str, Any]] = {
    "slug": "intents",
    "version": "latest",
    "channel": "stable",
    "name": "Intents",
    "reason": "The guidelines changed.",
    "question": "What does this person want?",
    "text": "Where is my parcel?",
    "texts": ["Where is my parcel?"],
    "url": "https://hooks.example.org/dpal",
    "address": "file:///srv/tables/log",
    "username": "ada",
    "token": "secret-of-the-platform",
    "delta_limit": 1e-6,
    "typed": "intents",
    "format": "dpal-configuration",
    "format_version": 1,
    "settings": {"name": "Intents", "question": "What does this person want?", "classes": ["praise", "complaint"]},
    "records": [{"text": "Where is my parcel?"}],
}
BY_FORMAT: Final[Mapping[str, Any]] = {
    "uuid": "00000000-0000-4000-8000-000000000000",
    "date-time": "2026-01-31T12:00:00Z",
    "binary": "@file.csv",
}
BY_TYPE: Final[Mapping[str, Any]] = {"string": "a", "integer": 1, "number": 1.0, "boolean": True, "object": {}}

PYTHON: Final[Mapping[str, type]] = {"string": str, "array": list, "object": dict, "integer": int, "number": float}


def tag_of(module: str) -> str:
    """Return the room whose routes a module has."""
    room = module.split(".")[-2]
    return {"annotation": "projects", "learner": "releases"}.get(room, room)


def described_tags(modules: Mapping[str, str]) -> list[dict[str, str]]:
    found: dict[str, list[str]] = {}
    for module, tag in modules.items():
        sentence = BEGINNING.sub("", str(import_module(module).__doc__).strip())
        found.setdefault(tag, []).append(sentence[0].upper() + sentence[1:])
    return [{"name": tag, "description": " ".join(sentences)} for tag, sentences in found.items()]


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str = "") -> Any:
    """Return the smallest value that fits a schema: what is required, or the first field where nothing is."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    # A nullable value is described as it is where it is there.
    options = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ()) if one != {"type": "null"}]
    if options and "properties" not in schema:
        return example_of(options[0], schemas, name)
    if name in BY_NAME and isinstance(BY_NAME[name], PYTHON.get(schema.get("type", ""), object)):
        return BY_NAME[name]
    if properties := schema.get("properties"):
        wanted = schema.get("required") or list(properties)[:1]
        return {each: example_of(properties[each], schemas, each) for each in wanted}
    if schema.get("type") == "array":
        return [example_of(schema.get("items", {}), schemas, name)]
    if "format" in schema and schema["format"] in BY_FORMAT:
        return BY_FORMAT[schema["format"]]
    plain = BY_TYPE.get(schema.get("type", ""), "a")
    return max(schema.get("minimum", plain), plain) if schema.get("type") in ("integer", "number") else plain


def add_example(path: str, method: str, operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Give an operation an example of its body and a call that a person can paste."""
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            found = example_of(parameter["schema"], schemas, parameter["name"])
            path = path.replace(f"{{{parameter['name']}}}", str(found))
    call = f'curl -H "Authorization: Bearer $TOKEN" -X {method.upper()} "$SITE{path}"'
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        body = content["example"] = example_of(content["schema"], schemas)
        if kind == "application/json":
            call += f" --json {shlex.quote(json.dumps(body))}"
        else:
            call += "".join(f" -F {shlex.quote(f'{name}={value}')}" for name, value in body.items())
    operation["x-codeSamples"] = [{"lang": "Shell", "source": call}]


def preset_schemas() -> dict[str, dict[str, Any]]:
    with override("en"):
        return {f"Settings-{key}": settings_schema(preset) for key, preset in PRESETS.items()}


def by_preset() -> list[dict[str, Any]]:
    """Return, for each preset, what a configuration file that names it holds."""
    return [
        {
            "title": key,
            "properties": {
                "preset": {"const": key},
                "settings": {"$ref": f"#/components/schemas/Settings-{key}"},
            },
        }
        for key in PRESETS
    ]
