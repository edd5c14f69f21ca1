import json
import re

import pytest
from django.apps import apps
from django.conf import settings
from django.core import serializers
from django.db import IntegrityError, connection, transaction

from annotation.models import Job
from learner.models import ModelRelease, Round
from privacy.message_fields import MessageField, MessagesInField
from privacy.wording import Message, as_message, as_plural_message, joined_messages
from tests.factories import make_project, make_records

pytestmark = pytest.mark.django_db
SAID = joined_messages(
    " ", [as_plural_message("{n} row", "{n} rows", n=2), as_message("{reason}: {x:.3g}", reason="is empty", x=0.5)]
)


def columns():
    return [
        field
        for model in apps.get_models()
        for field in model._meta.local_concrete_fields
        if isinstance(field, MessageField | MessagesInField)
    ]


def test_every_column_that_tells_something_is_one():
    named = {f"{field.model.__name__}.{field.name}" for field in columns()}
    assert named >= {f"{model}.{name}" for model in ("Job", "Round", "TrainingRun") for name in ("error", "message")}
    assert named >= {"Dataset.uploader_reason", "Dataset.bad_row_report", "ImportPart.bad_row_report"}
    assert named >= {"ModelRelease.checks", "ModelRelease.held_back"}
    texts = {
        field.name
        for model in apps.get_models()
        if model._meta.app_label in ("annotation", "learner", *settings.ADDONS)
        for field in model._meta.local_concrete_fields
        if field.get_internal_type() in ("CharField", "TextField")
    }
    assert not texts & {"error", "message", "held_back", "uploader_reason"}


@pytest.mark.parametrize("field", columns(), ids=str)
def test_the_database_checks_the_shape(field):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass",
            [field.model._meta.db_table],
        )
        rules = [rule for (rule,) in cursor.fetchall() if re.search(rf"\b{field.column} @\?", rule)]
        assert len(rules) == 1
        condition = re.sub(rf"\b{field.column}\b", "held.value", rules[0].removeprefix("CHECK "))
        inside = isinstance(field, MessagesInField)
        wrap = (lambda one: [{"reason": one}] if "[*]" in field.inside else {"a": one}) if inside else (lambda one: one)
        good = [SAID.as_json(), as_message("It is done.").as_json()]
        bad = [
            "text",
            3,
            [],
            {"code": "a"},
            {"code": 1, "parameters": {}},
            [as_message("a").as_json()],
            {"messages": []},
        ]
        for one, fits in [*((one, True) for one in good), *((one, False) for one in bad)]:
            cursor.execute(f"SELECT {condition} FROM (SELECT %s::jsonb AS value) AS held", [json.dumps(wrap(one))])
            assert cursor.fetchone() == (fits,), one


def test_a_text_is_refused():
    job = Job.objects.create(project=make_project(), kind="import")
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE annotation_job SET error = %s WHERE id = %s", ['"It ended."', job.pk])
    dataset = make_records(job.project, ["a text"])[0].dataset
    dataset.bad_row_report = [{"line": 1, "column": "", "reason": "is empty"}]
    with pytest.raises(IntegrityError), transaction.atomic():
        dataset.save()


def test_what_is_said_comes_back_as_it_was():
    job = Job.objects.create(project=make_project(), kind="import", error=SAID, message="It waits.")
    found = Job.objects.get(pk=job.pk)
    assert (found.error, found.message) == (SAID, "It waits.")
    assert (found.error.as_json(), found.message.code) == (SAID.as_json(), "It waits.")
    assert Job.objects.filter(error=SAID, message="It waits.").exists()
    assert Job.objects.values_list("error", flat=True).get() == SAID
    assert Job.objects.exclude(error="").count() == 1
    again = next(serializers.deserialize("json", serializers.serialize("json", [found]))).object
    assert again.error.as_json() == SAID.as_json()
    Job.objects.filter(pk=job.pk).update(error="")
    job.refresh_from_db()
    assert job.error == ""
    assert isinstance(job.error, Message)
    assert Round(error="").error == ModelRelease().held_back == ""


def test_a_report_holds_its_reasons_as_messages():
    dataset = make_records(make_project(), ["a text"])[0].dataset
    report = [{"line": 3, "column": "text", "reason": as_message("is longer than {most:,} characters", most=20_000)}]
    dataset.bad_row_report = report
    dataset.save()
    dataset.refresh_from_db()
    assert dataset.bad_row_report == report
    assert dataset.bad_row_report[0]["reason"].parameters == {"most": 20_000}
