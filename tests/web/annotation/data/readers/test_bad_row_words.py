import csv

import pytest
from django.utils import translation

from annotation.data.readers import checks, images, workbook
from annotation.wording import localized
from annotation.work.limits import Limits, reasons
from dpal.reading import cells, delimited, json_lines, label_studio, labels
from privacy.wording import as_plural_message

WRONG_COUNT = as_plural_message(
    "has {n} field where the header names {wanted}", "has {n} fields where the header names {wanted}", n=1, wanted=23
)

GIVEN = [
    *(cells.EMPTY, cells.TOO_LONG, cells.NOT_TEXT, cells.NOT_UTF8, cells.NUL, cells.HALF, checks.NOT_A_NUMBER),
    *(checks.NOT_DECLARED, labels.NOT_A_CLASS, checks.WRONG_PIXELS),
    *(json_lines.NOT_JSON, json_lines.NOT_AN_OBJECT, json_lines.NO_FIELD),
    *(reason for _, reason in delimited.REASONS),
    delimited.UNREADABLE,
    WRONG_COUNT,
    *(images.NOT_AN_IMAGE, images.TOO_LARGE),
    *(images.NOT_EIGHT_BIT, images.ENCRYPTED, images.BAD_NAME, images.NO_FOLDER),
    *(images.TOO_MANY_SCANS, workbook.MERGED, *reasons(Limits()).values()),
    *(label_studio.NO_ANSWER, labels.SEVERAL, label_studio.TIE),
]


def test_every_reason_is_known() -> None:
    with translation.override("en"):
        assert [localized(reason) for reason in GIVEN] == GIVEN
    with translation.override("de"):
        assert not [reason for reason in GIVEN if localized(reason) == reason]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (checks.EMPTY, "ist leer"),
        (WRONG_COUNT, "hat 1 Feld, wo die Kopfzeile 23 nennt"),
        (delimited.REASONS[1][1], f"ein Feld ist länger als {csv.field_size_limit():,} Zeichen".replace(",", ".")),
        ("something of long ago with 3 words", "something of long ago with 3 words"),
    ],
)
def test_a_page_in_another_language_says_it_there(reason: str, words: str) -> None:
    with translation.override("de"):
        assert localized(reason) == words
