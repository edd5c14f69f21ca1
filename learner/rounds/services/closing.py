"""Deleting and archiving a project."""

from uuid import UUID

from django.db import transaction

from annotation.models import Job, Project
from annotation.models.retention import Deletion
from annotation.projects.services import lifecycle
from annotation.work.services import attempts, files, jobs
from learner.models import (
    FeatureMatrix,
    ModelRelease,
    ReleaseState,
    SecretDraw,
    Stream,
    StreamBatch,
    WarmStart,
)
from learner.models.answers import AnswerSeries, RandomizedLabel
from learner.releases.services.described import forget_described
from privacy.ledger.faults import fault_point
from privacy.ledger.models import LedgerEntry
from privacy.wording import as_message


def what_stays(project: Project) -> dict[str, int]:
    accounts = [account for account in (project.pool_account_id, project.labels_account_id) if account is not None]
    return {
        "entries": LedgerEntry.objects.filter(account__in=accounts).count(),
        "releases": ModelRelease.objects.filter(project=project).count(),
        "actions": project.actions.count(),
    }


REASON = "The project was deleted, and its releases with it."


def delete_project(*, job_id: UUID | str) -> None:
    """Erase what a deleted project held, once however often it is called; a killed attempt is taken up again."""
    job = Job.objects.get(pk=job_id, kind=jobs.DELETE)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        deletion = Deletion.objects.select_related("project").get(job=job)
        project = deletion.project
        _erase_rows(project)
        fault_point("project_rows_erased")
        lifecycle.erase_uploads(project=project)
        files.delete_folder(f"features/{project.pk}")
        files.delete_folder(f"datasets/{project.pk}")
        files.delete_folder(f"exports/{project.pk}")
        forget_described(project)
        if not deletion.keep_releases:
            _bury_releases(project)
        fault_point("project_files_erased")
        lease.check()
        attempts.finish_work(row=job, message=as_message("Done."))


def _erase_rows(project: Project) -> None:
    with transaction.atomic():
        for rows in (
            RandomizedLabel.objects.filter(project=project),
            AnswerSeries.objects.filter(project=project),
            StreamBatch.objects.filter(stream__project=project),
            Stream.objects.filter(project=project),
            SecretDraw.objects.filter(dataset__project=project),
            WarmStart.objects.filter(dataset__project=project),
            FeatureMatrix.objects.filter(dataset__project=project),
        ):
            rows.delete()
        lifecycle.erase_content(project=project)


def _bury_releases(project: Project) -> None:
    """Take the files and the numbers of every release away; version, digests, guarantee and lineage stay."""
    for release in ModelRelease.objects.filter(project=project):
        files.delete_folder(release.folder)
        ModelRelease.objects.filter(pk=release.pk).update(
            state=ReleaseState.RETIRED, retired_reason=REASON, weights={}, features={}, configuration={}
        )
