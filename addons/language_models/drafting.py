"""Drafts of example texts, from the button to the words about the classes."""

import time
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from addons.language_models.drafts import MOST_EXAMPLES, draft_examples
from addons.language_models.endpoint import Endpoint, EndpointFault
from addons.language_models.models import LONGEST_DRAFTING, WordsDraft
from annotation.errors import AnnotationError
from annotation.models import Project
from annotation.work.services.sending import send_on_commit
from privacy.wording import as_message

DRAFT_TASK = "addons.language_models.tasks.draft_words_task"
KEPT = timedelta(days=1)
# Time for the last request is left.
DRAFTING_SECONDS = LONGEST_DRAFTING.total_seconds() / 2


class DraftRefused(AnnotationError):
    """A draft of words cannot be asked for."""


def start_draft(
    *,
    owner: User,
    endpoint: str,
    classes: Sequence[str],
    question: str,
    guidelines: str,
    examples: int,
    project: Project | None = None,
    opening: UUID | None = None,
) -> WordsDraft:
    """Store what the model will be shown, and let a worker ask it."""
    if endpoint not in settings.LANGUAGE_MODELS:
        raise DraftRefused(as_message("No such endpoint is configured on this site."))
    if not 1 <= examples <= MOST_EXAMPLES:
        raise DraftRefused(as_message("From 1 to {most} examples of each class.", most=MOST_EXAMPLES))
    if not classes:
        raise DraftRefused(as_message("Name the classes first."))
    WordsDraft.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    with transaction.atomic():
        # One at a time: the lock lets a second press wait for the first.
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
        if any(draft.is_waiting for draft in WordsDraft.objects.filter(owner=owner, ended_at=None)):
            raise DraftRefused(as_message("Another draft of yours is being written."))
        draft = WordsDraft.objects.create(
            owner=owner,
            project=project,
            opening=opening,
            endpoint=endpoint,
            model=settings.LANGUAGE_MODELS[endpoint][1],
            classes=list(classes),
            question=question,
            guidelines=guidelines,
            examples=examples,
        )
        send_on_commit(DRAFT_TASK, draft_id=str(draft.pk))
    return draft


def write_draft(*, draft_id: str) -> None:
    """Ask the language model, which is shown what the row holds; nothing else is read."""
    draft = WordsDraft.objects.filter(pk=draft_id, ended_at=None).first()
    if draft is None:
        return
    found, fault = [], ""
    try:
        url, model, key = settings.LANGUAGE_MODELS[draft.endpoint]
        found = draft_examples(
            Endpoint(url, model, key),
            classes=draft.classes,
            question=draft.question,
            guidelines=draft.guidelines,
            examples=draft.examples,
            hosts=settings.LANGUAGE_MODEL_HOSTS,
            local=settings.LANGUAGE_MODEL_LOCAL_HOSTS,
            seconds=settings.LANGUAGE_MODEL_SECONDS,
            ends=time.monotonic() + DRAFTING_SECONDS,
        )
    except KeyError:
        fault = "the endpoint is not named any more"
    except EndpointFault as error:
        fault = str(error)[:200]
    WordsDraft.objects.filter(pk=draft.pk, ended_at=None).update(found=found, fault=fault, ended_at=timezone.now())


def source_of(draft: WordsDraft, *, editor: User, accepted: Sequence[str]) -> str:
    """Return who wrote the words, as the card of each model prints it."""
    verb = "accepted" if list(accepted) == draft.lines else "edited"
    return f"drafted by {draft.model}, {verb} by {editor.get_username()}"
