"""Decisions about a population, projects that join it, and answers to a data subject."""

import io
import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models.functions import Now

from annotation.budget import population_sheets
from annotation.budget import services as budget_populations
from annotation.budget.population_sheets import project_limit_words
from annotation.data.services.charged_start import open_start_account
from annotation.data.services.forgetting import pseudonym_of
from annotation.data.services.pseudonyms import reference_of
from annotation.data.who_lost_what import who_lost_what
from annotation.errors import ForgettingRefused, LimitRequestRefused
from annotation.models import Dataset, DatasetRole, DatasetState, Job
from annotation.models.limits import BudgetManager, LimitRequest
from annotation.models.retention import Forgetting
from annotation.people.services import limits
from annotation.projects.services import configuring
from privacy.accounting.events import GaussianEvent, OutputPerturbationEvent
from privacy.errors import BudgetExceeded, UnsoundCombination
from privacy.ledger import populations
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import can_pay, guarantee, last_entry, quota_of
from tests.factories import make_account, make_project, make_records, make_user, open_population
from tests.owning import as_owner
from tests.refusing import hold_everything, refused_late

pytestmark = pytest.mark.django_db
# Costs epsilon 0.5.
RELEASE = OutputPerturbationEvent(10.0, 0.3, 5, 1e-6)


@pytest.fixture
def managers():
    return make_user(), make_user()


@pytest.fixture
def population(managers):
    return opened(*managers)


def opened(owner, second, **terms):
    return open_population(owner=owner, second=second, **{"epsilon_limit": 4.0, "delta_limit": 1e-5} | terms)


def add(population, project, number=1):
    return budget_populations.add_project(
        population=population, project=project, records_per_person=number, actor=population.managers.first().user
    )


def start_of(project):
    account = open_start_account(project, 2.0, actor=None)
    return Dataset.objects.create(
        project=project,
        job=Job.objects.create(project=project, kind="import"),
        name="start",
        role=DatasetRole.CHARGED_START,
        state=DatasetState.READY,
        account=account,
    )


def contributors(project, *names):
    (first, *_), dataset = make_records(project, ["t"] * len(names)), None
    for record, name in zip(first.dataset.records.order_by("pk"), names, strict=True):
        record.contributor = pseudonym_of(name)
        record.save(update_fields=["contributor"])
    return dataset


def test_a_higher_limit_takes_two_managers(population, managers):
    owner, second = managers
    asked = limits.change_limit(
        account=population, epsilon_limit=6.0, delta_limit=1e-5, reason="a third project", actor=owner
    )
    assert guarantee(population).epsilon_limit == 4.0
    with pytest.raises(LimitRequestRefused, match="Another manager"):
        limits.approve_request(request_id=asked.pk, of=population, actor=owner)
    limits.approve_request(request_id=asked.pk, of=population, actor=second)
    population.refresh_from_db()
    assert guarantee(population).epsilon_limit == 6.0
    entry = last_entry(population)
    assert (entry.actor, entry.reason) == (owner.get_username(), "a third project")
    assert json.loads(entry.event_json)["approved_by"] == second.get_username()


def test_a_lower_limit_takes_one(population, managers):
    assert (
        limits.change_limit(account=population, epsilon_limit=3.0, delta_limit=1e-5, reason="r", actor=managers[0])
        is None
    )
    population.refresh_from_db()
    assert guarantee(population).epsilon_limit == 3.0


def test_a_refusal_changes_nothing_and_is_said_once(population, managers):
    def ask():
        return limits.change_limit(
            account=population, epsilon_limit=6.0, delta_limit=1e-5, reason="r", actor=managers[0]
        )

    first = ask()
    with pytest.raises(LimitRequestRefused, match="already waits"):
        ask()
    assert limits.refuse_request(request_id=first.pk, of=population, actor=managers[1])
    with pytest.raises(LimitRequestRefused, match="was decided"):
        limits.approve_request(request_id=first.pk, of=population, actor=managers[1])
    withdrawn = ask()
    limits.refuse_request(request_id=withdrawn.pk, of=population, actor=managers[0])
    withdrawn.refresh_from_db()
    assert withdrawn.state == "withdrawn"
    late = ask()
    with as_owner(), connection.cursor() as cursor:
        hold_everything()
        cursor.execute("ALTER TABLE annotation_limitrequest DISABLE TRIGGER USER")
        LimitRequest.objects.filter(pk=late.pk).update(expires_at=Now() - timedelta(days=1))
        hold_everything()
        cursor.execute("ALTER TABLE annotation_limitrequest ENABLE TRIGGER USER")
    assert limits.expire_requests() == 1


def test_a_further_manager_takes_two(population, managers):
    third = make_user()
    asked = limits.appoint_budget_manager(account=population, user=third, reason="she joins us", actor=managers[0])
    assert population.managers.count() == 2
    limits.approve_request(request_id=asked.pk, of=population, actor=managers[1])
    assert population_sheets.populations_of(third).get() == population
    with pytest.raises(LimitRequestRefused, match="already"):
        limits.appoint_budget_manager(account=population, user=third, reason="r", actor=managers[0])


@pytest.mark.parametrize("who", ["self", "gone"])
def test_the_second_manager_is_somebody_else(managers, who):
    second = managers[0] if who == "self" else make_user(is_active=False)
    with pytest.raises(LimitRequestRefused, match="another active user"):
        opened(managers[0], second)


def test_a_project_joins_with_all_accounts_of_its_records_and_not_with_its_answers(population):
    project = make_project(oracle="crowd", data_kind="text")
    quotas = add(population, project, 2)
    assert quotas == [project.pool_account]
    trusted = make_project()
    start = start_of(trusted)
    assert {quota.pk for quota in add(population, trusted)} == {trusted.pool_account_id, start.account_id}
    hold_everything()


def test_what_comes_later_follows(population):
    project = make_project()
    add(population, project, 3)
    start = start_of(project)
    assert quota_of(start.account).records_per_person == 3
    again = configuring.account_of_terms(project, "contributor", "pure", make_user())
    assert quota_of(again).population == population
    hold_everything()


def test_a_declared_number_below_what_the_records_name_is_refused(population):
    project = make_project()
    contributors(project, "anna", "anna", "ben")
    with pytest.raises(UnsoundCombination, match="more records than the declared 1"):
        add(population, project, 1)
    assert add(population, project, 2)


def test_the_sheet_says_how_many_releases_are_left(population):
    first, second = make_project(name="A"), make_project(name="B")
    for project in (first, second):
        add(population, project, 2)
        ledger.reserve(account=project.pool_account, event=RELEASE, purpose="train", key=uuid4(), subject="release:1")
    cost = RELEASE.cost().epsilon
    sheet = population_sheets.sheet_of(population)
    left = int((4.0 - 4 * cost) / (2 * cost) + 1e-9)
    assert [share.forecast for share in sheet.shares] == [
        f"{name} can still buy {left} operation{'' if left == 1 else 's'} like its last before its limit or the "
        "population's is spent."
        for name in "AB"
    ]
    assert [share.taken for share in sheet.shares] == pytest.approx([2 * cost, 2 * cost])
    assert sheet.guarantee.epsilon_spent == pytest.approx(4 * cost)
    assert sheet.shares[0].quota == pytest.approx(20.0)
    assert project_limit_words(first).startswith("Population Patients: ")
    assert project_limit_words(make_project()).startswith("No common limit: people with records")


def test_what_the_population_cannot_pay_a_project_cannot(population):
    project = make_project()
    add(population, project, 10)
    assert not can_pay(project.pool_account, [RELEASE, RELEASE, RELEASE])
    with pytest.raises(BudgetExceeded, match="Patients: people costs"):
        spend_all(project)
    assert not can_pay(project.pool_account, [RELEASE])


def spend_all(project) -> None:
    for _ in range(9):
        ledger.reserve(account=project.pool_account, event=RELEASE, purpose="train", key=uuid4())


def test_a_gaussian_release_has_no_place_in_a_pure_population(population):
    project = make_project(pool_account=make_account(delta_limit=1e-5))
    add(population, project)
    with pytest.raises(UnsoundCombination, match="no finite epsilon"):
        ledger.reserve(account=project.pool_account, event=GaussianEvent(1.0, 9.0), purpose="p", key=uuid4())


# What a data subject is told.


def test_a_data_subject_is_told_accounts_and_limits_and_no_record(population, monkeypatch):
    inside, outside, other = make_project(), make_project(), make_project()
    contributors(inside, "anna", "ben")
    contributors(outside, "anna")
    contributors(other, "ben")
    add(population, inside, 2)
    answer = who_lost_what(name="anna")
    assert [(held.project, held.forgotten) for held in answer.projects] == [(inside.slug, False), (outside.slug, False)]
    assert answer.outside == (outside.pool_account.label,)
    assert [common.population for common in answer.populations] == [population.slug]
    assert answer.projects[0].accounts[0].records_per_person == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("anna\n"))
    out = io.StringIO()
    call_command("who_lost_what", stdout=out)
    told = json.loads(out.getvalue())
    assert [held["project"] for held in told["projects"]] == [inside.slug, outside.slug]
    assert told["populations"][0]["epsilon_limit"] == 4.0
    assert "anna" not in out.getvalue()


def test_who_was_forgotten_stays_covered():
    project = make_project()
    pseudonym = pseudonym_of("anna")
    Forgetting.objects.create(
        project=project,
        job=Job.objects.create(project=project, kind="forget"),
        reference=reference_of(project=project, contributor=pseudonym),
        actor="t",
        contributor=pseudonym,
    )
    (held,) = who_lost_what(name="anna").projects
    assert (held.project, held.forgotten) == (project.slug, True)


def test_nobody_is_told_anything_by_an_empty_name_or_about_a_stranger():
    assert who_lost_what(name="nobody").projects == ()
    with pytest.raises(ForgettingRefused):
        who_lost_what(name="")


def test_another_key_of_pseudonyms_finds_nobody(population, settings):
    project = make_project()
    contributors(project, "anna")
    add(population, project)
    settings.PSEUDONYM_KEY = "another"
    assert who_lost_what(name="anna").projects == ()


# What the database refuses, whoever writes.


def test_a_limit_raised_past_the_second_manager(population, managers):
    refused_late(
        "annotation_limit_needs_second",
        lambda: ledger.change_account_limits(
            account=population, epsilon_limit=5.0, delta_limit=1e-5, actor=managers[0], reason="alone"
        ),
    )


def test_a_manager_made_alone(population):
    refused_late(
        "annotation_budgetmanager_by_two", lambda: BudgetManager.objects.create(account=population, user=make_user())
    )


def test_a_manager_twice(managers):
    with transaction.atomic():
        bare = populations.open_shared_account(
            name="x", unit="record", filter="pure", epsilon_limit=1.0, delta_limit=0.0, actor="t"
        )
    BudgetManager.objects.create(account=bare, user=managers[0])
    refused_late("annotation_budgetmanager_once", lambda: BudgetManager.objects.create(account=bare, user=managers[0]))


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "UPDATE {} SET user_id = user_id"])
def test_managers_stay(population, statement):
    hold_everything()

    def act() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement.format("annotation_budgetmanager"))

    with as_owner():
        refused_late("annotation_budgetmanager_stays", act)


def wish(population, managers, **fields):
    given = {
        "account": population,
        "kind": "limit",
        "epsilon_limit_nano": 1,
        "delta_limit_atto": 1,
        "reason": "r",
        "requested_by": managers[0],
        "expires_at": Now() + timedelta(days=1),
    }
    return LimitRequest.objects.create(**given | fields)


def test_a_stranger_asks_and_decides_nothing(population, managers):
    stranger = make_user()
    refused_late("annotation_limitrequest_of_managers", lambda: wish(population, [stranger]))
    asked = wish(population, managers)
    refused_late(
        "annotation_limitrequest_of_managers",
        lambda: LimitRequest.objects.filter(pk=asked.pk).update(
            state="approved", decided_by=stranger, decided_at=Now()
        ),
    )


def test_two_open_wishes(population, managers):
    third = make_user()
    wish(population, managers)
    refused_late("annotation_limitrequest_one_open", lambda: wish(population, managers))
    manager = {"kind": "manager", "epsilon_limit_nano": None, "delta_limit_atto": None, "appointee": third}
    wish(population, managers, **manager)
    refused_late("annotation_limitrequest_one_person", lambda: wish(population, managers, **manager))


def test_a_request_is_of_a_project_or_of_a_population(population, managers):
    refused_late("annotation_limitrequest_of_managers", lambda: wish(population, managers, project=make_project()))
    refused_late("annotation_limitrequest_of_managers", lambda: wish(make_project().pool_account, managers))


def test_a_project_does_not_leave(population):
    project = make_project()
    add(population, project)
    hold_everything()
    project.pool_account = make_account()
    refused_late("annotation_project_keeps_population", project.save)


def test_a_private_start_does_not_stay_outside(population):
    project = make_project()
    add(population, project)
    hold_everything()
    refused_late(
        "annotation_start_keeps_population",
        lambda: Dataset.objects.create(
            project=project,
            job=Job.objects.create(project=project, kind="import"),
            name="start",
            role=DatasetRole.CHARGED_START,
            state=DatasetState.READY,
            account=make_account(),
        ),
    )


def test_a_project_does_not_join_in_part(population):
    project = make_project()
    start = start_of(project)
    for account in (project.pool_account, start.account):
        refused_late(
            "annotation_population_whole",
            lambda account=account: populations.join_population(
                population=population, accounts=[account], records_per_person=1, actor="t"
            ),
        )
    assert not BudgetAccount.objects.filter(parent__isnull=False).exists()
