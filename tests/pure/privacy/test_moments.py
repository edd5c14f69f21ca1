from datetime import UTC, datetime

from privacy.moments import whole_second


def test_what_is_below_a_second_is_gone_and_nothing_is_rounded_up():
    assert whole_second(datetime(2026, 3, 1, 12, 0, 59, 999_999, tzinfo=UTC)) == datetime(
        2026, 3, 1, 12, 0, 59, tzinfo=UTC
    )
