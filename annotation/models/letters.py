"""Mails to people: their choice, notices, and the letters that tell them."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models.joining import Invitation
from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project


class MailKind(models.TextChoices):
    RETURNED = "returned", "A manager asks me to look at an answer of mine again"
    REMARK = "remark", "Somebody writes to me about a question"
    QUESTIONS = "questions", "New questions wait for me"
    REVIEW = "review", "Answers wait for my review"
    WAITING = "waiting", "A project waits for a decision of mine"
    RELEASE = "release", "A model is released"
    BUDGET = "budget", "Four fifths of a budget are spent"
    EXPORT = "export", "A file I asked for is there"


class MailChoice(NumberedModel):
    """Language of a person's mails, and whether they want any; without a row they do."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="mail_choice")
    language = models.CharField(max_length=5)
    wanted = models.BooleanField(default=True)


class LetterState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    SENT = "sent", _("sent")
    # Nothing in it concerned the reader any more.
    DROPPED = "dropped", _("not needed")
    GIVEN_UP = "given_up", _("given up")


class Letter(NumberedModel):
    """One mail, to a person or an invited address; address and salt go once it is settled."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="letters")
    invitation = models.OneToOneField(Invitation, models.CASCADE, null=True, blank=True, related_name="letter")
    address = models.EmailField(blank=True)
    salt = models.BinaryField(max_length=32, null=True, blank=True)
    language = models.CharField(max_length=5)
    state = models.CharField(max_length=8, choices=LetterState.choices, default=LetterState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="annotation_letter_to_one",
                condition=Q(person__isnull=False, invitation=None) | Q(person=None, invitation__isnull=False),
            ),
            models.CheckConstraint(
                name="annotation_letter_keeps_no_secret",
                condition=Q(address="", salt=None)
                | Q(~Q(address=""), invitation__isnull=False, salt__isnull=False, state="waiting"),
            ),
            models.CheckConstraint(
                name="annotation_letter_sent",
                condition=Q(state="sent", sent_at__isnull=False) | Q(~Q(state="sent"), sent_at=None),
            ),
        )
        indexes = (models.Index(fields=("next_at",), condition=Q(state="waiting"), name="annotation_letter_due"),)


class Notice(NumberedModel):
    """Something to tell a person about a project once; never text of a record or an answer."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notices", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=10, choices=MailKind.choices)
    subject = models.CharField(max_length=120, help_text="What it is about; the same is told once.")
    facts = models.JSONField(default=dict)
    due_at = models.DateTimeField(null=True, blank=True, help_text="When a letter tells it; null once one does.")
    letter = models.ForeignKey(Letter, models.SET_NULL, null=True, blank=True, related_name="notices")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("person", "project", "kind", "subject"), name="annotation_notice_once"),
            models.CheckConstraint(name="annotation_notice_due_or_told", condition=Q(due_at=None) | Q(letter=None)),
        )
        indexes = (models.Index(fields=("due_at",), condition=Q(due_at__isnull=False), name="annotation_notice_due"),)
