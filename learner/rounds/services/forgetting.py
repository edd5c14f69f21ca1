"""Forgetting of contributors and old records, and what their models keep."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from annotation.data.services import exports, pool_files, retention
from annotation.data.services import forgetting as data_forgetting
from annotation.data.services import forgetting as records
from annotation.data.services.forgetting import Traces
from annotation.models import Dataset, Job, Oracle, PrivacyUnit, Project
from annotation.models.exports import Export
from annotation.models.retention import Forgetting
from annotation.work.services import attempts, jobs
from learner.models import ModelRelease
from learner.pools import features
from privacy.ledger.faults import fault_point
from privacy.ledger.selectors import guarantee
from privacy.wording import as_message


def apply_retention(*, project_id: int) -> Mapping[str, int]:
    """Erase what is over its period; done again, it finds nothing, and ends what a killed attempt left in files."""
    project = Project.objects.get(pk=project_id)
    gone = retention.erase_overdue(project=project)
    erase_from_files(project=project)
    return gone


@dataclass(frozen=True, slots=True)
class Promise:
    epsilon: float
    delta: float
    records: int
    whole_contributor: bool

    @property
    def together(self) -> tuple[float, float]:
        """Return epsilon and delta for all records at once; where the unit is the contributor, the limit itself."""
        if self.whole_contributor or self.records <= 1:
            return self.epsilon, self.delta
        epsilon = self.records * self.epsilon
        if not self.delta:
            return epsilon, 0.0
        if epsilon > 700:
            return epsilon, 1.0
        return epsilon, min(1.0, self.delta * math.expm1(epsilon) / math.expm1(self.epsilon))


@dataclass(frozen=True, slots=True)
class ForgettingPreview:
    traces: Traces
    promise: Promise
    releases: tuple[ModelRelease, ...]


def preview_forgetting(*, project: Project, name: str) -> ForgettingPreview:
    """Say what would be erased and which releases learned while it was there; nothing is changed."""
    traces = records.traces_of(project=project, name=name)
    limit = guarantee(project.pool_account)
    promise = Promise(
        epsilon=limit.epsilon_limit,
        delta=limit.delta_limit,
        records=traces.records,
        whole_contributor=project.privacy_unit == PrivacyUnit.CONTRIBUTOR,
    )
    return ForgettingPreview(traces, promise, tuple(releases_using(project=project, uploads=traces.uploads)))


def releases_using(*, project: Project, uploads: tuple[Dataset, ...]) -> QuerySet[ModelRelease]:
    """Return the releases that descend from these uploads: by their gates, or because they were in the pool then."""
    found = ModelRelease.objects.filter(project=project).order_by("version")
    if not uploads:
        return found.none()
    if project.oracle == Oracle.CROWD:
        gates = [run.committed_entry_id for upload in uploads for run in upload.gate_runs.all()]
        return found.filter(lineage__in=[entry for entry in gates if entry is not None]).distinct()
    return found.filter(created_at__gte=min(upload.created_at for upload in uploads))


def forget_contributor(*, job_id: UUID | str) -> None:
    """Erase what a request is about, once however often it is called; a killed attempt is taken up where it stopped."""
    job = Job.objects.get(pk=job_id, kind=jobs.FORGET)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        request = Forgetting.objects.select_related("project").get(job=job)
        records.forget_records(forgetting=request)
        fault_point("records_emptied")
        records.discard_drafts(request.project)
        erase_from_files(project=request.project)
        fault_point("files_zeroed")
        lease.check()
        with transaction.atomic():
            records.finish_forgetting(forgetting=request)
            attempts.finish_work(row=job, message=as_message("Done."))
            jobs.send_project_changed(request.project_id)


def erase_from_files(*, project: Project) -> None:
    """Zero every empty slot in pixel and feature files and remove exported files; done again, it changes nothing."""
    for dataset in Dataset.objects.filter(project=project, records__emptied=True).distinct().select_related("project"):
        data_forgetting.black_out_pixels(dataset)
        features.zero_emptied(dataset)
    for dataset in pool_files.emptied_datasets(project):
        pool_files.drop_unknown(dataset)
    exports.remove_files(Export.objects.filter(project=project, is_void=True))
