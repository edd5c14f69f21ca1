"""Values that a page looks up while it is rendered for somebody, and names of what a file holds."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.template.base import FilterExpression, Node, TokenType, Variable
from django.template.context import BaseContext
from django.template.defaulttags import ForNode, WithNode
from django.template.loader import get_template
from django.template.loader_tags import IncludeNode
from django.templatetags.i18n import BlockTranslateNode

from annotation.questions.views import label_parts

# Widgets say how a field looks; what is in it is named by the page.
WIDGETS = "django/forms/"
REFERENCE = "#/components/schemas/"


@contextmanager
def looked_up() -> Iterator[set[str]]:
    """Collect every expression that a template resolves: what it writes, goes through, decides by and links to."""
    seen: set[str] = set()
    given: list[str] = []
    resolve, render_tokens = FilterExpression.resolve, BlockTranslateNode.render_token_list
    render_with = WithNode.render

    def noted(self: FilterExpression, context: BaseContext, ignore_failures: bool = False) -> Any:
        if not (getattr(getattr(context, "template", None), "name", None) or "").startswith(WIDGETS):
            seen.update(name for name in _names(self) if name not in given)
        return resolve(self, context, ignore_failures)

    def noted_words(self: BlockTranslateNode, tokens: Any) -> Any:
        words, names = render_tokens(self, tokens)
        bound = {*self.extra_context, self.countervar, self.asvar}
        # Bound names stand for expressions that are noted where they are resolved.
        seen.update(name for name in names if name not in bound and name not in given)
        return words, names

    def noted_with(self: WithNode, context: BaseContext) -> Any:
        names = list(self.extra_context)
        given.extend(names)
        try:
            return render_with(self, context)
        finally:
            del given[len(given) - len(names) :]

    # Parts of the label page are rendered once a process.
    for part in (label_parts._answer, label_parts._instead, label_parts._undo):
        part.cache_clear()
    with (
        mock.patch.object(FilterExpression, "resolve", noted),
        mock.patch.object(BlockTranslateNode, "render_token_list", noted_words),
        mock.patch.object(WithNode, "render", noted_with),
    ):
        yield seen


def written_in(template: str) -> set[str]:
    """Return every expression that stands in a template, in branches that nobody reached, too.

    A name that `{% with %}` gives is left out, for its expression is not; what is looked up in it is another one.
    """
    return {name for part, given in _parts_of(template) for name in _written(part) if name not in given}


def included_in(template: str) -> set[str]:
    """Return the names of the templates that one includes."""
    nodes = [part for part, _given in _parts_of(template) if isinstance(part, IncludeNode)]
    return {str(node.template.var) for node in nodes}


def _parts_of(template: str) -> list[tuple[Any, frozenset[str]]]:
    """Return the nodes and expressions of a template, however deep they stand, and what `{% with %}` names there."""
    found: list[tuple[Any, frozenset[str]]] = []
    nodes: Any = get_template(template).template.nodelist  # type: ignore[attr-defined]
    waiting: list[tuple[Any, frozenset[str]]] = [(nodes, frozenset())]
    known: set[int] = set()
    while waiting:
        part, given = waiting.pop()
        if id(part) in known:
            continue
        known.add(id(part))
        if isinstance(part, list | tuple):
            waiting.extend((each, given) for each in part)
        elif isinstance(part, dict):
            waiting.extend((each, given) for each in part.values())
        elif isinstance(part, Node | FilterExpression | Variable) or hasattr(part, "eval"):
            found.append((part, given))
            told = vars(part) if hasattr(part, "__dict__") else {name: getattr(part, name) for name in part.__slots__}
            waiting.extend(
                (value, _given_in(part, given) if key.startswith("nodelist") else given)
                for key, value in told.items()
                if key not in ("origin", "token")
            )
    return found


def _given_in(part: Any, given: frozenset[str]) -> frozenset[str]:
    """Return the names that are given inside a node: those of `{% with %}`, less those that a loop goes through."""
    if isinstance(part, WithNode):
        return given | frozenset(part.extra_context)
    return given - frozenset(part.loopvars) if isinstance(part, ForNode) else given


def _written(part: Any) -> Iterator[str]:
    if isinstance(part, FilterExpression):
        yield from _names(part)
    elif isinstance(part, Variable) and part.lookups is not None:
        yield ".".join(part.lookups)
    elif isinstance(part, BlockTranslateNode):
        bound = {*part.extra_context, part.countervar, part.asvar}
        tokens = [*(part.singular or ()), *(part.plural or ())]
        yield from (
            token.contents for token in tokens if token.token_type == TokenType.VAR and token.contents not in bound
        )


def _names(expression: FilterExpression) -> Iterator[str]:
    arguments = [argument for _filter, given in expression.filters for is_name, argument in given if is_name]
    for found in (expression.var, *arguments):
        if isinstance(found, Variable) and found.lookups is not None:
            yield ".".join(found.lookups)


def body_of(response: Any) -> bytes:
    """Return all that a test's client was answered, streamed or not; the client closes it."""
    body: bytes = response.getvalue()
    return body


def names_in(response: Any) -> set[str]:
    """Return the names a file gives its values: columns of a table, paths in a document; nothing of other kinds."""
    kind, body = response.headers["Content-Type"].partition(";")[0], body_of(response)
    if kind == "text/csv":
        return set(next(csv.reader(io.StringIO(body.decode())), []))
    return set(paths_in(json.loads(body))) if kind == "application/json" else set()


def paths_in(value: Any, at: str = "") -> Iterator[str]:
    """Yield the path of every value in a document; a list stands for its elements."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths_in(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for inner in value:
            yield from paths_in(inner, at)
    else:
        yield at


def fields_in(schema: Any, schemas: dict[str, Any]) -> set[tuple[str, str]]:
    """Return every field that a description of an answer can hold, by the name of its schema."""
    found: set[tuple[str, str]] = set()
    waiting, known = [schema], set()
    while waiting:
        part = waiting.pop()
        name = part.get("$ref", "").removeprefix(REFERENCE)
        if name and name not in known:
            known.add(name)
            fields = schemas[name].get("properties", {})
            found |= {(name, field) for field in fields}
            waiting.extend(fields.values())
        waiting.extend(inner for key in ("anyOf", "oneOf", "allOf", "prefixItems") for inner in part.get(key, []))
        waiting.extend(part[key] for key in ("items", "additionalProperties") if isinstance(part.get(key), dict))
    return found


def items_of(schema: Any) -> Any:
    """Return the schema of a list's items, where the list may be null, too."""
    return next((option["items"] for option in (schema, *schema.get("anyOf", [])) if "items" in option), {})


def fields_of(answer: Any, schema: Any, schemas: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield schema, field and value of all that an answer holds; of a free document its own keys."""
    if isinstance(answer, list):
        for one in answer:
            yield from fields_of(one, items_of(schema), schemas)
        return
    options = [schema, *schema.get("anyOf", [])]
    named = [option["$ref"].removeprefix(REFERENCE) for option in options if "$ref" in option]
    # Of several schemas the one that has these fields; a field that no schema has is the first one's.
    told = answer.keys() if isinstance(answer, dict) else set()
    name = next((one for one in named if told <= schemas[one].get("properties", {}).keys()), next(iter(named), ""))
    if isinstance(answer, dict) and name:
        described = schemas[name].get("properties", {})
        for field, value in answer.items():
            yield name, field, value
            inner = described.get(field, {})
            if isinstance(value, dict) and not any("$ref" in part for part in (inner, *inner.get("anyOf", []))):
                yield from ((f"{name}.{field}", key, one) for key, one in value.items())
            elif isinstance(value, list) and value and isinstance(value[0], dict) and "$ref" not in items_of(inner):
                yield from ((f"{name}.{field}", key, one) for row in value for key, one in row.items())
            else:
                yield from fields_of(value, inner, schemas)
