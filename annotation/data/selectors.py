"""Uploads and streams as the pages of a project show them."""

from typing import Any

from django.db.models import Prefetch, QuerySet

from annotation.models import STREAM_JOB, DataKind, Dataset, DatasetRole, GateRun, Label, Project, RecordPost, Role
from annotation.selectors import Person, projects_of


def slots_of(project: Project) -> int:
    return Dataset.objects.get(project=project, role=DatasetRole.POOL).row_count


def example_record(project: Project) -> dict[str, Any]:
    if project.data_kind == DataKind.TEXT:
        return {"text": "…"}
    return {
        column["name"]: column["categories"][0] if "categories" in column else column["low"]
        for column in project.columns
    }


def has_answers(project: Project, number: int) -> bool:
    return Label.objects.filter(query__project=project)[:number].count() >= number


def uploads_of(project: Project) -> QuerySet[Dataset]:
    runs = Prefetch("gate_runs", GateRun.objects.order_by("pk"))
    uploads = (
        Dataset.objects.filter(project=project)
        .exclude(job__kind=STREAM_JOB)
        .select_related("job", "gate_job", "source")
    )
    return uploads.prefetch_related(runs).order_by("-pk")


def same_files_elsewhere(project: Project, person: Person) -> dict[str, list[Project]]:
    """Return by digest of a pool's file the person's other projects that hold it and do not share a budget with this.

    Projects that the person does not manage are left out, so uploads of other teams stay unknown.
    """
    pools = Dataset.objects.filter(role=DatasetRole.POOL).exclude(upload_digest="")
    mine = projects_of(person, roles=(Role.MANAGER,)).exclude(pk=project.pk)
    shared = project.pool_account.parent_id
    found = pools.filter(
        project__in=mine, upload_digest__in=pools.filter(project=project).values("upload_digest")
    ).select_related("project")
    if shared is not None:
        found = found.exclude(project__pool_account__parent=shared)
    elsewhere: dict[str, list[Project]] = {}
    for dataset in found.order_by("project__name", "pk"):
        projects = elsewhere.setdefault(dataset.upload_digest, [])
        if dataset.project not in projects:
            projects.append(dataset.project)
    return elsewhere


def waiting_posts(project_id: int) -> Any:
    return RecordPost.objects.filter(project=project_id, body__isnull=False)
