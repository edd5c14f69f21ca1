"""Uploads and streams as the pages of a project show them."""

from typing import Any

from django.db.models import Prefetch, QuerySet

from annotation.models import STREAM_JOB, DataKind, Dataset, DatasetRole, GateRun, Label, Project, RecordPost


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


def waiting_posts(project_id: int) -> Any:
    return RecordPost.objects.filter(project=project_id, body__isnull=False)
