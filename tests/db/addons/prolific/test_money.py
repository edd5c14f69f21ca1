import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from addons.prolific.errors import StudyRefused
from addons.prolific.models import BonusLine, BonusSheet, CrowdStudy, CrowdSubmission
from addons.prolific.selectors import money_of, sheet_of_study
from addons.prolific.services import bonuses
from privacy.ledger.entries import broken_rule
from tests.factories import write_settings
from tests.studies import come, connect, open_study, turn
from tests.threads import wait_until_blocked

pytestmark = pytest.mark.django_db
# 100.00 less 4 places of 2.00 with half as a fee leaves 88.00: 29 places more, and 58.66 in bonuses.
RULE = "prolific_studies_within_money"
ANOTHER = """
INSERT INTO prolific_crowdstudy SELECT (jsonb_populate_record(study, jsonb_build_object(
    'id', %s::bigint, 'key', gen_random_uuid(), 'link_id', %s::bigint, 'places', %s::int, 'external_id', '', 'state', ''
))).* FROM prolific_crowdstudy study WHERE id = %s
"""


def another(study, places, number=1):
    link = study.project.crowd_links.create(
        digest=f"digest {number}",
        platform="prolific",
        answers_wanted=1,
        completion_code="CODE",
        maximum_participants=1,
        expires_at=timezone.now() + timedelta(days=1),
        created_by=study.created_by,
    )
    write(ANOTHER, study.pk + 1000 * number, link.pk, places, study.pk)


def write(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def breaks(name, do):
    with pytest.raises(IntegrityError) as broken, transaction.atomic():
        do()
    assert broken_rule(broken.value) == name


def promised():
    with connection.cursor() as cursor:
        cursor.execute("SELECT prolific_promised_cents(%s)", [CrowdStudy.objects.first().project_id])
        return cursor.fetchone()[0]


@pytest.fixture
def sheet(study, manager):
    return BonusSheet.objects.create(study=study, created_by=manager)


@pytest.fixture
def submission(study):
    return CrowdSubmission.objects.create(study=study, external_id="a", pid_digest=b"p" * 16, state="APPROVED")


def give(sheet, submission, cents):
    write(
        "INSERT INTO prolific_bonusline (sheet_id, submission_id, amount_cents) VALUES (%s, %s, %s)",
        *(sheet.pk, submission.pk, cents),
    )


def test_no_place_is_promised_beyond_the_limit(study):
    breaks(RULE, lambda: another(study, 30))
    another(study, 29)
    assert promised() == money_of(study.project).promised * 100 == 9900


def test_no_bonus_is_promised_beyond_the_limit_nor_raised_later(study, sheet, submission):
    breaks(RULE, lambda: give(sheet, submission, 5867))
    give(sheet, submission, 5866)
    assert promised() == money_of(study.project).promised * 100 == 9999
    breaks("prolific_bonusline_stays", lambda: write("UPDATE prolific_bonusline SET amount_cents = amount_cents + 1"))
    breaks("prolific_bonusline_stays", lambda: write("UPDATE prolific_bonusline SET amount_cents = 1"))
    BonusLine.objects.update(before_cents=1)


def test_what_is_over_or_refused_is_free_again(study, sheet, submission):
    give(sheet, submission, 5866)
    BonusSheet.objects.update(state="refused")
    another(study, 29)
    breaks(RULE, lambda: another(study, 1, number=2))
    CrowdStudy.objects.filter(pk=study.pk).update(state="DISCARDED")
    another(study, 4, number=2)
    CrowdStudy.objects.filter(pk=study.pk).update(approved=1, forgotten_bonus_cents=3)
    assert promised() == money_of(study.project).promised * 100 == 9900 + 305


def test_without_a_limit_nothing_is_refused(study):
    write_settings(study.project, money_limit=None)
    another(study, 9000)


def test_a_lower_fee_now_counts_as_the_study_promised_it(server, published, manager):
    name = come(server, published, "ann").user.username
    turn(published)
    connect(published.project, manager, fee="0")
    with pytest.raises(StudyRefused, match=r"exceeds the 88\.00"):
        bonuses.give_bonuses(study=published, key=published.key, cents_by_name={name: 8000}, actor=manager)


@pytest.mark.django_db(transaction=True)
def test_two_sessions_at_once_do_not_both_take_what_is_left(study):
    failures = []

    def second():
        try:
            another(study, 20, number=2)
        except IntegrityError as error:
            failures.append(broken_rule(error))
        finally:
            connection.close()

    other = threading.Thread(target=second)
    with transaction.atomic():
        another(study, 20)
        other.start()
        wait_until_blocked()
    other.join(timeout=120)
    assert (failures, other.is_alive()) == ([RULE], False)
    with pytest.raises(StudyRefused):
        open_study(study.project, study.created_by, places=10)


@pytest.fixture
def ann(server, published):
    participant = come(server, published, "ann")
    turn(published)
    return participant.user.username


def give_money(study, actor, **cents):
    return bonuses.give_bonuses(study=study, key=uuid4(), cents_by_name=cents, actor=actor)


def state_of(sheet) -> str:
    return BonusSheet.objects.get(pk=sheet.pk).state


@pytest.mark.slow
def test_a_bonus_is_set_up_and_paid(server, published, manager, ann):
    sheet = give_money(published, manager, **{ann: 150})
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
    sheet = give_money(published, manager, **{ann: 150})
    server.faults.append(("POST", ".*/pay/", "lost"))
    turn(published)
    assert state_of(sheet) == "paying"
    turn(published)
    assert state_of(sheet) == "paid"
    assert len(server.paid) == 1


@pytest.mark.parametrize("fault", ["dead", 500])
def test_a_payment_that_does_not_show_is_a_managers_to_settle(server, published, manager, ann, fault):
    """Whether a request arrived cannot be told from here: nothing is asked for again, however long it takes."""
    sheet = give_money(published, manager, **{ann: 150})
    server.faults.append(("POST", ".*/pay/", fault))
    for _ in range(3):
        turn(published)
    assert (state_of(sheet), server.paid) == ("paying", [])
    BonusSheet.objects.update(paying_at=timezone.now() - timedelta(hours=2))
    turn(published)
    assert (state_of(sheet), server.paid) == ("unclear", [])
    with pytest.raises(StudyRefused, match="not settled"):
        give_money(published, manager, **{ann: 150})
    sheet.refresh_from_db()
    bonuses.settle_unclear(study=sheet.study, came=False)
    with pytest.raises(StudyRefused, match="No bonuses"):
        bonuses.settle_unclear(study=sheet.study, came=True)
    assert sheet_of_study(published).cost.so_far == 0
    give_money(published, manager, **{ann: 150})
    turn(published)
    assert len(server.paid) == 1


def test_a_payment_that_comes_late_is_seen_after_all(server, published, manager, ann):
    sheet = give_money(published, manager, **{ann: 150})
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
    sheet = give_money(published, manager, **{ann: 150})

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
    sheet = give_money(published, manager, **{ann: 150})
    server.faults.append(("POST", ".*/pay/", 429))
    turn(published)
    assert (state_of(sheet), server.paid) == ("wanted", [])
    turn(published)
    assert state_of(sheet) == "paid"
    assert len(server.paid) == 1


def test_without_balance_it_is_refused_in_words(server, published, manager, ann):
    server.wallet = 100
    sheet = give_money(published, manager, **{ann: 150})
    turn(published)
    sheet.refresh_from_db()
    assert (sheet.state, sheet.fault) == ("refused", "Prolific refuses it: Not enough balance in the workspace.")


def test_only_who_came_gets_one_and_only_within_the_money(server, published, manager, ann):
    with pytest.raises(StudyRefused, match="No participant is called") as refused:
        give_money(published, manager, somebody=100)
    assert refused.value.field == "amounts"
    # 100.00 less 4 places of 2.00 with half as a fee leaves 88.00: 58.66 with its fee is all of it.
    with pytest.raises(StudyRefused, match=r"exceeds the 88\.00"):
        give_money(published, manager, **{ann: 5867})
    give_money(published, manager, **{ann: 5866})
    with pytest.raises(StudyRefused, match="participants a bonus"):
        give_money(published, manager)


def test_a_key_of_another_study_gives_nothing(server, published, crowd, manager, ann):
    key = uuid4()
    bonuses.give_bonuses(study=published, key=key, cents_by_name={ann: 150}, actor=manager)
    connect(crowd, manager)
    other = open_study(crowd, manager)
    with pytest.raises(StudyRefused, match="another study"):
        bonuses.give_bonuses(study=other, key=key, cents_by_name={ann: 150}, actor=manager)
