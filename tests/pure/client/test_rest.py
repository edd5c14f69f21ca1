"""The typed client has a method for each route of the interface, and is what its description makes of it."""

import inspect

import pytest

from dpal.rest import Rest
from tests import typed_client


def test_the_modules_are_what_the_description_says():
    for path, wanted in typed_client.sources(typed_client.described()).items():
        assert path.read_text(encoding="utf-8") == wanted, f"{path.name}: write it by `python -m tests.typed_client`"


def test_each_route_has_a_method():
    description = typed_client.described()
    routes = [typed_client.method_name(one) for verbs in description["paths"].values() for one in verbs.values()]
    assert len(routes) == len(set(routes)) > 40
    methods = dict(inspect.getmembers(Rest, inspect.isfunction))
    assert set(routes) == methods.keys() - {"__init__"}
    for verbs in description["paths"].values():
        for one in verbs.values():
            known = inspect.signature(methods[typed_client.method_name(one)]).parameters
            inside = [each["name"] for each in one.get("parameters", []) if each["in"] == "path"]
            assert list(known)[1 : 1 + len(inside)] == inside


def test_a_route_without_a_method_would_be_noticed():
    description = typed_client.described()
    description["paths"]["/api/v1/more"] = {"get": {"operationId": "a_api_more", "responses": {}}}
    assert "def more(self) -> None" in typed_client.sources(description)[typed_client.ROUTES]


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "Union[str, None]"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/ModelOut"}}, "list[ModelOut]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"enum": ["a", "b"], "type": "string"}, 'Literal["a", "b"]'),
        ({}, "Any"),
    ],
)
def test_types_are_those_of_the_schema(schema, wanted):
    assert typed_client._type(schema) == wanted


class Recorder:
    """A site that answers nothing and remembers what it was sent."""

    def post(self, path, *, headers, data):
        self.path, self.headers, self.data = path, headers, data.read() + data.read() + data.read()
        return {}


@pytest.mark.parametrize(
    ("method", "path"),
    [("upload_dataset", "projects/a%20b/datasets"), ("add_guideline_picture", "projects/a%20b/guidelines/pictures")],
)
def test_a_file_goes_to_the_route_of_its_method(tmp_path, method, path):
    file = tmp_path / "a.png"
    file.write_bytes(b"as it is")
    site = Recorder()
    getattr(Rest(site), method)("a b", file, {"description": "grey"})
    assert site.path == path
    assert b"as it is" in site.data
    assert b"grey" in site.data
    assert site.headers["Idempotency-Key"]
