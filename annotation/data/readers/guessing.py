"""Columns guessed from their names alone: nobody's text is looked at to find out."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpal.reading.labels import LabelNames
from dpal.reading.rows import Layout

TEXT_NAMES = (
    *("text", "texts", "utterance", "query", "message", "sentence", "content", "body", "comment", "document"),
    *("review", "transcript", "question", "description", "abstract", "title"),
)
PEOPLE = ("contributor", "person", "user", "speaker", "author", "customer", "account", "patient", "member", "sender")
CONTRIBUTOR_NAMES = tuple(f"{who}{what}" for who in (*PEOPLE, "who") for what in ("", "id", "name"))
LABEL_NAMES = (
    *("label", "labels", "class", "category", "target", "gold", "intent", "answer", "sentiment", "y", "type"),
    *("spans", "entities"),
)
# Before a declared column in an export where another has its name.
FIELDS_PREFIX = "fields."
PIXEL_NAMES = ("pixels", "image", "picture")


def guess_columns(columns: Sequence[str], layout: Layout, *, controls: Sequence[str] = ()) -> dict[str, Any]:
    free = list(dict.fromkeys(columns))
    found: dict[str, Any] = {}

    def take(role: str, wanted: str | None, names: Sequence[str], among: Sequence[str]) -> None:
        chosen = _first([wanted] if wanted else [], among) or _first(names, among)
        if chosen is not None:
            found[role] = chosen
            if chosen in free:
                free.remove(chosen)

    if features := _take_features(layout, free):
        found["features"] = features
    if layout.label:
        take("label", layout.label, LABEL_NAMES, list(controls) or free)
        if "label" not in found and len(controls) == 1:
            found["label"] = controls[0]
        if "label" not in found and len(hot := columns_of_classes(layout.classes, free)) > 1:
            found["one_hot"] = hot
            free = [name for name in free if name not in hot]
    if layout.text:
        take("text", layout.text, TEXT_NAMES, free)
    if layout.kind == "image" and layout.pixels:
        take("pixels", layout.pixels, PIXEL_NAMES, free)
    if layout.contributor:
        take("contributor", layout.contributor, CONTRIBUTOR_NAMES, free)
    if layout.text and "text" not in found and len(free) == 1:
        found["text"] = free[0]
    return found


def columns_of_classes(classes: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the columns that are called like classes."""
    names = LabelNames(classes)
    return [name for name in columns if names.place(name) is not None]


def remembered(mapping: Mapping[str, Any], columns: Sequence[str], controls: Sequence[str] = ()) -> bool:
    named = [mapping[role] for role in ("text", "contributor", "pixels", "id") if mapping.get(role)]
    named += [*mapping.get("features", {}).values(), *mapping.get("metadata", ()), *mapping.get("one_hot", ())]
    label = mapping.get("label")
    return bool(named or label) and set(named) <= set(columns) and (not label or label in {*columns, *controls})


def _take_features(layout: Layout, free: list[str]) -> dict[str, str]:
    features = {}
    names = [column["name"] for column in layout.declared]
    # A declared `fields.a` takes its column before `a` takes it for its own in an export.
    for name in sorted(names, key=lambda name: name.count(FIELDS_PREFIX), reverse=True):
        source = _first([f"{FIELDS_PREFIX}{name}", layout.source_of(name), name], free)
        if source is not None:
            features[name] = source
            free.remove(source)
    return features


def _first(names: Sequence[str], among: Sequence[str]) -> str | None:
    plain: dict[str, str] = {}
    for name in among:
        plain.setdefault(plain_name(name), name)
    return next(
        (
            name if name in among else plain[plain_name(name)]
            for name in names
            if name in among or plain_name(name) in plain
        ),
        None,
    )


def plain_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
