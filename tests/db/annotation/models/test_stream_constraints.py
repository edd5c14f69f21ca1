from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from annotation.models import Project, RecordPost
from privacy.accounting.events import RandomChoiceEvent
from privacy.ledger import services as ledger
from tests.factories import make_project, write_settings

pytestmark = pytest.mark.django_db
STREAM = {
    "arrival": "stream",
    "selection": "bernoulli_screen",
    "screen_high": 0.5,
    "screen_low": 0.1,
    "update_policy": "flmb",
    "window_length": 50,
    "estimator": "running_sums",
    "training_delta": 1e-6,
    "classes": ["no", "yes"],
}
HIDDEN = {"update_policy": "flsw_hidden", "window_length": 100, "window_denominator": 10}


@pytest.mark.parametrize("fields", [{}, HIDDEN, {"selection": "all", "question_kind": "confirm"}])
def test_a_stream_with_what_it_needs_is_stored(fields):
    assert make_project(**STREAM | fields).arrival == "stream"


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"window_length": None}, "annotation_project_stream"),
        ({"update_policy": "per_round"}, "annotation_project_stream"),
        (HIDDEN | {"window_denominator": None}, "annotation_project_stream"),
        ({"window_denominator": 5}, "annotation_project_stream"),
        ({"estimator": "logistic"}, "annotation_project_stream"),
        ({"selection": "random"}, "annotation_project_stream"),
        ({"arrival": "pool"}, "annotation_project_estimator_fits_oracle"),
        ({"windows_ahead": 0}, "no choice declares this value of stream.windows_ahead"),
        ({"updates_per_release": 0}, "no choice declares this value of stream.updates_per_release"),
        ({"window_hours": 0}, "no choice declares this value of training.window_hours"),
        ({"window_length": 0}, "no choice declares this value of training.window_length"),
        ({"windows_ahead": None}, "annotation_project_stream"),
        ({"update_policy": None}, "annotation_project_stream"),
        ({"screen_low": 0.6}, "annotation_project_selection_fits_oracle"),
        ({"screen_low": 0.0}, "no choice declares this value of selection.screen_low"),
        ({"screen_high": 1.0}, "no choice declares this value of selection.screen_high"),
        ({"screen_high": None}, "annotation_project_selection_fits_oracle"),
        ({"overlap": 2}, "annotation_project_stream"),
        ({"training_delta": None}, "annotation_project_training_delta"),
        (HIDDEN | {"labels_limit": 9}, "annotation_project_limit_tells_nothing"),
    ],
)
def test_a_stream_without_a_proof_is_refused(fields, rule):
    with pytest.raises(IntegrityError, match=rule):
        make_project(**STREAM | fields)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"question_kind": "confirm"}, "annotation_project_question_kind_fits_oracle"),
        ({"question_kind": "guess"}, "no choice declares this value of labelling.question_kind"),
        (STREAM | {"question_kind": "rating"}, "annotation_project_stream"),
    ],
)
def test_a_type_of_label_that_has_no_proof_there_is_refused(fields, rule):
    with pytest.raises(IntegrityError, match=rule):
        make_project(**fields)


def test_only_a_stream_asks_about_every_record():
    with pytest.raises(IntegrityError, match="annotation_project_selection_fits_oracle"):
        make_project(selection="all")


def test_how_records_arrive_never_changes_once_some_did():
    project = make_project(**STREAM)
    RecordPost.objects.create(project=project, key=b"1", first_slot=0, record_count=1, body_digest=b"2", body=b"[1]")
    with pytest.raises(IntegrityError, match="never changes once there are records or questions"):
        Project.objects.filter(pk=project.pk).update(arrival="pool")


@pytest.mark.django_db(transaction=True)
def test_what_a_stream_paid_for_never_changes():
    project = make_project(**STREAM)
    write_settings(project, screen_high=0.4)
    ledger.reserve(account=project.pool_account, event=RandomChoiceEvent(1), purpose="test", key=uuid4())
    write_settings(project, windows_ahead=3, updates_per_release=2)
    fixed, goes_on = "annotation_project_classes_stay", "annotation_project_successor"
    for change, rule in (
        ({"screen_high": 0.5}, goes_on),
        ({"screen_low": 0.2}, goes_on),
        ({"screen_reach": 0.2}, goes_on),
        ({"selection": "all"}, goes_on),
        ({"training_epsilon": 2.0}, goes_on),
        ({"training_delta": 1e-7}, goes_on),
        ({"moment_share": 0.1}, goes_on),
        ({"classes": ["a", "b"]}, fixed),
        ({"window_hours": 1}, goes_on),
        ({"window_length": 51}, goes_on),
        (HIDDEN, goes_on),
    ):
        with pytest.raises(IntegrityError) as refusal, transaction.atomic():
            write_settings(project, **change)
        assert refusal.value.__cause__.diag.constraint_name == rule


def test_a_post_is_stored_once_and_slots_are_given_once():
    project = make_project(**STREAM)
    values = {"project": project, "body_digest": b"1", "body": b"[]", "record_count": 2}
    RecordPost.objects.create(key=b"1", first_slot=0, **values)
    for change in ({"key": b"1", "first_slot": 2}, {"key": b"2", "first_slot": 0}):
        with pytest.raises(IntegrityError, match="annotation_post"), transaction.atomic():
            RecordPost.objects.create(**values | change)
    with pytest.raises(IntegrityError, match="annotation_post_not_empty"):
        RecordPost.objects.create(**values | {"key": b"3", "first_slot": 3, "record_count": 0})
