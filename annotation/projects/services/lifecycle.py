"""The end of a project: archived it can only be read, deleted its row stays as the tombstone the ledger refers to."""

from typing import Any

from django.db import transaction
from django.db.models import CharField, F, QuerySet, Value
from django.db.models.functions import Cast, Concat, Now

from annotation.access import refuse_if_closed
from annotation.data.services import drafts, forgetting
from annotation.errors import InvalidConfiguration
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Dataset,
    DueLook,
    Encounter,
    GuidelinePicture,
    Guidelines,
    Label,
    Membership,
    PoolPart,
    PoolSource,
    Project,
    ProjectState,
    Query,
    Record,
    RecordPost,
    Report,
    Role,
    SpanSet,
    Survey,
)
from annotation.models.exports import Export
from annotation.models.imports import ImportPart
from annotation.models.joining import CrowdLink, CrowdParticipant, Invitation
from annotation.models.letters import Notice
from annotation.models.quality import GoldQuery, Opinion, QualityReport, Review
from annotation.models.questions import GUIDELINE_FILES
from annotation.models.retention import Deletion, SlotMark
from annotation.people.services import members
from annotation.signals import project_deleting, project_erasing
from annotation.work.services import files, jobs
from privacy.wording import in_english


def archive_project(*, project: Project) -> Project:
    """Put a project away: nobody is asked, nothing is scheduled, and who holds a question gives it back."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if locked.state == ProjectState.DELETED:
            refuse_if_closed(locked)
        locked.state = ProjectState.ARCHIVED
        locked.save(update_fields=["state"])
        held = Assignment.objects.filter(project=project, state=AssignmentState.LEASED)
        # Questions before leases, as everywhere.
        for query in Query.objects.filter(assignments__in=held).select_for_update(no_key=True).order_by("pk"):
            Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") + 1)
            held.filter(query=query).update(state=AssignmentState.EXPIRED, finished_at=Now())
    return locked


def unarchive_project(*, project: Project) -> Project:
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if locked.state != ProjectState.ARCHIVED:
            raise InvalidConfiguration(in_english("This project is not in the archive."))
        locked.state = ProjectState.PAUSED
        locked.save(update_fields=["state"])
    return locked


def request_deletion(*, project: Project, typed: str, keep_releases: bool, actor: str, send: bool = True) -> Deletion:
    """Close a project for good and open the job that erases it; `typed` must be the project's own short name."""
    if typed != project.slug:
        raise InvalidConfiguration("Type the project's short name exactly.")
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        refuse_if_deleted(locked)
        project_deleting.send(sender=Project, project=locked)
        # In one statement: a deleted project's row never changes again.
        locked.state, locked.question, locked.guidelines = ProjectState.DELETED, "", ""
        locked.save(update_fields=["state", "question", "guidelines"])
        Invitation.objects.filter(project=project).delete()
        forgetting.void_exports(project)
        CrowdLink.objects.filter(project=project, revoked_at=None).update(revoked_at=Now())
        for role in (Role.ANNOTATOR, Role.REVIEWER):
            members.take_all_roles(project=project, role=role)
            Membership.objects.filter(project=project, role=role).delete()
        return Deletion.objects.create(
            project=locked,
            job=jobs.open_job(project=locked, kind=jobs.DELETE, send=send),
            keep_releases=keep_releases,
            actor=actor,
        )


def refuse_if_deleted(project: Project) -> None:
    if project.state == ProjectState.DELETED:
        refuse_if_closed(project)


def erase_content(*, project: Project) -> None:
    """Delete rows of a deleted project, in the caller's transaction; uploads and gate runs stay for the ledger."""
    project_erasing.send(sender=Project, project=project)
    asked = Query.objects.filter(project=project)
    forgetting.forget_shown(project=project)
    for rows in (
        Opinion.objects.filter(report__project=project),
        QualityReport.objects.filter(project=project),
        GoldQuery.objects.filter(query__project=project),
        Consensus.objects.filter(project=project),
        Export.objects.filter(project=project),
        Label.objects.filter(query__project=project),
        SpanSet.objects.filter(project=project),
        Report.objects.filter(project=project),
        Assignment.objects.filter(project=project),
        Review.objects.filter(project=project),
        Encounter.objects.filter(project=project),
        Notice.objects.filter(project=project),
        asked,
        Survey.objects.filter(dataset__project=project),
        ImportPart.objects.filter(dataset__project=project),
        Record.objects.filter(dataset__project=project),
        RecordPost.objects.filter(project=project),
        Guidelines.objects.filter(project=project),
        GuidelinePicture.objects.filter(project=project),
        SlotMark.objects.filter(project=project),
        DueLook.objects.filter(project=project),
        CrowdParticipant.objects.filter(link__project=project),
        CrowdLink.objects.filter(project=project),
    ):
        _delete(rows)


def _delete(rows: "QuerySet[Any]") -> None:
    # Without looking for what hangs on each row: what does is deleted before.
    rows._raw_delete(rows.db)


def erase_uploads(*, project: Project) -> None:
    files.delete_folder(f"{GUIDELINE_FILES}/{project.pk}")
    for draft in project.upload_drafts.all():
        drafts.discard_draft(draft=draft)
    for dataset in Dataset.objects.filter(project=project):
        for file in (dataset.upload, dataset.pixels):
            if file:
                files.delete(str(file.name))
    parts = PoolPart.objects.filter(dataset__project=project)
    for name in parts.values_list("file", flat=True):
        files.delete(name)
    parts.delete()
    # The files of a registered table are its owner's.
    PoolSource.objects.filter(dataset__project=project).delete()
    named = Concat(Value("upload "), Cast("pk", CharField()))
    Dataset.objects.filter(project=project).update(
        name=named, upload="", pixels="", pixels_sha256="", mapping={}, bad_row_report=[], bad_row_count=0
    )
