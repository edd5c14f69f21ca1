"""A worker is told after the commit, and a broker that is away holds nothing up."""

import logging

import pytest

from annotation.crowds.services import sending

pytestmark = pytest.mark.django_db


class Away:
    """A broker that does not answer."""

    def send_task(self, *_args, **_kwargs):
        raise ConnectionRefusedError


def test_a_broker_that_is_away_leaves_it_to_the_beat(monkeypatch, caplog, django_capture_on_commit_callbacks):
    monkeypatch.setattr(sending, "current_app", Away())
    with caplog.at_level(logging.WARNING), django_capture_on_commit_callbacks(execute=True) as told:
        sending.tell_worker(sending.FOLLOW_TASK, study_id=7)
        assert caplog.text == ""
    assert len(told) == 1
    assert "left to the beat" in caplog.text
