"""Versions of guidelines, and their pictures."""

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models.functions import Left

from annotation import selectors
from annotation.data.readers.images import read_picture
from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.models import GuidelinePicture, Guidelines, Membership, Project, Role
from annotation.questions.guidelines import (
    NAME_LENGTH,
    current_guidelines,
    picture_names,
    pictures_in,
    refuse_pictures_of_others,
)
from annotation.work.limits import LOOK, run
from annotation.work.scanning import scan_picture
from annotation.work.services import files
from privacy.wording import as_message

MOST_PICTURES = 40
LARGEST_FILE = 10 * 1024 * 1024
LONGEST_DESCRIPTION = 300


def add_guideline_picture(*, project: Project, data: bytes, description: str, by: User) -> GuidelinePicture:
    description = " ".join(description.split())
    if not 0 < len(description) <= LONGEST_DESCRIPTION:
        raise InvalidUpload(
            as_message("description: say in at most {most} characters what the picture shows", most=LONGEST_DESCRIPTION)
        )
    if len(data) > LARGEST_FILE:
        raise InvalidUpload(as_message("file: is larger than {most:,} bytes", most=LARGEST_FILE))
    scan_picture(data)
    made, content = next(run(read_picture, BytesIO(data), LOOK))
    digest = sha256(content).hexdigest()
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        same = GuidelinePicture.objects.filter(project=project, digest=digest).first()
        sides = {"width": made["width"], "height": made["height"]}
        picture = GuidelinePicture(project=project, digest=digest, description=description, added_by=by, **sides)
        return same or _stored(picture, content)


def bring_guideline_pictures(*, project: Project, by: User) -> None:
    wanted = pictures_in(project.guidelines)
    if not wanted:
        return
    managed = selectors.projects_of(by, roles=(Role.MANAGER,)).order_by().values("pk")
    found = GuidelinePicture.objects.filter(project__in=managed).annotate(name=Left("digest", NAME_LENGTH))
    for picture in found.filter(name__in=wanted).order_by("name", "pk").distinct("name"):
        content = picture_content(picture)
        picture.pk, picture.project, picture.added_by = None, project, by
        picture._state.adding = True
        _stored(picture, content)


def _stored(picture: GuidelinePicture, content: bytes) -> GuidelinePicture:
    if GuidelinePicture.objects.filter(project=picture.project).count() >= MOST_PICTURES:
        raise InvalidConfiguration(
            as_message(
                "Guidelines have at most {most} pictures. Delete an unused one.",
                most=MOST_PICTURES,
            )
        )
    picture.save(force_insert=True)
    if not default_storage.exists(picture.file):
        default_storage.save(picture.file, ContentFile(content))
    return picture


def picture_content(picture: GuidelinePicture) -> bytes:
    with default_storage.open(picture.file) as stored:
        content: bytes = stored.read()
    return content


def delete_guideline_picture(*, picture: GuidelinePicture) -> None:
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=picture.project_id)
        if picture.digest[:NAME_LENGTH] in pictures_in(project.guidelines):
            raise InvalidConfiguration("The guidelines show this picture. Take its line out of them first.")
        GuidelinePicture.objects.filter(pk=picture.pk).delete()
        # Not before: a row that stays needs its file.
        transaction.on_commit(partial(files.delete, picture.file))


def save_guidelines(
    *, project: Project, text: str, examples: Sequence[dict[str, Any]], author: AbstractBaseUser
) -> Guidelines:
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        refuse_pictures_of_others(text, picture_names(locked))
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


def mark_guidelines_seen(*, project: Project, user: AbstractBaseUser) -> None:
    Membership.objects.filter(project=project, user=user.pk, role=Role.ANNOTATOR).update(
        guidelines_seen=project.guidelines_version
    )
