"""Bonuses: an amount a participant, set up, then paid once."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from addons.prolific.costs import money
from addons.prolific.errors import StudyRefused
from addons.prolific.interface import PlatformFault, Prolific
from addons.prolific.models import BonusLine, BonusSheet, BonusState, CrowdStudy, CrowdSubmission, PlatformAccount
from addons.prolific.services.studies import follow_soon, refuse_other_currency, within_money
from annotation.models import Project
from annotation.models.joining import CrowdParticipant
from privacy.wording import as_message, in_english

MOST_LINES: Final = 1000
# Payments come "in the following minutes", says the platform's document.
COME_WITHIN: Final = timedelta(hours=1)


def give_bonuses(*, study: CrowdStudy, key: UUID, cents_by_name: Mapping[str, int], actor: User) -> BonusSheet:
    """Write down bonuses by the names that participants have here; a key that was used gives its sheet back."""
    if not 1 <= len(cents_by_name) <= MOST_LINES or min(cents_by_name.values()) < 1:
        raise StudyRefused(as_message("Give 1 to {most:,} participants a bonus.", most=MOST_LINES), field="amounts")
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=study.project_id)
        known = BonusSheet.objects.filter(pk=key).first()
        if known is not None:
            if known.study_id != study.pk:
                raise StudyRefused(in_english("This list belongs to another study."))
            return known
        account = PlatformAccount.objects.filter(project=project).first()
        if account is None:
            raise StudyRefused("Connect the project to Prolific first.")
        submissions = _submissions(study, cents_by_name)
        refuse_other_currency(project, account)
        try:
            with transaction.atomic():
                sheet = BonusSheet.objects.create(id=key, study=study, created_by=actor)
        except IntegrityError as error:
            raise StudyRefused("Parts of the study are not settled yet.") from error
        with within_money(project, field="amounts"):
            BonusLine.objects.bulk_create(
                BonusLine(sheet=sheet, submission=submissions[name], amount_cents=cents)
                for name, cents in cents_by_name.items()
            )
        follow_soon(study)
    return sheet


def _submissions(study: CrowdStudy, names: Mapping[str, int]) -> dict[str, CrowdSubmission]:
    came = CrowdParticipant.objects.filter(link=study.link_id, user__username__in=names).select_related("user")
    name_of = {bytes(each.pid_digest): each.user.username for each in came}
    found: dict[str, CrowdSubmission] = {}
    for submission in study.submissions.order_by("pk"):
        name = name_of.get(bytes(submission.pid_digest))
        if name is not None and (name not in found or found[name].state != "APPROVED"):
            found[name] = submission
    missing = sorted(set(names) - set(found))
    if missing:
        message = as_message("No participant is called {name}.", name=missing[0])
        raise StudyRefused(message, field="amounts")
    return found


def settle_unclear(*, study: CrowdStudy, came: bool) -> None:
    state = BonusState.PAID if came else BonusState.REFUSED
    # There is one at most.
    if not BonusSheet.objects.filter(study=study, state=BonusState.UNCLEAR).update(state=state, fault=""):
        raise StudyRefused(in_english("No bonuses of this study are unclear."))


def carry_out_bonuses(*, study: CrowdStudy, interface: Prolific) -> None:
    sheet = study.bonus_sheets.filter(state__in=("wanted", "paying", "unclear")).first()
    if sheet is None:
        return
    if sheet.state != BonusState.WANTED:
        _look(sheet)
        return
    lines = list(sheet.lines.select_related("submission").order_by("pk"))
    try:
        number = interface.set_up_bonuses(
            study.external_id, [(line.submission.external_id, f"{money(line.amount_cents):.2f}") for line in lines]
        )
    except PlatformFault as fault:
        if fault.again or fault.is_token:
            raise
        _move(sheet, BonusState.REFUSED, fault=fault.message)
        return
    for line in lines:
        line.before_cents = line.submission.bonus_cents
    with transaction.atomic():
        BonusLine.objects.bulk_update(lines, ["before_cents"])
        if not _move(sheet, BonusState.PAYING, external_id=number, paying_at=Now()):
            return
    _pay(sheet, number, interface)


def _pay(sheet: BonusSheet, number: str, interface: Prolific) -> None:
    """Ask once for the payment; only an answer that says that nothing was taken lets it be asked for again."""
    try:
        interface.pay_bonuses(number)
    except PlatformFault as fault:
        if fault.unclear:
            return
        sheet.state = BonusState.PAYING
        if fault.again or fault.is_token:
            _move(sheet, BonusState.WANTED, external_id="", paying_at=None)
            raise
        _move(sheet, BonusState.REFUSED, fault=fault.message)
        return
    sheet.state = BonusState.PAYING
    _move(sheet, BonusState.PAID)


def _look(sheet: BonusSheet) -> None:
    """Find out by what submissions show whether a sheet was paid; one that does not show in time is unclear."""
    lines = sheet.lines.select_related("submission")
    came = all(line.submission.bonus_cents >= (line.before_cents or 0) + line.amount_cents for line in lines)
    if came:
        _move(sheet, BonusState.PAID)
    elif sheet.state == BonusState.PAYING and sheet.paying_at and sheet.paying_at < timezone.now() - COME_WITHIN:
        fault = as_message("Some bonuses are unclear. Check on Prolific before paying again.")
        _move(sheet, BonusState.UNCLEAR, fault=fault)


def _move(sheet: BonusSheet, state: BonusState, *, fault: str = "", **more: object) -> bool:
    moved = BonusSheet.objects.filter(pk=sheet.pk, state=sheet.state).update(state=state, fault=fault, **more)
    return bool(moved)
