import pytest

from annotation.choices.classes import (
    MERGE_BEHIND_GATE,
    MERGE_IN_STREAM,
    MERGE_OF_STEPS,
    SEVERAL,
    broken_merge,
    counted_words,
    counts_as,
    merge_hindrance,
    unmerged_classes,
)

CLASSES = ["a", "b", "c", "d"]
MERGED = {"a": {"into": "c", "at": "2026-11-26T00:00:00+00:00"}}


@pytest.mark.parametrize(
    ("name", "into", "field", "rule"),
    [
        ("film", "b", "name", "no class of this name"),
        ("b", "film", "into", "no class of this name"),
        ("b", "b", "into", "into itself"),
        ("a", "b", "name", "already"),
        ("b", "a", "into", "already"),
        ("c", "b", "name", "Another class is already merged"),
    ],
)
def test_a_merge_is_refused_at_its_field_with_the_rule(name, into, field, rule):
    broken = broken_merge(CLASSES, MERGED, name, into)
    assert list(broken) == [field]
    assert rule in broken[field]


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"oracle": "crowd", "arrival": "pool", "question_kind": "choose"}, MERGE_BEHIND_GATE),
        ({"oracle": "trusted", "arrival": "stream", "question_kind": "choose"}, MERGE_IN_STREAM),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "rating"}, MERGE_OF_STEPS),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "confirm"}, MERGE_OF_STEPS),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "several"}, SEVERAL),
        ({"oracle": "trusted", "arrival": "pool", "question_kind": "choose"}, ""),
    ],
)
def test_where_classes_may_be_merged(settings, rule):
    assert merge_hindrance(settings) == rule


def test_what_answers_count_as():
    assert counts_as(CLASSES, {}) == ()
    assert counts_as(CLASSES, MERGED) == (2, 1, 2, 3)
    assert unmerged_classes(CLASSES, MERGED) == ("b", "c", "d")


def test_words_of_a_merged_class_are_those_of_the_other():
    lines = ("A : one: two", "b: three", "nothing")
    assert counted_words(lines, CLASSES, MERGED) == ("c: one: two", "b: three", "nothing")
    assert counted_words(lines, CLASSES, {"a": {"into": "x: y"}}) == ("x: y: one: two", "b: three", "nothing")
    assert counted_words(["a: one: two"], [*CLASSES, "a: one"], MERGED) == ("a: one: two",)
