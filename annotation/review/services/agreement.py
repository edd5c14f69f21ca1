"""Agreement reports: who agrees with whom, and how well each annotator labels."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from annotation.models import Job, Label, Project
from annotation.models.kinds import Aggregation
from annotation.models.quality import Opinion, QualityReport
from annotation.questions.selectors.answers import counted, label_type, names_several
from annotation.review.agreement import Answer, compare_answers
from annotation.work.services import attempts, jobs
from privacy.wording import as_message


def start_report(*, project: Project, owner: User) -> QualityReport:
    jobs.refuse_when_busy()
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        QualityReport.objects.filter(project=project).delete()
        job = jobs.open_job(project=project, kind=jobs.COMPARE, owner=owner)
        # A model of annotators weighs one class against another; sets are compared class by class.
        method = Aggregation.MAJORITY if names_several(project) else project.aggregation
        return QualityReport.objects.create(project=project, job=job, method=method)


def make_report(*, job_id: str) -> None:
    """Compare and store, unless a newer report replaced this one."""
    job = Job.objects.get(pk=job_id)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        report = QualityReport.objects.filter(job=job).first()
        if report is None:
            attempts.fail_work(row=job, error=as_message("A newer comparison took this one's place."))
            return
        _compare(report, job, lease)


def _compare(report: QualityReport, job: Job, lease: attempts.Lease) -> None:
    labels = Label.objects.filter(query__project=report.project_id, query__emptied=False, superseded_at=None)
    rows = labels.values_list("query", "annotator", "choice").iterator()
    project = report.project
    answers = [Answer(task, person, counted(project, choice)) for task, person, choice in rows if choice is not None]
    if not answers:
        attempts.fail_work(row=job, error=as_message("Nobody has answered anything yet."))
        return
    lease.check()
    comparison = compare_answers(answers, method=report.method, kind=label_type(project))  # type: ignore[arg-type]
    lease.check()
    with transaction.atomic():
        opinions = (
            Opinion(report=report, query_id=task, choice=choice, probability=probability)
            for task, (choice, probability) in comparison.opinions.items()
        )
        Opinion.objects.bulk_create(opinions, batch_size=2000)
        QualityReport.objects.filter(pk=report.pk).update(
            answers=len(answers),
            questions=len(comparison.opinions),
            alpha=comparison.alpha,
            skills={str(person): skill for person, skill in comparison.skills.items()},
            made_at=Now(),
        )
        attempts.finish_work(row=job)
