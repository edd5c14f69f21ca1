"""Who is protected from whom never changes in an open project: the database refuses it around every service."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from annotation.data.services import streams
from annotation.models import Dataset, Job, Project
from annotation.people.services import crowd_links, members
from privacy.accounting.selection import RandomChoiceEvent
from privacy.ledger import services as ledger
from tests.factories import make_annotators, make_records, open_preset

pytestmark = pytest.mark.django_db


def opened(manager: User, preset: str) -> Project:
    return open_preset(
        manager,
        preset,
        name=preset,
        data_kind="text",
        classes=["yes", "no"],
        question="Is it?",
        pool_epsilon=10.0,
        pool_delta=5e-5,
    )


def update(project: Project, **values: object) -> None:
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(**values)


@pytest.mark.parametrize("field", ["oracle", "arrival", "preset"])
@pytest.mark.parametrize("preset", ["voice-crowd", "pool-experts", "fraud-stream"])
def test_all_of_it_stays_from_the_first_charge_on(manager: User, preset: str, field: str) -> None:
    """Told apart from the other rules by the trigger's message."""
    project = opened(manager, preset)
    ledger.reserve(account=project.pool_account, event=RandomChoiceEvent(1), purpose="test", key=uuid4(), actor="test")
    others = {
        "oracle": "trusted" if project.oracle == "crowd" else "crowd",
        "arrival": "pool" if project.arrival == "stream" else "stream",
        "preset": "confirm-or-reject",
    }
    with pytest.raises(IntegrityError, match="never changes after the first charge"):
        update(project, **{field: others[field]})


def test_an_upload_keeps_a_pool_a_pool(manager: User) -> None:
    project = opened(manager, "pool-experts")
    make_records(project, ["one", "two"], row_count=2)
    with pytest.raises(IntegrityError, match="once there are records or questions"):
        update(project, preset="fraud-stream", arrival="stream")


def test_posted_records_keep_a_stream_a_stream(manager: User) -> None:
    project = opened(manager, "fraud-stream")
    assert streams.post_records(project=project, records=[{"text": "hello"}]).accepted == 1
    with pytest.raises(IntegrityError, match="once there are records or questions"):
        update(project, arrival="pool", preset="pool-experts")


def test_a_stream_takes_no_uploads(manager: User) -> None:
    project = opened(manager, "fraud-stream")
    job = Job.objects.create(project=project, kind="import")
    with pytest.raises(IntegrityError, match="a stream takes no uploads"), transaction.atomic():
        Dataset.objects.create(project=project, job=job, name="late", role="pool")


def test_strangers_never_come_to_see_records(manager: User) -> None:
    project = opened(manager, "voice-crowd")
    people = make_annotators(project, 1)
    trusted = {"oracle": "trusted", "preset": "pool-experts"}
    with pytest.raises(IntegrityError, match="strangers would see records"):
        update(project, **trusted)
    members.remove_member(project=project, user=people[0], role="annotator")
    crowd_links.create_link(
        project=project,
        platform="prolific",
        study="",
        answers_wanted=5,
        maximum_participants=5,
        lifetime=timedelta(days=1),
        owner=manager,
    )
    with pytest.raises(IntegrityError, match="strangers would see records"):
        update(project, **trusted)


def test_whoever_joins_a_group_that_labels_never_comes_to_see_records(manager: User) -> None:
    """The group is empty, so that no membership says so yet."""
    project = opened(manager, "voice-crowd")
    members.give_role(group=Group.objects.create(name="strangers"), project=project, role="annotator")
    with pytest.raises(IntegrityError, match="strangers would see records"):
        update(project, oracle="trusted", preset="pool-experts")
