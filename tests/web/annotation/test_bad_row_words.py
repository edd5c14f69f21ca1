"""Every reason a reader gives is known to the pages, which say it in the reader's language."""

import csv

import pytest
from django.utils import translation

from annotation.parsers import checks, delimited, image_archive, json_lines, label_studio
from annotation.templatetags.bad_rows import KNOWN, REASONS, in_words

GIVEN = [
    *(checks.EMPTY, checks.TOO_LONG, checks.NOT_TEXT, checks.NOT_UTF8, checks.NUL, checks.NOT_A_NUMBER),
    *(checks.NOT_DECLARED, checks.NOT_A_CLASS, checks.WRONG_PIXELS),
    *(json_lines.NOT_JSON, json_lines.NOT_AN_OBJECT, json_lines.NO_FIELD),
    *(reason for _, reason in delimited.REASONS),
    delimited.UNREADABLE,
    delimited.WRONG_COUNT.format(found=1, wanted=23),
    *(image_archive.NOT_PNG, image_archive.WRONG_SIZE.format(width=28, height=29), image_archive.TOO_LARGE),
    *(image_archive.NOT_EIGHT_BIT, image_archive.ENCRYPTED, image_archive.BAD_NAME, image_archive.NO_FOLDER),
    *(label_studio.NO_ANSWER, label_studio.SEVERAL, label_studio.TIE),
]


def test_every_reason_is_known_and_no_other() -> None:
    assert len(KNOWN) == len(REASONS) == len(GIVEN)
    with translation.override("en"):
        assert [in_words(reason) for reason in GIVEN] == GIVEN


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (checks.EMPTY, "ist leer"),
        (delimited.WRONG_COUNT.format(found=1, wanted=23), "hat 1 Felder, die Kopfzeile nennt 23"),
        (delimited.REASONS[1][1], f"ein Feld ist länger als {csv.field_size_limit():,} Zeichen"),
        ("something of long ago with 3 words", "something of long ago with 3 words"),
    ],
)
def test_a_page_in_another_language_says_it_there(reason: str, words: str) -> None:
    with translation.override("de"):
        assert in_words(reason) == words
