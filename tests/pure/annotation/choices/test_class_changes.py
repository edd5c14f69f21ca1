import pytest

from annotation.choices.classes import (
    CROWD,
    FIXED_ANSWERS,
    STREAM,
    FurtherClass,
    broken_class,
    grown_settings,
    growth_hindrance,
)

CLASSES = ["Sport", "music"]


@pytest.mark.parametrize(
    ("further", "field", "rule"),
    [
        (FurtherClass(" "), "name", "at most 200 letters"),
        (FurtherClass("n" * 201), "name", "at most 200 letters"),
        (FurtherClass("sport"), "name", "already exists"),
        (FurtherClass("a\nb"), "name", "control characters"),
        (FurtherClass("a", ("one\x00",)), "words", "control characters"),
        (FurtherClass("SPORT\u200b"), "name", "already exists"),
        (FurtherClass("\u200b\ufeff"), "name", "at most 200 letters"),
        (FurtherClass("a", group="g" * 61), "group", "at most 60 letters"),
        (FurtherClass("a", group="\x07"), "group", "control characters"),
        (FurtherClass("a", colour="gold"), "colour", "one of red"),
    ],
)
def test_a_class_is_refused_at_its_field_with_the_rule(further: FurtherClass, field: str, rule: str) -> None:
    broken = broken_class(CLASSES, (), further)
    assert list(broken) == [field]
    assert rule in broken[field]


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"oracle": "crowd", "arrival": "pool", "question_kind": "choose"}, CROWD),
        ({"oracle": "trusted", "arrival": "stream", "question_kind": "choose"}, STREAM),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "rating"}, FIXED_ANSWERS),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "confirm"}, FIXED_ANSWERS),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "choose"}, ""),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "several"}, ""),
    ],
)
def test_where_classes_may_grow(settings: dict[str, str], rule: str) -> None:
    assert growth_hindrance(settings) == rule


def test_what_stands_about_a_class_comes_behind_what_stands_there() -> None:
    settings = {"classes": CLASSES, "class_groups": ["Sport: Free time"], "class_colours": None}
    assert grown_settings(settings, FurtherClass("film", ("a film", "a cinema"), "Free time", "red")) == {
        "classes": ["Sport", "music", "film"],
        "class_descriptions": ["film: a film", "film: a cinema"],
        "class_groups": ["Sport: Free time", "film: Free time"],
        "class_colours": ["film: red"],
    }
    assert grown_settings(settings, FurtherClass("film")) == {"classes": ["Sport", "music", "film"]}
