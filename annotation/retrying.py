"""Opening a job again that failed or was cancelled, where what it needs is still there."""

from django.contrib.auth.models import User

from annotation.data.services import datasets, exports
from annotation.gates import services as gates
from annotation.models import Job, WorkState
from annotation.models.quality import QualityReport
from annotation.review import services as comparing
from annotation.work.services import jobs


def retry_job(*, job: Job, owner: User) -> Job | None:
    """Replace a job that ended without a result, None where nothing is left to do; a gate pays again."""
    if job.state != WorkState.FAILED:
        return None
    if job.kind == jobs.IMPORT and hasattr(job, "dataset"):
        return datasets.read_again(dataset=job.dataset, owner=owner)
    if job.kind == jobs.GATE and hasattr(job, "gated_dataset"):
        return gates.start_gate(dataset=job.gated_dataset, owner=owner)
    if job.kind == jobs.SURVEY and hasattr(job, "survey"):
        return gates.start_survey(dataset=job.survey.dataset, owner=owner)
    if job.kind == jobs.COMPARE and (report := QualityReport.objects.filter(job=job).first()) is not None:
        return comparing.start_report(project=report.project, owner=owner).job
    if job.kind == jobs.EXPORT and hasattr(job, "export"):
        asked = job.export
        return exports.start_export(project=asked.project, owner=owner, format=asked.format, history=asked.history).job
    return None
