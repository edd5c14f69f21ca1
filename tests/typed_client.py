"""The typed REST client of `dpal-client`, written from the description of the interface, a method for each route.

`python -m tests.typed_client` writes it; a test fails while it is another one.
"""

import json
import keyword
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
FOLDER = Path(__file__).parents[1] / "client" / "src" / "dpal"
DOCUMENTS, ROUTES = FOLDER / "rest_documents.py", FOLDER / "rest.py"
WRITTEN = "written by `python -m tests.typed_client`."
DOCUMENTS_HEAD = f'''"""What a site's REST interface takes and answers; {WRITTEN}"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

'''
HEAD = f'''"""Every route of a site's REST interface as a method with types; {WRITTEN}"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union, cast

from dpal.rest_documents import *  # noqa: F403
from dpal.site import Site, quoted
from dpal.uploading import upload

'''
CLASS = '''

class Rest:
    """A method for each route; `body` is what the route takes, a list comes page by page.

    >>> rest = Rest(Site("https://dpal.example.org"))  # doctest: +SKIP
    >>> [project["slug"] for project in rest.list_projects()]  # doctest: +SKIP
    """

    def __init__(self, site: Site) -> None:
        self.site = site
'''
UPLOAD = '''    def {name}({arguments}, file: Path, fields: Mapping[str, str]) -> {returned}:
        """{sentence}."""
        return cast("{returned}", upload(self.site, {route}, file, fields, lambda sent: None))
'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
PAGING = frozenset({"limit", "offset"})


def sources(description: Schema) -> dict[Path, str]:
    """Return the modules for a description of the interface."""
    schemas = {
        name: one for name, one in description["components"]["schemas"].items() if name not in ("Page", "Problem")
    }
    documents = "\n".join(_document(name, schema) for name, schema in sorted(schemas.items()))
    methods = "\n".join(
        _method(path, verb, operation)
        for path, verbs in description["paths"].items()
        for verb, operation in verbs.items()
    )
    named = set(re.findall(r"\w+", methods))
    head = HEAD.replace("import *  # noqa: F403", f"import {', '.join(sorted(named & schemas.keys()))}")
    written = {DOCUMENTS: DOCUMENTS_HEAD + documents, ROUTES: head + CLASS + "\n" + methods}
    return {path: _formatted(path, text) for path, text in written.items()}


def _formatted(path: Path, text: str) -> str:
    for command in (["check", "--fix-only", "--select", "F401,I,UP"], ["format"]):
        ruff = [Path(sys.executable).with_name("ruff"), *command, "--quiet", "--stdin-filename", path, "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def described() -> Schema:
    """Return the description of this program's interface."""
    from dpal_site.api import api  # noqa: PLC0415  # needs the settings

    found: Schema = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
    return found


def method_name(operation: Schema) -> str:
    """Return what a route is called: the name of its function, which ends its id."""
    return str(operation["operationId"]).rpartition("_api_")[2]


def _document(name: str, schema: Schema) -> str:
    if "enum" in schema or "const" in schema:
        return f"{name} = {_type(schema)}"
    if "properties" not in schema:
        return f"{name} = {_type(schema)}"
    needed = set(schema.get("required", ()))
    fields = [
        f"{json_text(field)}: {json_text(_type(kind) if field in needed else f'NotRequired[{_type(kind)}]')},"
        for field, kind in schema["properties"].items()
    ]
    return "\n".join([f"{name} = TypedDict({json_text(name)}, {{", *fields, "})"])


def json_text(text: str) -> str:
    """Return a text as Python writes it, in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _type(schema: Schema) -> str:
    """Return the annotation of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return f"Literal[{_literal(schema['const'])}]"
    if "enum" in schema:
        return f"Literal[{', '.join(_literal(value) for value in schema['enum'])}]"
    for joined in ("anyOf", "oneOf", "allOf"):
        if joined in schema:
            found = list(dict.fromkeys(_type(one) for one in schema[joined]))
            return found[0] if len(found) == 1 else f"Union[{', '.join(found)}]"
    if schema.get("type") == "array":
        return f"list[{_type(schema['items'])}]" if "items" in schema else "list[Any]"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"dict[str, {_type(inner)}]" if isinstance(inner, dict) else "dict[str, Any]"
    return PLAIN.get(str(schema.get("type")), "Any")


def _literal(value: Any) -> str:
    return json_text(value) if isinstance(value, str) else repr(value)


def _method(path: str, verb: str, operation: Schema) -> str:
    name, parameters = method_name(operation), operation.get("parameters", [])
    inside = [one["name"] for one in parameters if one["in"] == "path"]
    queries = [one for one in parameters if one["in"] == "query"]
    is_list = {one["name"] for one in queries} >= PAGING
    asked = [one for one in queries if not (is_list and one["name"] in PAGING)]
    body = _body(operation)
    returned, media = _answer(operation)
    arguments = ["self", *(f"{_safe(one)}: {'int | str' if one in ('version', 'before') else 'str'}" for one in inside)]
    if body:
        arguments.append(f"body: {body}")
    route = re.sub(r"\{(\w+)\}", lambda found: f"{{quoted(str({_safe(found[1])}))}}", path.removeprefix("/api/v1/"))
    if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
        given = {"arguments": ", ".join(arguments), "route": _written(route)}
        return UPLOAD.format(name=name, returned=returned, sentence=operation["summary"], **given)
    keyed = any(one["name"] == "Idempotency-Key" for one in parameters)
    options = [f"{_safe(one['name'])}: {_type(one['schema'])} | None = None" for one in asked]
    options += ['key: str = ""'] if keyed else []
    arguments += ["*", *options] if options else []
    told = f"Iterator[{returned.removeprefix('list[').removesuffix(']')}]" if is_list else returned
    call = _call(route, verb, asked, is_list=is_list, has_body=bool(body), keyed=keyed, media=media, told=told)
    sentence = str(operation.get("summary", name)).rstrip(".")
    lines = [f"    def {name}({', '.join(arguments)}) -> {told}:"]
    return "\n".join([*lines, f'        """{sentence}."""', f"        {call}", ""])


def _call(
    route: str, verb: str, asked: list[Schema], *, is_list: bool, has_body: bool, keyed: bool, media: str, told: str
) -> str:
    text = _written(route)
    pairs = ", ".join(f"{json_text(one['name'])}: {_safe(one['name'])}" for one in asked)
    query = f"query={{{pairs}}}" if pairs else ""
    if is_list:
        return f"return cast({json_text(told)}, self.site.listed({', '.join(filter(None, [text, query]))}))"
    parts = [json_text(verb.upper()), text, query, "body=body" if has_body else "", "key=key" if keyed else ""]
    given = ", ".join(filter(None, parts))
    if media != "application/json":
        return f"return self.site.streamed({', '.join(filter(None, [text, query]))})"
    return f"self.site.call({given})" if told == "None" else f"return cast({json_text(told)}, self.site.call({given}))"


def _written(route: str) -> str:
    return f'f"{route}"' if "{" in route else f'"{route}"'


def _body(operation: Schema) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return _type(content["application/json"]["schema"]) if "application/json" in content else ""


def _answer(operation: Schema) -> tuple[str, str]:
    """Return the type of the answer that is meant, and whether it is a document or a text."""
    told = [
        operation["responses"][status] for status in ("200", "201", "202", "204") if status in operation["responses"]
    ]
    content = told[0].get("content", {}) if told else {}
    kind = content.get("application/json", {})
    if "schema" not in kind:
        return ("None", "application/json") if not content else ("Iterator[bytes]", "file")
    empty = " | None" if "204" in operation["responses"] else ""
    return _type(kind["schema"]) + empty, "application/json"


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in ("format", "self") else name


if __name__ == "__main__":
    import django

    django.setup()
    for target, content in sources(described()).items():
        target.write_text(content, encoding="utf-8")
