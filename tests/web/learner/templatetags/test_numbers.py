from datetime import UTC, datetime

import pytest
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.formats import date_format

from learner.dashboard.tables import Column
from learner.templatetags.dashboard_cells import cell
from learner.templatetags.release_numbers import percent, six_digits


@pytest.mark.parametrize(
    ("language", "share", "small"), [("en", "95.8\u00a0%", "1.25e-07"), ("de", "95,8\u00a0%", "1,25e-07")]
)
def test_a_share_is_rounded_and_the_same_on_every_page(language, share, small):
    with translation.override(language):
        # 114 of 119, whose second decimal is a nine.
        assert percent(114 / 119) == cell(114 / 119, Column("accuracy", "Accuracy", "share")) == share
        assert six_digits(1.25e-7) == small


def test_english_dates_name_the_month():
    moment = datetime(2026, 3, 4, 15, 5, tzinfo=UTC)
    with translation.override("en"):
        shown = {date_format(moment, name) for name in ("DATETIME_FORMAT", "SHORT_DATETIME_FORMAT")}
    assert shown == {"4 Mar 2026, 15:05"}


@pytest.mark.parametrize(("language", "pace"), [("en", "about 1,020 an hour"), ("de", "ungefähr 1.020 in der Stunde")])
def test_a_quick_pace_has_its_thousands_marked(language, pace):
    with translation.override(language):
        page = render_to_string("annotation/questions/_label.html", {"an_hour": 1020, "done_today": 1})
    assert pace in page
