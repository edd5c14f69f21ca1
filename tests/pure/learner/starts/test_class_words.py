import pytest

from learner.pools.class_words import ClassWords, descriptions_of

CLASSES = ["weather", "Set alarm"]


def broken(*lines):
    return ClassWords.broken_by({"classes": CLASSES, "class_descriptions": list(lines)})


def test_braces_hold_alternatives_and_case_does_not_matter():
    lines = ["weather: will it rain {today|tomorrow}?", "set alarm: wake me at {six|seven} {please|now}"]
    found = descriptions_of({"class_descriptions": lines}, CLASSES)
    assert found["weather"].example_texts == ("will it rain today?", "will it rain tomorrow?")
    assert len(found["Set alarm"].example_texts) == 4
    assert not broken(*lines)


def test_a_class_with_a_colon_in_its_name_has_words_of_its_own():
    lines = ["a: one", "a: b: two", "A:\u00a0 B: three"]
    found = descriptions_of({"class_descriptions": lines}, ["a", "a: b"])
    assert {name: said.example_texts for name, said in found.items()} == {"a": ("one",), "a: b": ("two", "three")}


@pytest.mark.parametrize("line", ["no colon", "weather:", "unknown: words", ": words", "weather:   "])
def test_a_line_that_says_nothing_about_a_class_is_named(line):
    assert "2" in broken("weather: rain", line)["class_descriptions"]


def test_too_much_is_refused():
    assert broken("weather: " + "x" * 500)
    assert broken(*["weather: rain"] * 5001)
