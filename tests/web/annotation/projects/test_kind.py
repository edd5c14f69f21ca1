from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.choices.presets import PRESETS, broken_rules
from annotation.choices.services import frozen_settings
from annotation.data.services import streams
from annotation.errors import ConfigurationFrozen, InvalidConfiguration, NotAStream
from annotation.models import Dataset, Job, Project
from annotation.people.services import crowd_links, limits, members
from annotation.projects.forms.drafts import arrival_of
from annotation.projects.services import kinds
from annotation.projects.services.configuring import limits_of
from annotation.questions.services import labelling
from privacy.accounting.selection import RandomChoiceEvent
from privacy.accounting.units import ATTO, NANO
from privacy.ledger import services as ledger
from privacy.ledger.selectors import guarantee
from tests import streaming
from tests.clients import browser_of
from tests.factories import make_annotators, make_records, open_preset

pytestmark = pytest.mark.django_db

KINDS = {
    "voice-crowd": ("crowd", "pool"),
    "pool-experts": ("trusted", "pool"),
    "fraud-stream": ("trusted", "stream"),
    "full-information-ogd": ("trusted", "stream"),
    "confirm-or-reject": ("trusted", "stream"),
}


@pytest.fixture
def client(manager: User) -> Client:
    return browser_of(manager)


def opened(manager: User, preset: str, **settings: object) -> Project:
    wide = {"pool_epsilon": 10.0, "pool_delta": 5e-5}
    return open_preset(
        manager, preset, name=preset, data_kind="text", classes=["yes", "no"], question="Is it?", **wide | settings
    )


def changed(project: Project, preset: str, actor: User, **kwargs: object) -> Project:
    kinds.change_kind(
        project=project, preset=preset, unit=str(PRESETS[preset].defaults["privacy_unit"]), actor=actor, **kwargs
    )
    return Project.objects.get(pk=project.pk)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("preset", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_every_kind_becomes_every_other_and_has_a_proof(manager: User, preset: str, other: str) -> None:
    project = changed(opened(manager, preset), other, manager)
    assert (project.preset, project.oracle, project.arrival) == (other, *KINDS[other])
    assert broken_rules(project.settings | limits_of(project)) == {}
    assert frozen_settings(project) == {}
    stream = Dataset.objects.filter(project=project)
    assert stream.count() == (project.arrival == "stream")
    assert (project.labels_account is not None) == (project.oracle == "crowd")
    assert project.pool_account.unit == project.privacy_unit
    assert (project.pool_account.epsilon_limit_nano, project.pool_account.delta_limit_atto) == (
        10 * NANO,
        5 * ATTO // 10**5,
    )
    # And back, under the limits it had.
    again = changed(project, preset, manager)
    before = opened(manager, preset)
    own = ("id", "slug", "name", "created_at", "pool_account_id", "labels_account_id", "configuration_id")
    assert {name: value for name, value in again.settings.items() if name not in own} == {
        name: value for name, value in before.settings.items() if name not in own
    }
    assert {
        name: value for name, value in Project.objects.filter(pk=again.pk).values().get().items() if name not in own
    } == {name: value for name, value in Project.objects.filter(pk=before.pk).values().get().items() if name not in own}


def test_the_account_of_the_answers_comes_back_with_its_limit(manager: User) -> None:
    project = opened(manager, "voice-crowd", labels_epsilon=4.0)
    account = project.labels_account_id
    project = changed(project, "pool-experts", manager)
    project = changed(project, "voice-crowd", manager, labels_epsilon=50.0)
    assert project.labels_account_id == account
    assert guarantee(project.labels_account).epsilon_limit == 4.0


def test_the_page_shows_what_follows_and_changes_it_on_the_second_click(client: Client, manager: User) -> None:
    project = opened(manager, "pool-experts")
    page = reverse("annotation:kind", args=[project.slug])
    sent = {"oracle": "trusted", "arrival": "stream", "privacy_unit": "record", "preset": ""}
    looked = client.post(page, sent)
    assert looked.status_code == 200
    labels = {change.label for change in looked.context["changes"]}
    assert {"Data source", "Selection", "When a model is trained"} <= {str(label) for label in labels}
    assert Project.objects.get(pk=project.pk).arrival == "pool"
    assert client.post(page, sent | {"confirm": "1"}).status_code == 302
    project.refresh_from_db()
    assert (project.arrival, project.preset, project.selection) == ("stream", "fraud-stream", "bernoulli_screen")
    change = project.changes.get()
    assert (change.fields["arrival"], change.actor) == (["pool", "stream"], "manager")
    configuration = client.get(reverse("annotation:configuration", args=[project.slug]))
    assert "stream: records posted one by one" in configuration.content.decode()


def test_what_has_no_proof_is_refused_with_its_rule(client: Client, manager: User) -> None:
    project = opened(manager, "pool-experts")
    page = reverse("annotation:kind", args=[project.slug])
    sent = {"oracle": "crowd", "arrival": "stream", "privacy_unit": "record", "confirm": "1"}
    response = client.post(page, sent)
    assert response.status_code == 422
    assert "so a crowd needs a pool" in response.content.decode()
    sent |= {"oracle": "trusted", "privacy_unit": "contributor"}
    assert "not for contributors" in client.post(page, sent).content.decode()
    sent |= {"privacy_unit": "record", "arrival": "pool", "preset": "voice-crowd"}
    assert "another oracle or arrival" in client.post(page, sent).content.decode()
    assert not project.changes.exists()


def test_a_limit_never_changes_by_the_way(client: Client, manager: User) -> None:
    """Neither raised for the new kind nor past a second manager: who wants more gives the reason first."""
    project = opened(manager, "fraud-stream", **streaming.VISIBLE)
    before = guarantee(project.pool_account).delta_limit
    sent = {"oracle": "trusted", "arrival": "pool", "privacy_unit": "record", "preset": "pool-experts", "confirm": "1"}
    response = client.post(reverse("annotation:kind", args=[project.slug]), sent)
    assert response.status_code == 302, response.content.decode()
    project.refresh_from_db()
    assert guarantee(project.pool_account).delta_limit == before < 3e-5
    with pytest.raises(InvalidConfiguration, match="pool_delta"):
        changed(project, "voice-crowd", manager)
    limits.change_limit(
        project=project,
        account=project.pool_account,
        epsilon_limit=3.0,
        delta_limit=3e-5,
        actor=manager,
        reason="a crowd is asked",
    )
    assert changed(project, "voice-crowd", manager).oracle == "crowd"


def test_limits_that_pay_for_no_gate_are_named_with_what_to_do(client: Client, manager: User) -> None:
    """Experts' limits as their preset has them: delta 5e-6, where one upload through a crowd's gate costs 7.8e-6."""
    project = opened(manager, "pool-experts", pool_epsilon=2.0, pool_delta=5e-6)
    sent = {"oracle": "crowd", "arrival": "pool", "privacy_unit": "contributor", "preset": "voice-crowd"}
    refused = client.post(reverse("annotation:kind", args=[project.slug]), sent | {"confirm": "1"})
    assert refused.status_code == 422
    (line,) = refused.context["wrong"]
    assert "costs epsilon 1, delta 7.8e-06" in line
    assert "limits are 2 and 5e-06. Raise them first" in line
    assert reverse("annotation:budget", args=[project.slug]) in refused.content.decode()
    assert refused.context["limits_wrong"]
    assert Project.objects.get(pk=project.pk).oracle == "trusted"
    account = project.pool_account
    for delta_limit, paid in ((7e-6, False), (8e-6, True)):
        limits.change_limit(
            project=project,
            account=account,
            epsilon_limit=2.0,
            delta_limit=delta_limit,
            actor=manager,
            reason="a crowd is asked",
        )
        if paid:
            assert changed(project, "voice-crowd", manager).oracle == "crowd"
        else:
            with pytest.raises(InvalidConfiguration, match="pool_delta: An upload through this gate"):
                changed(project, "voice-crowd", manager)


def test_a_limit_in_answers_is_refused_where_it_would_tell(manager: User) -> None:
    project = opened(manager, "voice-crowd")
    labelling.set_label_budget(project=project, labels_limit=50, money_limit=None, price_per_label=None, currency="")
    project.refresh_from_db()
    with pytest.raises(InvalidConfiguration, match=r"labels_limit: .*the size of the sample"):
        changed(project, "pool-experts", manager)
    with pytest.raises(InvalidConfiguration, match=r"labels_limit: .*the size of the sample"):
        changed(project, "fraud-stream", manager)
    assert changed(project, "full-information-ogd", manager).labels_limit == 50


def update(project: Project, **values: object) -> None:
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(**values)


def charged(project: Project) -> None:
    ledger.reserve(account=project.pool_account, event=RandomChoiceEvent(1), purpose="test", key=uuid4(), actor="test")


@pytest.mark.parametrize("field", ["oracle", "arrival", "preset"])
@pytest.mark.parametrize("preset", ["voice-crowd", "pool-experts", "fraud-stream"])
def test_the_database_keeps_all_of_it_from_the_first_charge_on(manager: User, preset: str, field: str) -> None:
    """Around the service, and told apart from the other rules by the trigger's name."""
    project = opened(manager, preset)
    charged(project)
    others = {
        "oracle": "trusted" if project.oracle == "crowd" else "crowd",
        "arrival": "pool" if project.arrival == "stream" else "stream",
        "preset": "confirm-or-reject",
    }
    with pytest.raises(IntegrityError, match="never changes after the first charge"):
        update(project, **{field: others[field]})
    other = next(key for key in KINDS if KINDS[key] != (project.oracle, arrival_of(PRESETS[preset])))
    with pytest.raises(ConfigurationFrozen, match="Something was charged"):
        changed(project, other, manager)


def test_an_upload_hinders_another_kind_and_the_database_agrees(client: Client, manager: User) -> None:
    project = opened(manager, "pool-experts")
    make_records(project, ["one", "two"], role="public_test", row_count=2)
    assert changed(project, "fraud-stream", manager).arrival == "stream"
    project = changed(project, "pool-experts", manager)
    make_records(project, ["one", "two"], row_count=2)
    with pytest.raises(ConfigurationFrozen, match="1 upload was read"):
        changed(project, "fraud-stream", manager)
    with pytest.raises(IntegrityError, match="once there are records or questions"):
        update(project, preset="fraud-stream", arrival="stream")
    sent = {"oracle": "trusted", "arrival": "stream", "privacy_unit": "record"}
    response = client.post(reverse("annotation:kind", args=[project.slug]), sent)
    assert response.status_code == 422
    assert "was read for this kind of project" in response.content.decode()


def test_posted_records_hinder_a_pool(manager: User) -> None:
    project = opened(manager, "fraud-stream")
    assert streams.post_records(project=project, records=[{"text": "hello"}]).accepted == 1
    with pytest.raises(ConfigurationFrozen, match="holds records of another kind"):
        changed(project, "pool-experts", manager)
    with pytest.raises(IntegrityError, match="once there are records or questions"):
        update(project, arrival="pool", preset="pool-experts")


def test_public_rows_of_another_kind_hinder(manager: User) -> None:
    project = open_preset(
        manager,
        "pool-experts",
        name="t",
        data_kind="table",
        columns=[{"name": "amount", "low": 0.0, "high": 9.0}],
        classes=["yes", "no"],
        question="?",
        pool_delta=5e-5,
        pool_epsilon=10.0,
    )
    make_records(project, payloads=[{"amount": 1.0}], role="public_test", row_count=1)
    with pytest.raises(InvalidConfiguration, match="data_kind: The project holds records of another kind"):
        changed(project, "voice-crowd", manager)
    assert changed(project, "fraud-stream", manager).columns == project.columns


def test_strangers_never_come_to_see_records(manager: User) -> None:
    project = opened(manager, "voice-crowd")
    people = make_annotators(project, 1)
    with pytest.raises(ConfigurationFrozen, match="Remove roles, links and invitations"):
        changed(project, "pool-experts", manager)
    trusted = {"oracle": "trusted", "preset": "pool-experts"}
    with pytest.raises(IntegrityError, match="strangers would see records"):
        update(project, **trusted)
    members.remove_member(project=project, user=people[0], role="annotator")
    link, token = crowd_links.create_link(
        project=project,
        platform="prolific",
        study="",
        answers_wanted=5,
        maximum_participants=5,
        lifetime=timedelta(days=1),
        owner=manager,
    )
    with pytest.raises(ConfigurationFrozen, match="Remove roles, links and invitations"):
        changed(project, "pool-experts", manager)
    with pytest.raises(IntegrityError, match="strangers would see records"):
        update(project, **trusted)
    crowd_links.revoke_link(link=link)
    assert changed(project, "pool-experts", manager).oracle == "trusted"
    # Not even a link that somehow stayed alive.
    type(link).objects.filter(pk=link.pk).update(revoked_at=None, expires_at=timezone.now() + timedelta(days=1))
    with pytest.raises(Exception, match="not open"):
        crowd_links.find_link(token=token)


def test_whoever_joins_a_group_that_labels_never_comes_to_see_records(manager: User) -> None:
    """The group is empty, so that no membership says so yet."""
    project = opened(manager, "voice-crowd")
    group = Group.objects.create(name="strangers")
    given = members.give_role(group=group, project=project, role="annotator")
    with pytest.raises(ConfigurationFrozen, match="Remove roles, links and invitations"):
        changed(project, "pool-experts", manager)
    with pytest.raises(IntegrityError, match="strangers would see records"):
        update(project, oracle="trusted", preset="pool-experts")
    members.take_role(given=given)
    members.give_role(group=group, project=project, role="engineer")
    assert changed(project, "pool-experts", manager).oracle == "trusted"


def test_what_was_on_its_way_meanwhile_is_refused(manager: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload that was looked at as one of a pool, and records that were looked at as those of a stream."""
    project = changed(opened(manager, "pool-experts"), "fraud-stream", manager)
    job = Job.objects.create(project=project, kind="import")
    with pytest.raises(IntegrityError, match="a stream takes no uploads"), transaction.atomic():
        Dataset.objects.create(project=project, job=job, name="late", role="pool")
    stale = Project.objects.get(pk=project.pk)
    stream = streams.stream_dataset(stale)
    changed(project, "pool-experts", manager)
    monkeypatch.setattr(streams, "stream_dataset", lambda _project: stream)
    with pytest.raises(NotAStream):
        streams.post_records(project=stale, records=[{"text": "late"}])
