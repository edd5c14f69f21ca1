import logging

import pytest
from celery import current_app

from addons.prolific.services.accounts import FOLLOW_TASK
from annotation.work.services import sending

pytestmark = pytest.mark.django_db


class Away:
    def send_task(self, *_args, **_kwargs):
        raise ConnectionRefusedError


def test_a_broker_that_is_away_leaves_it_to_the_beat(monkeypatch, caplog, django_capture_on_commit_callbacks):
    monkeypatch.setattr(sending, "current_app", Away())
    with caplog.at_level(logging.WARNING), django_capture_on_commit_callbacks(execute=True) as told:
        sending.send_on_commit(FOLLOW_TASK, study_id=7)
        assert caplog.text == ""
    assert len(told) == 1
    assert "left to the beat" in caplog.text


@pytest.mark.usefixtures("broker")
def test_an_address_without_a_broker_raises_what_is_caught(monkeypatch, caplog):
    monkeypatch.setattr(current_app.conf, "broker_url", "redis://127.0.0.1:9/0")
    monkeypatch.setattr(current_app, "amqp", current_app.subclass_with_self("celery.app.amqp:AMQP")(current_app))
    monkeypatch.setattr(current_app, "_pool", None)
    sending.send("learner.tasks.advance_project_task", project_id=1)
    assert "broker not reached" in caplog.text
