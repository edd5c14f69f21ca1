import json
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from annotation.models import Project
from annotation.people.services import limits
from learner.models import ModelRelease, PrintedLimit, ReleaseState
from learner.releases import storage
from learner.releases.artifacts.files import REISSUED, verify_release
from learner.releases.services import card_issues, publishing, versions
from privacy.errors import BudgetExceeded
from privacy.ledger import services as ledger
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
SPENDS_ALL = {"selection": "random", "pool_epsilon": 2.0, "training_epsilon": 2.0}


@pytest.fixture
def manager(project: Project) -> User:
    return project.created_by


@pytest.fixture
def project(remembered: Callable[..., Project], request: pytest.FixtureRequest) -> Project:
    if "release" in request.fixturenames:
        return remembered("a release that spends all", lambda: learning.released_experts(**SPENDS_ALL))
    return remembered("a pool whose release spends all", lambda: learning.filled_experts(**SPENDS_ALL))


def raise_to(project: Project, manager: User, epsilon: float) -> None:
    account = project.pool_account
    limits.change_limit(
        project=project, account=account, epsilon_limit=epsilon, delta_limit=0.0, reason="one more", actor=manager
    )


def text_of(release: ModelRelease, name: str) -> str:
    with storage.open_file(release=release, name=name) as file:
        return file.read().decode()


def limit_printed(release: ModelRelease) -> float:
    verify_release(storage.folder_of(release), public_key=storage.signer().public_key)
    told = json.loads(text_of(release, "privacy.json"))
    return float(told["accounts"][0]["guarantee"]["epsilon"])


def test_nothing_is_spent_above_what_an_offered_card_says(project, manager, release):
    """The attack: release under a limit of 2, raise it to 8, spend 4 while the signed card still says 2."""
    raise_to(project, manager, 8.0)
    second = learning.run_to_release(project, make_user(), version=2)
    spent = second.guarantee[0]["spent_epsilon"]
    assert spent == pytest.approx(4.0)
    offered = ModelRelease.objects.filter(project=project, state=ReleaseState.RELEASED)
    assert offered.count() == 2
    assert [limit_printed(each) for each in offered] == [8.0, 8.0]


def test_a_card_says_of_which_day_its_limit_is_and_what_it_was_before(project, manager, release):
    card = text_of(release, "card.md")
    assert f"account's limit as it stood on {publishing.today()}, when this card was issued" in card
    assert "will ever pay for" not in card
    assert "When the version was released, the limit was" not in card
    raise_to(project, manager, 8.0)
    release.refresh_from_db()
    again = text_of(release, "card.md")
    assert "(8, 0)-differential privacy" in again
    assert "When the version was released, the limit was (2, 0)." in again
    told = json.loads(text_of(release, "privacy.json"))
    assert told["accounts"][0]["guarantee_when_released"] == {"epsilon": 2.0, "delta": 0.0}
    assert told["issued_at"] == publishing.today()


def test_only_the_promise_is_issued_anew(project, manager, release):
    before, folder = dict(release.digests), storage.folder_of(release)
    card = text_of(release, "card.md").splitlines()
    raise_to(project, manager, 8.0)
    release.refresh_from_db()
    assert {name for name in before if before[name] != release.digests[name]} == REISSUED
    assert storage.folder_of(release) != folder
    assert not folder.exists()
    assert set(release.digests) == {path.name for path in storage.folder_of(release).iterdir()}
    changed = [line for line in text_of(release, "card.md").splitlines() if line not in card]
    assert all("8" in line for line in changed)
    raise_to(project, manager, 9.0)
    release.refresh_from_db()
    assert release.folder.endswith("/1-3")
    assert limit_printed(release) == 9.0


def test_the_database_raises_no_limit_past_a_card(project, manager, release):
    account = project.pool_account
    with pytest.raises(IntegrityError, match="the card of an offered release prints a lower limit"):
        ledger.change_account_limits(
            account=account, epsilon_limit=2.000000001, delta_limit=0.0, actor=manager, reason="more"
        )
    with pytest.raises(IntegrityError, match="the card of an offered release prints a lower limit"):
        ledger.change_account_limits(
            account=account, epsilon_limit=2.0, delta_limit=1e-18, actor=manager, reason="more"
        )
    versions.retire_release(release=release, reason="the limit rises")
    ledger.change_account_limits(account=account, epsilon_limit=8.0, delta_limit=0.0, actor=manager, reason="more")


def test_what_is_printed_never_falls_below_the_account(project, release):
    printed = PrintedLimit.objects.filter(release=release)
    limit = printed.get().epsilon_limit_nano
    for change in ({"epsilon_limit_nano": limit - 1}, {"account_id": release.pk + 999}):
        with pytest.raises(IntegrityError, match="never less than it printed before"), transaction.atomic():
            printed.update(**change)
    with pytest.raises(IntegrityError, match="never less than it printed before"), transaction.atomic():
        printed.delete()
    stored = ModelRelease.objects.filter(pk=release.pk)
    other = dict(release.digests) | {"weights.json": "0" * 64}
    softer = [{**release.guarantee[0], "spent_epsilon": 0.0}]
    for change in ({"digests": other}, {"guarantee": softer}, {"weights": {}}, {"digests": {}}):
        with pytest.raises(IntegrityError, match="a release can only be retired"), transaction.atomic():
            stored.update(**change)


def test_a_release_without_the_limits_on_its_card_is_none(project, release, monkeypatch):
    monkeypatch.setattr(PrintedLimit.objects, "bulk_create", list)
    raise_to(project, make_user(), 8.0)
    with pytest.raises(IntegrityError, match="a release comes with the limits its card prints"):
        learning.run_to_release(project, make_user(), version=2)


def test_a_limit_that_rises_while_a_card_is_written_stands_on_it(project, manager, monkeypatch):
    def step(name):
        if name == "training_staged" and project.pool_account.entries.filter(kind="limit_change").count() == 0:
            raise_to(project, manager, 5.0)

    monkeypatch.setattr(publishing, "fault_point", step)
    release = learning.run_to_release(project, make_user(), version=1)
    assert limit_printed(release) == 5.0
    assert "When the version was released, the limit was" not in text_of(release, "card.md")
    assert release.entry.output_digest == publishing.digest_over(release.digests)


def test_a_refused_limit_leaves_the_cards_as_they_are(project, manager, release):
    with pytest.raises(BudgetExceeded):
        raise_to(project, manager, 1.0)
    with pytest.raises(ValueError, match="delta limit"):
        limits.change_limit(
            project=project, account=project.pool_account, epsilon_limit=9.0, delta_limit=1.0, reason="?", actor=manager
        )
    release.refresh_from_db()
    assert limit_printed(release) == 2.0
    assert release.folder.endswith("/1")


def test_a_worker_killed_between_folders_leaves_the_old_card(project, manager, release, monkeypatch):
    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(card_issues.PrintedLimit, "save", die)
        with pytest.raises(KeyboardInterrupt):
            raise_to(project, manager, 8.0)
    release.refresh_from_db()
    assert limit_printed(release) == 2.0
    raise_to(project, manager, 8.0)
    release.refresh_from_db()
    assert limit_printed(release) == 8.0
