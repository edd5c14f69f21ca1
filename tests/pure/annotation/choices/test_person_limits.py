from datetime import time

import pytest

from annotation.choices.plans import PersonLimits
from privacy.choices import BrokenRules

OPEN = {"selection": "random"}


@pytest.mark.parametrize(
    "secret", [{"selection": "secret_sample"}, {"selection": "all", "update_policy": "flsw_hidden"}]
)
@pytest.mark.parametrize("limit", ["answers_per_person", "answers_per_day", "encounter_limit"])
def test_no_limit_binds_one_record_to_another_in_secret(secret, limit):
    limited = PersonLimits(**{limit: 5})
    assert limited.rules(secret).keys() == {limit}
    assert not limited.rules(OPEN)
    with pytest.raises(BrokenRules):
        PersonLimits(**{limit: 0})


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        (time(22), time(6), ""),
        (time(1), time(6), ""),
        (time(22), None, "a beginning and a different end"),
        (None, time(6), "a beginning and a different end"),
        (time(6), time(6), "a different end"),
    ],
)
def test_quiet_hours_begin_and_end_at_different_times(begin, end, words):
    found = PersonLimits(quiet_from=begin, quiet_until=end).rules(OPEN)
    assert bool(found) == bool(words)
    assert words in found.get("quiet_until", "")
