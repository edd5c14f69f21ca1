import json
import os
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connections
from django.urls import reverse

from annotation.errors import InvalidConfiguration, ProjectClosed
from annotation.models import Assignment, Dataset, Job, Label, Membership, Project, Query, Record, Role
from annotation.models.retention import Deletion
from annotation.people.services import members
from annotation.projects.services import lifecycle
from annotation.questions.services import labels, queue
from learner.errors import ReleaseBuried
from learner.models import ModelRelease, Round, SecretDraw, TrainingRun
from learner.releases import storage
from learner.rounds.next_step import project_status
from learner.rounds.services import closing as deletion
from learner.rounds.services import loop, suggestions
from privacy.ledger.models import BudgetAccount, LedgerEntry
from tests import learning
from tests.clients import browser_of, program_of
from tests.counting import new_counter
from tests.factories import make_user
from tests.owning import as_owner
from tests.refusing import refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def alone(settings, tmp_path, monkeypatch) -> None:
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)


@pytest.fixture
def manager(project):
    return project.created_by


@pytest.fixture
def project(remembered, request):
    return learning.begin_experts(remembered, released="released" in request.fixturenames)


@pytest.fixture
def released(project):
    return project


@pytest.fixture
def client(manager):
    return browser_of(manager)


def delete(project, *, keep=True):
    asked = lifecycle.request_deletion(
        project=project, typed=project.slug, keep_releases=keep, actor="manager", send=False
    )
    deletion.delete_project(job_id=asked.job_id)
    project.refresh_from_db()
    return asked


def ledger():
    entries = LedgerEntry.objects.order_by("pk").values_list("pk", "hash", "previous_hash", "epsilon_spent_nano")
    return list(entries), list(BudgetAccount.objects.order_by("pk").values())


def test_an_archived_project_asks_nobody_and_schedules_nothing(project) -> None:
    learning.work_off(project)
    annotator = make_user()
    members.add_member(project=project, user=annotator, role=Role.ANNOTATOR)
    held = queue.claim_next(project=project, user=annotator)
    free = sum(Query.objects.values_list("open_slots", flat=True))
    archived = lifecycle.archive_project(project=project)
    assert sum(Query.objects.values_list("open_slots", flat=True)) == free + 1
    assert Assignment.objects.get(pk=held.pk).state == "expired"
    assert queue.claim_next(project=archived, user=annotator) is None
    held.project = archived
    with pytest.raises(ProjectClosed):
        labels.submit_label(assignment=held, choice=0)
    before = (Round.objects.count(), TrainingRun.objects.count())
    loop.advance_projects()
    loop.advance_project(project_id=project.pk)
    assert (Round.objects.count(), TrainingRun.objects.count()) == before
    assert "archived" in project_status(archived).sentence
    back = lifecycle.unarchive_project(project=project)
    assert back.state == "paused"
    with pytest.raises(InvalidConfiguration):
        lifecycle.unarchive_project(project=project)


def test_pages_and_routes_of_an_archived_project_only_read(client, manager, released) -> None:
    lifecycle.archive_project(project=released)
    for name in ("settings", "people", "data", "labelling", "quality", "label_budget", "guidelines", "retention"):
        page = reverse(f"annotation:{name}", args=[released.slug])
        assert client.get(page).status_code == 200, name
        assert client.post(page, {"name": "Other"}).status_code == 409, name
    for name in ("overview", "releases", "closing", "forget"):
        assert client.get(reverse(f"learner:{name}", args=[released.slug])).status_code == 200, name
    assert client.post(reverse("learner:retire", args=[released.slug, 1]), {"reason": "r"}).status_code == 409
    assert client.post(reverse("annotation:set_state", args=[released.slug]), {"state": "active"}).status_code == 409
    program = program_of(manager)
    address = reverse("api:list_projects")
    assert program.get(address).json() == []
    assert [found["state"] for found in program.get(address, {"closed": "true"}).json()] == ["archived"]
    records = reverse("api:post_records", args=[released.slug])
    answer = program.post(records, json.dumps({"records": [{"text": "a"}]}), content_type="application/json")
    assert answer.status_code == 409


def test_a_deletion_wants_the_short_name_typed(client, project) -> None:
    address = reverse("learner:delete_project", args=[project.slug])
    assert client.post(address, {"typed": project.name, "releases": "keep"}).status_code == 422
    assert not Deletion.objects.exists()
    assert client.post(address, {"typed": project.slug, "releases": "keep"}).status_code == 302
    page = client.get(reverse("learner:closing", args=[project.slug])).content.decode()
    assert "This project is deleted" in page
    assert client.post(address, {"typed": project.slug, "releases": "bury"}).status_code == 409


@pytest.mark.one_in(2)
@pytest.mark.parametrize("keep", [True, False])
def test_what_was_held_goes_and_what_was_promised_stays(client, released, keep) -> None:
    entries = ledger()
    release = ModelRelease.objects.get()
    folder = Path(storage.folder_of(release))
    actions = released.changes.count()
    delete(released, keep=keep)
    assert ledger() == entries
    for model in (Record, Query, Assignment, Label):
        assert not model.objects.exists(), model
    assert list(Membership.objects.values_list("role", flat=True)) == ["manager"]
    assert not Path(default_storage.path(f"features/{released.pk}")).exists()
    assert {dataset.name for dataset in Dataset.objects.all()} == {
        f"upload {dataset.pk}" for dataset in Dataset.objects.all()
    }
    assert released.changes.count() == actions + 1
    after = ModelRelease.objects.get()
    assert (after.version, after.digests, after.guarantee, after.entry) == (
        release.version,
        release.digests,
        release.guarantee,
        release.entry,
    )
    assert list(after.lineage.order_by("pk")) == list(release.lineage.order_by("pk"))
    assert (after.weights == release.weights, folder.exists(), after.state == "retired") == (keep, keep, not keep)
    for page in ("learner:closing", "learner:overview", "learner:releases", "annotation:budget", "annotation:settings"):
        assert client.get(reverse(page, args=[released.slug])).status_code == 200, page
    assert client.get(reverse("learner:release", args=[released.slug, 1])).status_code == 200
    file = client.get(reverse("learner:release_file", args=[released.slug, 1, "weights.json"]))
    file.close()
    assert file.status_code == (200 if keep else 410)
    served = released.releases.get(version=1)
    if keep:
        assert suggestions.predict_records(release=served, texts=["apple"], rows=None)[1]
    else:
        with pytest.raises(ReleaseBuried):
            suggestions.predict_records(release=served, texts=["apple"], rows=None)
    call_command("audit_ledger", verbosity=0)


@pytest.mark.parametrize("step", ["project_rows_erased", "project_files_erased"])
def test_a_killed_deletion_is_taken_up_again(released, step) -> None:
    asked = lifecycle.request_deletion(
        project=released, typed=released.slug, keep_releases=False, actor="manager", send=False
    )
    connections.close_all()
    child = os.fork()
    if child == 0:
        os.environ["DPAL_FAULT_POINT"] = step
        try:
            deletion.delete_project(job_id=asked.job_id)
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    Job.objects.filter(pk=asked.job_id).update(leased_until="2000-01-01T00:00:00Z")
    deletion.delete_project(job_id=asked.job_id)
    assert Job.objects.get(pk=asked.job_id).state == "done"
    assert ModelRelease.objects.get().weights == {}


def test_a_secret_projects_coins_go_with_it_and_not_before() -> None:
    project = learning.open_secret(make_user())
    learning.upload(project, [[text] for text in learning.sentences(40)], ["text"])
    learning.work_off(project)
    with refused("learner_coins_kept"):
        SecretDraw.objects.all().delete()
    with refused("learner_coins_stay"):
        SecretDraw.objects.update(blocks=b"")
    delete(project)
    assert not SecretDraw.objects.exists()


def test_the_database_keeps_the_tombstone(released) -> None:
    dataset, run = Dataset.objects.first(), TrainingRun.objects.get()
    with as_owner(), refused("annotation_project_stays"):
        Project.objects.filter(pk=released.pk)._raw_delete("default")
    with refused("annotation_label_kept"):
        Label.objects.first().delete()
    with refused("learner_release_stays"):
        ModelRelease.objects.update(state="retired", retired_reason="r", weights={}, features={}, configuration={})
    delete(released)
    with refused("annotation_project_stays_deleted"):
        Project.objects.filter(pk=released.pk).update(state="active")
    with as_owner(), refused("annotation_deletion_kept"):
        Deletion.objects.update(actor="nobody")
    new = {"project": released, "job": released.jobs.create(kind="import")}
    with refused("annotation_dataset_project_open"):
        Dataset.objects.create(name="more", **new)
    with refused("learner_round_project_open"):
        Round.objects.create(project=released, number=99, strategy="random", requested=1)
    with refused("learner_training_project_open"):
        TrainingRun.objects.create(project=released, version=99, last_consensus_id=0, labels_used=0)
    with refused("learner_release_project_open"):
        ModelRelease.objects.create(project=released, version=99, training_run=run, entry=run.release.entry)
    with refused("learner_release_stays"):
        ModelRelease.objects.update(guarantee=[])
    assert Dataset.objects.filter(pk=dataset.pk).exists()
