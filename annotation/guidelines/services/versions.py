"""What annotators are told, in versions: a change is a new version, and everybody is told of it once."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.guidelines.services.pictures import names_of_pictures
from annotation.guidelines.text import refuse_pictures_of_others
from annotation.models import Guidelines, Membership, Project, Role


def save_guidelines(
    *, project: Project, text: str, examples: Sequence[dict[str, Any]], author: AbstractBaseUser
) -> Guidelines:
    """Store a new version; the same words again are the version that stands."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        refuse_pictures_of_others(text, names_of_pictures(locked))
        current = current_guidelines(locked)
        if (current.text, current.examples) == (text, list(examples)):
            return current
        if current.pk is None and (current.text or current.examples):
            current.save()
        told_before = current.pk is not None
        saved = Guidelines.objects.create(
            project=locked,
            version=locked.guidelines_version + 1 if told_before else locked.guidelines_version,
            text=text,
            examples=list(examples),
            author_id=author.pk,
        )
        locked.guidelines, locked.guidelines_version = text, saved.version
        locked.save(update_fields=["guidelines", "guidelines_version"])
    project.guidelines, project.guidelines_version = text, saved.version
    return saved


def current_guidelines(project: Project) -> Guidelines:
    """Return the version that stands; a project nobody changed has its first one, not stored apart."""
    stored = Guidelines.objects.filter(project=project, version=project.guidelines_version).first()
    return stored or Guidelines(
        project=project, version=project.guidelines_version, text=project.guidelines, author_id=project.created_by_id
    )


def mark_guidelines_seen(*, project: Project, user: AbstractBaseUser) -> None:
    """Note that the person knows the version that stands."""
    Membership.objects.filter(project=project, user=user.pk, role=Role.ANNOTATOR).update(
        guidelines_seen=project.guidelines_version
    )
