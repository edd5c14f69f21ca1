import re
from pathlib import Path

import pytest
from django.conf import settings

from annotation.choices.classes import (
    COLOURS,
    LONGEST_GROUP,
    OWN_KEYS,
    PAGE_KEYS,
    ClassLooks,
    Look,
    keys_of,
    looks_of,
)
from annotation.choices.form_fields import lines_of

CLASSES = ["play music", "Set alarm", "a: b", "other"]
TEMPLATES = Path(settings.BASE_DIR, "annotation", "templates", "annotation")
STYLES = Path(settings.BASE_DIR, "annotation", "static", "annotation", "label.css")
TOKENS = Path(settings.BASE_DIR, "dpal_site", "static", "site.css")


def broken(groups=(), colours=(), kind="choose", classes=CLASSES, keys=()):
    looks = {"class_groups": groups, "class_colours": colours, "class_keys": keys}
    values = {"classes": classes, "question_kind": kind} | looks
    return ClassLooks.broken_by({name: list(one) if name != "question_kind" else one for name, one in values.items()})


def seen(groups=(), colours=()):
    return looks_of({"class_groups": groups, "class_colours": colours}, CLASSES)


def test_a_class_keeps_its_colour_in_a_coloured_group():
    looks = seen(["play music: Media", "a: b: Media"], ["media: blue", "a: b: Red", "other: grey"])
    assert [look.colour for look in looks] == ["blue", "", "red", "grey"]


def test_lines_left_behind_by_other_classes_are_passed_over():
    looks = seen(["gone: Media", "other:", "other: Rest"], ["gone: red", "rest: no colour", "REST: blue"])
    assert looks == (Look(), Look(), Look(), Look("Rest", "blue", 0))


@pytest.mark.parametrize(
    "line", ["no colon", "other:", "unknown: Media", ": Media", "other: " + "x" * (LONGEST_GROUP + 1)]
)
def test_a_line_that_groups_no_class_is_named(line):
    assert "Line 2" in broken(["play music: Media", line])["class_groups"]


class TestKeys:
    def keys(self, *lines):
        return keys_of(looks_of({"class_keys": lines}, CLASSES))

    def test_a_class_has_its_own_key_and_the_rest_those_of_their_places(self):
        assert self.keys() == ["1", "2", "3", "4"]
        assert not broken(keys=["A: B: X", "other : 0"])
        assert self.keys("A: B: X", "other : 0") == ["1", "2", "x", "0"]

    def test_whose_digit_is_taken_takes_one_that_is_left(self):
        assert self.keys("other: 1") == ["4", "2", "3", "1"]

    def test_lines_of_other_classes_are_passed_over(self):
        assert self.keys("gone: x", "other: y") == ["1", "2", "3", "y"]

    @pytest.mark.parametrize("line", ["other", "other:", "other: xy", "other: ä", "other: -", "unknown: x"])
    def test_a_line_that_gives_no_key_is_named(self, line):
        assert "Line 2" in broken(keys=["play music: m", line])["class_keys"]

    def test_neither_a_class_nor_a_key_stands_there_twice(self):
        assert "is on an earlier line" in broken(keys=["other: x", "Other: y"])["class_keys"]
        assert "another class" in broken(keys=["other: x", "play music: X"])["class_keys"]

    def test_whatever_the_label_page_does_by_a_letter_is_no_key(self):
        pages = [*TEMPLATES.rglob("_label*.html"), TEMPLATES / "questions" / "_picture.html"]
        shown = "".join(page.read_text() for page in pages)
        used = set(re.findall(r'data-shortcut="([a-z])"', shown))
        assert used == set(PAGE_KEYS)
        assert not used & set(OWN_KEYS)
        for key in PAGE_KEYS:
            assert "Line 1" in broken(keys=[f"other: {key}"])["class_keys"]

    def test_where_digits_take_what_was_found_a_key_is_a_letter(self):
        classes = [f"class {number}" for number in range(11)]
        assert "Line 1" in broken(keys=["class 3: 4"], classes=classes)["class_keys"]
        assert not broken(keys=["class 3: b"], classes=classes)
        assert not broken(keys=["class 3: 4"], classes=classes[:10])
        assert keys_of([Look()] * 12)[8:] == ["9", "0", "", ""]
        assert len(set(keys_of([Look(key="x"), *[Look()] * 9]))) == 10


def tokens(text):
    """Return the colours of a style sheet by name: those of light, and those of dark, which begin as light ones."""
    light, dark = text.split("@media (prefers-color-scheme: dark)")[:2]
    # The first rule of either holds its tokens.
    found = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part.partition("}")[0])) for part in (light, dark)]
    return {"light": found[0], "dark": {**found[0], **found[1]}}


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "sheet", "wash"])
def test_each_colour_is_legible_on_every_ground(scheme, ground):
    paint, own = tokens(TOKENS.read_text())[scheme], tokens(STYLES.read_text())[scheme]
    weak = {name: contrast(own[f"class-{name}"], paint[ground]) for name in COLOURS}
    assert {name: ratio for name, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_pasted_table_of_examples_becomes_lines_of_classes(mark):
    table = f'class{mark}example\nrefund{mark}"money{mark} please"\ndelivery{mark}where is it\n'
    assert lines_of(table) == [f'refund: "money{mark} please"', 'delivery: "where is it"']
    assert lines_of("refund: money\n\n delivery, soon ") == ["refund: money", "delivery, soon"]
