"""The settings page, the history of changes, the log of actions, and what the first charge fixes."""

from uuid import uuid4

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from annotation.choices.catalogue import parameter_names
from annotation.data.services import retention
from annotation.models import Project, Role
from annotation.models.history import Action, ProjectChange
from annotation.projects.forms.settings import setting_name, setting_value
from annotation.work.services.tokens import Scope
from privacy.accounting.events import RandomChoiceEvent
from privacy.choices import Kind
from privacy.ledger import services as ledger
from tests.clients import browser_of, program_of
from tests.counting import new_counter
from tests.factories import add_members, make_project, make_user, open_records, write_settings
from tests.owning import as_owner
from tests.programs import Caller

pytestmark = pytest.mark.django_db
FIXED = {
    "privacy_unit": "contributor",
    "data_kind": "table",
    "classes": ["a", "b"],
    "columns": [{"name": "x", "low": 0, "high": 1}],
    "image_height": 3,
    "image_width": 3,
    "feature_dimension": 9,
    "image_colours": "colour",
    "features": "encoder",
}


@pytest.fixture
def project(manager, settings, tmp_path):
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    opened = make_project(owner=manager)
    add_members(opened, manager, role=Role.MANAGER)
    return opened


@pytest.fixture
def client(manager):
    return browser_of(manager)


def save(client, project, **fields):
    values = {"name": project.name, "question": project.question, "lease_seconds": 600} | fields
    return client.post(reverse("annotation:settings", args=[project.slug]), values)


def reserve(project):
    ledger.reserve(account=project.pool_account, event=RandomChoiceEvent(1), purpose="test", key=uuid4())


def test_a_change_is_stored_with_who_made_it_and_what_it_was(client, project):
    assert save(client, project, name="Another").status_code == 302
    change = ProjectChange.objects.get()
    assert (change.actor, change.fields) == ("manager", {"name": [project.name, "Another"]})
    page = client.get(reverse("annotation:settings", args=[project.slug])).content.decode()
    assert "Another" in page
    assert project.name in page


def test_the_history_counts_versions_and_speaks_the_readers_language(client, project):
    save(client, project, name="Another")
    write_settings(project, overlap=2, gold_share=0.25, confirm_answers=True)
    page = client.get(reverse("annotation:settings", args=[project.slug]), headers={"accept-language": "de"})
    rows = [(row["version"], row["fields"]) for row in page.context["changes"]]
    assert page.context["version"] == 3
    assert [version for version, _fields in rows] == [3, 2]
    assert rows[1][1] == [("Name", project.name, "Another")]
    assert rows[0][1][0] == ("Antworten werden bestätigt", "nein", "ja")
    assert rows[0][1][1] == ("Kontrollfragen in Prozent", "0", "25")
    assert rows[0][1][2][1:] == ("1", "2")
    assert "Version 3" in page.content.decode()


def test_a_program_reads_the_same_history_page_by_page(client, project, manager):
    save(client, project, name="Another")
    write_settings(project, overlap=2, gold_share=0.25)
    save(client, project, name="A third")
    ask, at = Caller(manager), f"projects/{project.slug}/configuration/changes"
    told = ask.get(at).json()
    page = client.get(reverse("annotation:settings", args=[project.slug]))
    assert [change["version"] for change in told] == [row["version"] for row in page.context["changes"]] == [4, 3, 2]
    assert ask.get(f"projects/{project.slug}/configuration").json()["version"] == 4
    assert [change["who"] for change in told] == ["manager", "", "manager"]
    assert told[0]["settings"] == [{"setting": "name", "before": "Another", "after": "A third"}]
    written = {one["setting"]: (one["before"], one["after"]) for one in told[1]["settings"]}
    assert (written["overlap"], written["gold_share"]) == ((1, 2), (0.0, 0.25))
    for change, row in zip(told, page.context["changes"], strict=True):
        assert [
            (setting_name(one["setting"]), *(setting_value(one["setting"], one[side]) for side in ("before", "after")))
            for one in change["settings"]
        ] == row["fields"]
    first = ask.get(at, limit=1)
    assert first.json() == told[:1]
    assert f"{at}?limit=1&offset=1" in first.headers["Link"]
    # A version keeps its number on every page.
    assert ask.get(at, limit=1, offset=1).json() == told[1:2]
    other = make_project(owner=manager)
    add_members(other, manager, role=Role.MANAGER)
    assert ask.get(f"projects/{other.slug}/configuration/changes").json() == []


def test_every_setting_has_a_name_and_its_values_words(project):
    kept = {"id", "labels_used_through", "labels_used_at"}
    for name in {
        *Project.absent,
        *parameter_names(Kind.STRATEGY),
        *(field.attname for field in Project._meta.concrete_fields),
    } - kept:
        assert setting_name(name) != name, name
        assert setting_value(name, None) == "none"
    assert setting_value("columns", [{"name": "age", "low": 0, "high": 9}, {"name": "place"}]) == "age, place"
    assert setting_value("pool_account_id", 7) == "#7"
    assert setting_value("training_epsilon", 0.30000000000000004) == "0.3"
    # A column that a later version of the site does not have any more.
    assert (setting_name("gone"), setting_value("gone", 3)) == ("gone", "3")


def test_a_period_is_part_of_the_history(client, project):
    retention.set_retention(
        project=project,
        actor="manager",
        records_days=30,
        answers_days=None,
        comments_days=365,
        uploads_days=90,
        actions_days=1095,
    )
    page = client.get(reverse("annotation:settings", args=[project.slug]))
    assert page.context["changes"][0]["fields"] == [("Days for which this is kept: Records", "none", "30")]


def test_a_change_by_no_page_has_no_name_even_after_one(client, project):
    save(client, project, name="Another")
    write_settings(project, round_size=11)
    assert ProjectChange.objects.latest("pk").actor == ""


def test_what_changes_nothing_leaves_no_change(client, project):
    save(client, project)
    Project.objects.filter(pk=project.pk).update(labels_used_through=4, labels_used_at=timezone.now())
    assert not ProjectChange.objects.exists()


def test_actions_are_noted_once_they_succeeded(client, project):
    assert save(client, project, lease_seconds=1).status_code == 422
    own = project.memberships.get()
    client.post(reverse("annotation:remove_member", args=[project.slug, own.pk]))
    assert not Action.objects.exists()
    add_members(project, make_user())
    membership = project.memberships.get(role=Role.ANNOTATOR)
    client.post(reverse("annotation:remove_member", args=[project.slug, membership.pk]))
    action = Action.objects.get()
    assert (action.actor, action.project, action.route) == ("manager", project, "annotation:remove_member")
    assert action.target == {"membership_id": membership.pk}


def test_a_program_is_noted_by_its_person_and_answers_are_not(project):
    person = make_user("annotator")
    add_members(project, person)
    open_records(project)
    browser = browser_of(person)
    browser.get(reverse("annotation:label", args=[project.slug]))
    lease = project.assignments.get()
    assert browser.post(reverse("annotation:submit", args=[lease.pk]), {"choice": 0}).status_code < 400
    program_of(person, Scope.LABELS_WRITE).post(f"/api/v1/projects/{project.slug}/assignments")
    assert not Action.objects.exists()


@pytest.mark.parametrize("model", [ProjectChange, Action])
def test_nothing_is_rewritten(client, project, model):
    save(client, project, name="Another")
    row = model.objects.get()
    for spoil in (lambda: model.objects.filter(pk=row.pk).update(actor="x"), row.delete):
        with pytest.raises(DatabaseError, match=r"permission denied|never rewritten"), transaction.atomic():
            spoil()
        with as_owner(), pytest.raises(DatabaseError, match="never rewritten"), transaction.atomic():
            spoil()


@pytest.mark.parametrize("field", FIXED)
def test_the_first_charge_fixes_what_the_guarantee_rests_on(project, field):
    standing = getattr(project, field)
    write_settings(project, **{field: FIXED[field]})
    write_settings(project, **{field: standing})
    reserve(project)
    stays = r"never changes (after the first charge|once its pool account has paid)|what was paid for goes on under"
    with pytest.raises(IntegrityError, match=stays), transaction.atomic():
        write_settings(project, **{field: FIXED[field]})
    write_settings(project, name="may change", round_size=5)


def test_the_page_says_what_is_fixed(client, project):
    address = reverse("annotation:settings", args=[project.slug])
    assert "The first charge fixes" in client.get(address).content.decode()
    reserve(project)
    assert "Something was charged, so settings" in client.get(address).content.decode()
