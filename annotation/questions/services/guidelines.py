"""Versions of guidelines, and their pictures."""

from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.db.models.functions import Left, Length
from django.urls import reverse

from annotation import selectors
from annotation.data.readers.images import read_picture
from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.models import GuidelinePicture, Guidelines, Membership, Project, Role
from annotation.questions.guidelines import NAME_LENGTH, ShownPicture, pictures_in, refuse_pictures_of_others
from annotation.work.limits import Limits, run
from annotation.work.scanning import scan_picture
from privacy.wording import as_message

# As the database holds them, too.
MOST_PICTURES = 40
MOST_BYTES = 16 * 1024 * 1024
LARGEST_FILE = 10 * 1024 * 1024
LONGEST_DESCRIPTION = 300


def add_guideline_picture(*, project: Project, data: bytes, description: str, by: User) -> GuidelinePicture:
    """Store a picture without its metadata; the same picture again is the stored one."""
    description = " ".join(description.split())
    if not 0 < len(description) <= LONGEST_DESCRIPTION:
        raise InvalidUpload(
            as_message("description: say in at most {most} characters what the picture shows", most=LONGEST_DESCRIPTION)
        )
    if len(data) > LARGEST_FILE:
        raise InvalidUpload(as_message("file: is larger than {most:,} bytes", most=LARGEST_FILE))
    scan_picture(data)
    made, content = next(run(read_picture, BytesIO(data), Limits()))
    digest = sha256(content).hexdigest()
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        kept = GuidelinePicture.objects.filter(project=project)
        if (same := kept.filter(digest=digest).first()) is not None:
            return same
        _refuse_beyond_room(kept, len(content))
        return GuidelinePicture.objects.create(
            project=project,
            digest=digest,
            description=description,
            width=made["width"],
            height=made["height"],
            content=content,
            added_by=by,
        )


def bring_guideline_pictures(*, project: Project, by: User) -> None:
    """Copy the pictures that a new project's guidelines show from projects the person manages."""
    wanted = pictures_in(project.guidelines)
    if not wanted:
        return
    managed = selectors.projects_of(by, roles=(Role.MANAGER,)).order_by().values("pk")
    found = GuidelinePicture.objects.filter(project__in=managed).annotate(name=Left("digest", NAME_LENGTH))
    for picture in found.filter(name__in=wanted).order_by("name", "pk").distinct("name"):
        _refuse_beyond_room(GuidelinePicture.objects.filter(project=project), len(picture.content))
        picture.pk, picture.project, picture.added_by = None, project, by
        picture.save(force_insert=True)


def _refuse_beyond_room(kept: QuerySet[GuidelinePicture], size: int) -> None:
    bytes_kept = kept.aggregate(total=Sum(Length("content")))["total"] or 0
    if kept.count() >= MOST_PICTURES or bytes_kept + size > MOST_BYTES:
        raise InvalidConfiguration(
            as_message(
                "Guidelines have at most {most} pictures, of {bytes:,} bytes together. Delete one that they do not "
                "show any more.",
                most=MOST_PICTURES,
                bytes=MOST_BYTES,
            )
        )


def delete_guideline_picture(*, picture: GuidelinePicture) -> None:
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=picture.project_id)
        if picture.digest[:NAME_LENGTH] in pictures_in(project.guidelines):
            raise InvalidConfiguration("The guidelines show this picture. Take its line out of them first.")
        GuidelinePicture.objects.filter(pk=picture.pk).delete()


def guideline_pictures(project: Project) -> QuerySet[GuidelinePicture]:
    return GuidelinePicture.objects.filter(project=project).defer("content").order_by("pk")


def names_of_pictures(project: Project) -> set[str]:
    digests = GuidelinePicture.objects.filter(project=project).values_list("digest", flat=True)
    return {digest[:NAME_LENGTH] for digest in digests}


def shown_pictures(project: Project, text: str, *, view: str) -> tuple[ShownPicture, ...]:
    wanted = pictures_in(text)
    if not wanted:
        return ()
    found = GuidelinePicture.objects.filter(project=project).order_by("pk").values_list("digest", "width", "height")
    return tuple(
        ShownPicture(digest[:NAME_LENGTH], reverse(view, args=(project.slug, digest)), width, height)
        for digest, width, height in found
        if digest[:NAME_LENGTH] in wanted
    )


def save_guidelines(
    *, project: Project, text: str, examples: Sequence[dict[str, Any]], author: AbstractBaseUser
) -> Guidelines:
    """Store a new version; the same text again is the current version."""
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
    """Return the current version; the first one of a new project is not stored."""
    stored = Guidelines.objects.filter(project=project, version=project.guidelines_version).first()
    return stored or Guidelines(
        project=project, version=project.guidelines_version, text=project.guidelines, author_id=project.created_by_id
    )


def mark_guidelines_seen(*, project: Project, user: AbstractBaseUser) -> None:
    Membership.objects.filter(project=project, user=user.pk, role=Role.ANNOTATOR).update(
        guidelines_seen=project.guidelines_version
    )
