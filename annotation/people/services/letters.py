"""Letters: one for each notice, sent once by a worker, tried again with growing pauses, then given up."""

# A mail server that took a letter whose worker died before it wrote so gets it again, under the same Message-ID.

import logging
import secrets
import smtplib
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMultiAlternatives
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone, translation

from annotation import access
from annotation.choices.rules import hides_selection
from annotation.models import Membership, Project
from annotation.models.joining import Invitation
from annotation.models.letters import Letter, LetterState, MailChoice, MailKind, Notice
from annotation.people.letter_words import WrittenLetter, invitation_letter, letter_about
from annotation.people.services import invitations
from annotation.work.services import idempotency
from annotation.work.services.sending import send_on_commit
from annotation.work.services.tokens import link_secret


def choice_of(person: User) -> MailChoice:
    found = MailChoice.objects.filter(person=person).first()
    return found or MailChoice(person=person, language=settings.LANGUAGE_CODE)


def choose_mails(*, person: User, language: str, wanted: bool) -> MailChoice:
    with transaction.atomic():
        choice, _new = MailChoice.objects.update_or_create(
            person=person, defaults={"language": language, "wanted": wanted}
        )
        if not wanted:
            Notice.objects.filter(person=person, due_at__isnull=False).update(due_at=None)
    return choice


def keep_language(*, person: User, language: str) -> None:
    MailChoice.objects.update_or_create(person=person, defaults={"language": language})


def confirmed_addresses(people: QuerySet[User]) -> dict[int, str]:
    found = EmailAddress.objects.filter(user__in=people, verified=True).order_by("user", "-primary", "pk")
    return dict(reversed(list(found.values_list("user_id", "email"))))


def mail_address(person: User) -> str:
    return confirmed_addresses(User.objects.filter(pk=person.pk)).get(person.pk, "")


logger = logging.getLogger(__name__)
FIRST_PAUSE = timedelta(minutes=1)
MAX_ATTEMPTS = 8
# Longer than an attempt can take: whose worker died is tried again after it.
# Longer than a mail server can keep us waiting: ten seconds for each of its answers.
LEASE = timedelta(minutes=5)
KEPT = timedelta(days=30)
# Answers of a mail server from this number on are its last word.
PERMANENT = 500
AT_ONCE = 200
# Invitations one manager may send by mail in a while: strangers must not be written to in bulk.
MAILS, WINDOW_SECONDS = 50, 600
INVITATION = b"invitation"
SEND_TASK = "annotation.tasks.send_letter_task"
# Backends whose letters reach nobody.
STAY_HERE = ("filebased", "console", "dummy")


def leaves_the_site() -> bool:
    """Say whether mail is handed to a mail server; else it lies in files, or on the console."""
    return settings.EMAIL_BACKEND.split(".")[-2] not in STAY_HERE


def invite_by_mail(*, address: str, language: str, **invitation: Any) -> tuple[Invitation, str]:
    salt = secrets.token_bytes(32)
    with transaction.atomic():
        made, secret = invitations.create_invitation(secret=link_secret(INVITATION, salt), **invitation)
        letter = Letter.objects.create(invitation=made, address=address, salt=salt, language=language)
        send_on_commit(SEND_TASK, letter_id=str(letter.pk))
    return made, secret


def invite(*, owner: User, address: str = "", language: str = "", **invitation: Any) -> tuple[Invitation, str]:
    if not address:
        return invitations.create_invitation(owner=owner, **invitation)
    idempotency.count_try(what="invite", who=str(owner.pk), limit=MAILS, seconds=WINDOW_SECONDS)
    return invite_by_mail(address=address, language=language, owner=owner, **invitation)


def gather_letters() -> int:
    """Write a letter for each due notice, hand letters whose time has come to workers, delete old ones."""
    due = Notice.objects.filter(due_at__lte=Now()).order_by("due_at", "pk")
    gathered = sum(_write_letter(pk) for pk in due.values_list("pk", flat=True)[:AT_ONCE])
    waiting = Letter.objects.filter(state=LetterState.WAITING, next_at__lte=Now())
    for letter in waiting.order_by("next_at")[:AT_ONCE]:
        send_on_commit(SEND_TASK, letter_id=str(letter.pk))
    Letter.objects.filter(created_at__lt=timezone.now() - KEPT).exclude(state=LetterState.WAITING).delete()
    return gathered


def _write_letter(notice_id: int) -> bool:
    with transaction.atomic():
        locked = Notice.objects.select_for_update(skip_locked=True, of=("self",)).select_related("person")
        notice = locked.filter(pk=notice_id, due_at__isnull=False).first()
        if notice is None:
            return False
        language = choice_of(notice.person).language
        notice.letter = Letter.objects.create(person=notice.person, language=language)
        notice.due_at = None
        notice.save(update_fields=["letter", "due_at"])
    return True


def send_letter(*, letter_id: str) -> None:
    with transaction.atomic():
        waiting = Letter.objects.select_for_update(skip_locked=True, of=("self",))
        letter = waiting.filter(pk=letter_id, state=LetterState.WAITING, next_at__lte=Now()).first()
        if letter is None:
            return
        letter.attempts += 1
        letter.next_at = Now() + LEASE  # the one clock of all workers
        letter.save(update_fields=["attempts", "next_at"])
    with translation.override(letter.language):
        address, written = _written(letter)
    own = Letter.objects.filter(pk=letter.pk, attempts=letter.attempts, state=LetterState.WAITING)
    if written is None:
        _settle(own, LetterState.DROPPED)
        return
    try:
        _message(letter, address, written).send()
    except OSError as error:  # every fault of SMTP and of the network
        # The fault's words may hold the address.
        logger.warning("letter %s was not taken: %s", letter.pk, type(error).__name__)
        if letter.attempts >= MAX_ATTEMPTS or _is_final(error):
            _settle(own, LetterState.GIVEN_UP)
        else:
            own.update(next_at=Now() + FIRST_PAUSE * 2 ** (letter.attempts - 1))
        return
    _settle(own, LetterState.SENT, sent_at=Now())


def _is_final(error: OSError) -> bool:
    answers = error.recipients.values() if isinstance(error, smtplib.SMTPRecipientsRefused) else ()
    return bool(answers) and all(status >= PERMANENT for status, _words in answers)


def _settle(own: Any, state: LetterState, **more: Any) -> None:
    own.update(state=state, address="", salt=None, **more)


def _written(letter: Letter) -> tuple[str, WrittenLetter | None]:
    if letter.invitation_id is not None:
        live = invitations.live_invitations().select_related("project", "created_by")
        invitation = live.filter(pk=letter.invitation_id).first()
        if invitation is None or letter.salt is None:
            return "", None
        secret = link_secret(INVITATION, bytes(letter.salt), digest=invitation.digest)
        return letter.address, invitation_letter(invitation, secret)
    person = User.objects.filter(pk=letter.person_id or 0, is_active=True).first()
    address = mail_address(person) if person is not None else ""
    notice = _still_told(letter)
    return address, letter_about(notice) if address and notice is not None else None


def _still_told(letter: Letter) -> Notice | None:
    own = Membership.objects.filter(user=letter.person_id).values("project")
    found = Notice.objects.filter(letter=letter, project__in=own).exclude(project__state__in=access.CLOSED)
    return found.select_related("project").first()


def _message(letter: Letter, address: str, written: WrittenLetter) -> EmailMultiAlternatives:
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    headers = {"Message-ID": f"<{letter.pk.hex}@{domain}>", "Auto-Submitted": "auto-generated"}
    if written.choose:
        headers["List-Unsubscribe"] = f"<{written.choose}>"
    message = EmailMultiAlternatives(written.subject, written.as_text(), to=[address], headers=headers)
    message.attach_alternative(written.as_html(), "text/html")
    return message


# What leaves a site whose project hides its questions.
TOLD_IN_HIDING = frozenset({MailKind.RELEASE, MailKind.BUDGET})


def may_leave(project: Project, kind: MailKind) -> bool:
    """Say whether a letter of a kind may leave the site at all.

    A letter passes through servers outside. Where ids, numbers and times of questions are secret, its time would tell
    them; so only what engineers read by REST goes out.
    """
    return kind in TOLD_IN_HIDING or not hides_selection(project.settings)


def members_in_roles(project: Project, roles: Collection[str], *, since: datetime | None = None) -> QuerySet[User]:
    """Return who has one of some roles, since a moment at the latest; whoever is paused is told nothing."""
    places = Membership.objects.filter(project=project, role__in=roles, paused_at=None)
    if since is not None:
        places = places.filter(created_at__lte=since)
    return User.objects.filter(is_active=True, pk__in=places.values("user"))


def write_notice(
    *, project: Project, people: QuerySet[User], kind: MailKind, subject: str, facts: Mapping[str, Any] | None = None
) -> int:
    if not may_leave(project, kind):
        return 0
    reached = confirmed_addresses(people)
    notified = Notice.objects.filter(project=project, kind=kind, subject=subject).values("person")
    silent = MailChoice.objects.filter(wanted=False).values("person")
    new = [
        Notice(
            person=person, project=project, kind=kind, subject=subject, facts=dict(facts or {}), due_at=timezone.now()
        )
        for person in User.objects.filter(pk__in=reached).exclude(pk__in=notified).exclude(pk__in=silent)
    ]
    return len(Notice.objects.bulk_create(new, ignore_conflicts=True))
