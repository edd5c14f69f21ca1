import pytest
from django.db import IntegrityError, transaction

from addons.prolific.errors import StudyRefused
from addons.prolific.models import BonusLine, BonusSheet, CrowdStudy, CrowdSubmission, CrowdVerdict, PlatformAccount
from addons.prolific.selectors import money_of, studies_of
from addons.prolific.services import accounts
from annotation.errors import InvalidConfiguration
from annotation.models import Role
from annotation.projects.services import lifecycle
from tests.factories import add_members, make_project, write_settings
from tests.studies import connect, open_study, publish

pytestmark = pytest.mark.django_db


def test_what_exceeds_the_money_is_refused_by_field_and_rule(server, crowd, manager):
    connect(crowd, manager)
    # 33 places of 2.00 with half as a fee are 99.00.
    open_study(crowd, manager, places=33)
    with pytest.raises(StudyRefused, match=r"exceeds the 1\.00 left") as refused:
        open_study(crowd, manager, places=1)
    assert refused.value.field == "places"
    assert money_of(crowd).left == 1
    write_settings(crowd, money_limit=None)
    open_study(crowd, manager, places=1)
    assert money_of(crowd).left is None


def test_pay_an_hour_and_sums(server, study):
    (sheet,) = studies_of(study.project)
    assert (sheet.per_place, sheet.per_hour, sheet.promised, sheet.so_far) == (2, 20, 12, 0)


def test_another_currency_is_refused(server, crowd, manager):
    connect(crowd, manager)
    PlatformAccount.objects.update(currency="USD")
    with pytest.raises(StudyRefused, match="pays in USD") as refused:
        open_study(crowd, manager)
    assert refused.value.field == "reward"


def test_not_without_an_account_a_platform_or_a_crowd(server, crowd, manager, settings):
    with pytest.raises(StudyRefused, match="Connect"):
        open_study(crowd, manager)
    trusted = make_project(owner=manager)
    add_members(trusted, manager, role=Role.MANAGER)
    with pytest.raises(StudyRefused, match="private records"):
        connect(trusted, manager)
    settings.PROLIFIC_URL = ""
    with pytest.raises(StudyRefused, match="An administrator must allow"):
        connect(crowd, manager)


def test_a_token_is_forgotten(server, study, crowd):
    accounts.disconnect_account(project=crowd)
    assert not PlatformAccount.objects.exists()
    assert CrowdStudy.objects.exists()


def test_a_project_is_not_deleted_while_people_are_in_its_study(server, published, crowd):
    with pytest.raises(InvalidConfiguration, match="Stop it"):
        lifecycle.request_deletion(project=crowd, typed=crowd.slug, keep_releases=False, actor="x", send=False)
    CrowdStudy.objects.update(state="COMPLETED")
    lifecycle.request_deletion(project=crowd, typed=crowd.slug, keep_releases=False, actor="x", send=False)
    assert not PlatformAccount.objects.exists()
    lifecycle.erase_content(project=crowd)
    assert not CrowdStudy.objects.exists()


@pytest.fixture
def submission(study):
    return CrowdSubmission.objects.create(study=study, external_id="a", pid_digest=b"p" * 16, state="AWAITING REVIEW")


def breaks(name, act):
    with pytest.raises(IntegrityError) as broken, transaction.atomic():
        act()
    assert broken.value.__cause__.diag.constraint_name == name


def test_the_database_keeps_amounts_and_what_was_promised(study, crowd, manager):
    mine = CrowdStudy.objects.filter(pk=study.pk)
    for change in ({"places": 5}, {"reward_cents": 1}, {"fee_percent": 1}):
        breaks("prolific_crowdstudy_stays", lambda change=change: mine.update(**change))
    mine.update(external_id="theirs", salt=None)
    breaks("prolific_crowdstudy_stays", lambda: mine.update(external_id="other"))
    breaks("prolific_crowdstudy_keeps_no_secret", lambda: mine.update(salt=b"s" * 32))
    values = {"project": crowd, "name": "n", "created_by": manager, "fee_percent": 0, "minutes": 1}
    other = open_study(crowd, manager).link
    link = study.link
    CrowdStudy.objects.filter(link=other).delete()
    breaks(
        "prolific_crowdstudy_amounts", lambda: CrowdStudy.objects.create(**values, link=other, places=0, reward_cents=1)
    )
    breaks(
        "prolific_crowdstudy_opened_once",
        lambda: CrowdStudy.objects.create(**values, link=other, places=1, reward_cents=1, external_id="theirs"),
    )
    trusted = make_project(owner=manager)
    breaks(
        "prolific_crowdstudy_of_a_crowd",
        lambda: CrowdStudy.objects.create(**(values | {"project": trusted}), link=other, places=1, reward_cents=1),
    )
    assert link.pk != other.pk
    account = PlatformAccount.objects.filter(project=crowd)
    breaks("prolific_platformaccount_fee", lambda: account.update(fee_percent=101))
    breaks("prolific_platformaccount_token", lambda: account.update(sealed_token=""))


def test_the_database_lets_nobody_be_decided_on_or_paid_twice(study, submission, manager):
    again = {"study": study, "external_id": "a", "pid_digest": b"q" * 16, "state": "ACTIVE"}
    breaks("prolific_crowdsubmission_once", lambda: CrowdSubmission.objects.create(**again))
    verdict = CrowdVerdict.objects.create(submission=submission, kind="APPROVE", decided_by=manager)
    for kind, message in (("APPROVE", ""), ("REJECT", "because")):
        breaks(
            "prolific_verdict_final_once",
            lambda kind=kind, message=message: CrowdVerdict.objects.create(
                submission=submission, kind=kind, reason=message, decided_by=manager
            ),
        )
    CrowdVerdict.objects.create(submission=submission, kind="RETURN", reason="please", decided_by=manager)
    breaks(
        "prolific_verdict_return_once",
        lambda: CrowdVerdict.objects.create(submission=submission, kind="RETURN", reason="please", decided_by=manager),
    )
    mine = CrowdVerdict.objects.filter(pk=verdict.pk)
    breaks("prolific_verdict_says_why", lambda: mine.update(reason="kept"))
    mine.update(state="done")
    breaks("prolific_verdict_settled_once", lambda: mine.update(state="wanted"))
    sheet = BonusSheet.objects.create(study=study, created_by=manager)
    breaks("prolific_bonussheet_one_at_a_time", lambda: BonusSheet.objects.create(study=study, created_by=manager))
    line = {"sheet": sheet, "submission": submission}
    breaks("prolific_bonusline_amount", lambda: BonusLine.objects.create(**line, amount_cents=0))
    BonusLine.objects.create(**line, amount_cents=1)
    breaks("prolific_bonusline_once", lambda: BonusLine.objects.create(**line, amount_cents=1))
    mine = BonusSheet.objects.filter(pk=sheet.pk)
    breaks("prolific_bonussheet_set_up_first", lambda: mine.update(state="paying"))
    mine.update(state="paying", external_id="s", paying_at=study.created_at)
    mine.update(state="paid")
    for state in ("wanted", "paying", "unclear", "refused"):
        breaks("prolific_bonussheet_never_twice", lambda state=state: mine.update(state=state))


def test_a_published_study_offers_no_discarding(server, study):
    publish(study)
    (sheet,) = studies_of(study.project)
    assert sheet.steps == ("PAUSE", "STOP")
