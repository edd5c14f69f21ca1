"""What there is to tell people by mail: written down once, told by the next letter."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from annotation.choices.rules import hides_selection
from annotation.models import Membership, Project
from annotation.models.letters import MailChoice, MailKind, Notice
from annotation.people.services import mail_choices

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
    """Write down something to tell, for those who can be reached and want to know; return for how many it is new."""
    if not may_leave(project, kind):
        return 0
    reached = mail_choices.confirmed_addresses(people)
    notified = Notice.objects.filter(project=project, kind=kind, subject=subject).values("person")
    silent = MailChoice.objects.filter(wanted=False).values("person")
    new = [
        Notice(
            person=person, project=project, kind=kind, subject=subject, facts=dict(facts or {}), due_at=timezone.now()
        )
        for person in User.objects.filter(pk__in=reached).exclude(pk__in=notified).exclude(pk__in=silent)
    ]
    return len(Notice.objects.bulk_create(new, ignore_conflicts=True))
