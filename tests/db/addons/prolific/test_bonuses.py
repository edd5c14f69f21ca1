from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from addons.prolific.errors import StudyRefused
from addons.prolific.models import BonusSheet
from addons.prolific.selectors import sheet_of_study
from addons.prolific.services import bonuses
from tests.studies import come, connect, open_study, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(server, published):
    participant = come(server, published, "ann")
    turn(published)
    return participant.user.username


def give(study, actor, **cents):
    return bonuses.give_bonuses(study=study, key=uuid4(), cents_by_name=cents, actor=actor)


def state_of(sheet) -> str:
    return BonusSheet.objects.get(pk=sheet.pk).state


@pytest.mark.slow
def test_a_bonus_is_set_up_and_paid(server, published, manager, ann):
    sheet = give(published, manager, **{ann: 150})
    turn(published)
    assert state_of(sheet) == "paid"
    (sent,) = server.requests("POST", "/api/v1/submissions/bonus-payments/")
    submission = published.submissions.get().external_id
    assert sent == {"study_id": published.external_id, "csv_bonuses": f"{submission},1.50"}
    assert server.wallet == 100_000 - 150
    turn(published)
    assert len(server.paid) == 1
    assert sheet_of_study(published).cost.so_far == 225


def test_a_form_sent_twice_gives_once(server, published, manager, ann):
    key = uuid4()
    for _ in range(2):
        bonuses.give_bonuses(study=published, key=key, cents_by_name={ann: 150}, actor=manager)
    turn(published)
    assert BonusSheet.objects.count() == 1
    assert len(server.paid) == 1


def test_a_payment_whose_answer_was_lost_is_seen_and_never_repeated(server, published, manager, ann):
    sheet = give(published, manager, **{ann: 150})
    server.faults.append(("POST", ".*/pay/", "lost"))
    turn(published)
    assert state_of(sheet) == "paying"
    turn(published)
    assert state_of(sheet) == "paid"
    assert len(server.paid) == 1


@pytest.mark.parametrize("fault", ["dead", 500])
def test_a_payment_that_does_not_show_is_a_managers_to_settle(server, published, manager, ann, fault):
    """Whether a request arrived cannot be told from here: nothing is asked for again, however long it takes."""
    sheet = give(published, manager, **{ann: 150})
    server.faults.append(("POST", ".*/pay/", fault))
    for _ in range(3):
        turn(published)
    assert (state_of(sheet), server.paid) == ("paying", [])
    BonusSheet.objects.update(paying_at=timezone.now() - timedelta(hours=2))
    turn(published)
    assert (state_of(sheet), server.paid) == ("unclear", [])
    with pytest.raises(StudyRefused, match="not settled"):
        give(published, manager, **{ann: 150})
    sheet.refresh_from_db()
    bonuses.settle_unclear(study=sheet.study, came=False)
    with pytest.raises(StudyRefused, match="No bonuses"):
        bonuses.settle_unclear(study=sheet.study, came=True)
    assert sheet_of_study(published).cost.so_far == 0
    give(published, manager, **{ann: 150})
    turn(published)
    assert len(server.paid) == 1


def test_a_payment_that_comes_late_is_seen_after_all(server, published, manager, ann):
    sheet = give(published, manager, **{ann: 150})
    server.faults.append(("POST", ".*/pay/", "lost"))
    server.shows_bonuses = False
    turn(published)
    BonusSheet.objects.update(paying_at=timezone.now() - timedelta(hours=2))
    turn(published)
    assert state_of(sheet) == "unclear"
    next(iter(server.submissions.values()))["bonus_payments"].append(150)
    turn(published)
    assert state_of(sheet) == "paid"


def test_a_worker_that_dies_before_it_asks_pays_nothing_twice(server, published, manager, ann, monkeypatch):
    """Between "being paid" and the request: the next worker looks, and does not pay."""
    sheet = give(published, manager, **{ann: 150})

    def die(*_args):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(bonuses, "_pay", die)
        with pytest.raises(SystemExit):
            turn(published)
    assert state_of(sheet) == "paying"
    turn(published)
    assert (state_of(sheet), server.paid) == ("paying", [])


def test_a_platform_that_asks_to_wait_took_nothing(server, published, manager, ann):
    sheet = give(published, manager, **{ann: 150})
    server.faults.append(("POST", ".*/pay/", 429))
    turn(published)
    assert (state_of(sheet), server.paid) == ("wanted", [])
    turn(published)
    assert state_of(sheet) == "paid"
    assert len(server.paid) == 1


def test_without_balance_it_is_refused_in_words(server, published, manager, ann):
    server.wallet = 100
    sheet = give(published, manager, **{ann: 150})
    turn(published)
    sheet.refresh_from_db()
    assert (sheet.state, sheet.fault) == ("refused", "Prolific refuses it: Not enough balance in the workspace.")


def test_only_who_came_gets_one_and_only_within_the_money(server, published, manager, ann):
    with pytest.raises(StudyRefused, match="No participant is called") as refused:
        give(published, manager, somebody=100)
    assert refused.value.field == "amounts"
    # 100.00 less 4 places of 2.00 with half as a fee leaves 88.00: 58.66 with its fee is all of it.
    with pytest.raises(StudyRefused, match=r"exceeds the 88\.00"):
        give(published, manager, **{ann: 5867})
    give(published, manager, **{ann: 5866})
    with pytest.raises(StudyRefused, match="participants a bonus"):
        give(published, manager)


def test_a_key_of_another_study_gives_nothing(server, published, crowd, manager, ann):
    key = uuid4()
    bonuses.give_bonuses(study=published, key=key, cents_by_name={ann: 150}, actor=manager)
    connect(crowd, manager)
    other = open_study(crowd, manager)
    with pytest.raises(StudyRefused, match="another study"):
        bonuses.give_bonuses(study=other, key=key, cents_by_name={ann: 150}, actor=manager)
