"""Tasks of workers and the beat: ids in, one service called."""

from celery import shared_task

from annotation.data.services import datasets, drafts, exports, import_parts, retention, streams
from annotation.gates import services as gates
from annotation.people.services import letters
from annotation.projects.services import drafts as openings
from annotation.questions.services import queue
from annotation.review import services as comparing
from annotation.work.services import idempotency, jobs, looks


@shared_task(acks_late=True)
def import_dataset_task(*, job_id: str) -> None:
    datasets.import_dataset(job_id=job_id)


@shared_task(acks_late=True)
def read_import_parts_task(*, dataset_id: int) -> None:
    import_parts.help_reading(dataset_id=dataset_id)


@shared_task(acks_late=True)
def run_gate_task(*, job_id: str) -> None:
    gates.run_gate(job_id=job_id)


@shared_task(acks_late=True)
def run_survey_task(*, job_id: str) -> None:
    gates.run_survey(job_id=job_id)


@shared_task
def resend_stalled_work_task() -> None:
    jobs.resend_stalled_work()


@shared_task
def look_again_task() -> None:
    looks.look_again()


@shared_task
def forget_read_uploads_task() -> None:
    datasets.forget_read_uploads()


@shared_task
def forget_old_drafts_task() -> None:
    drafts.forget_old_drafts()
    openings.forget_old_drafts()


@shared_task
def forget_unowned_files_task() -> None:
    retention.forget_unowned_files()
    exports.forget_exports()


@shared_task
def return_expired_leases_task() -> None:
    queue.return_expired_leases()


@shared_task
def forget_old_counts_task() -> None:
    idempotency.forget_old_tries()


@shared_task(acks_late=True)
def compare_answers_task(*, job_id: str) -> None:
    comparing.make_report(job_id=job_id)


@shared_task(acks_late=True)
def export_labels_task(*, job_id: str) -> None:
    exports.make_export(job_id=job_id)


@shared_task
def forget_old_posts_task() -> None:
    streams.forget_old_posts()
    idempotency.forget_old_answers()


@shared_task(acks_late=True, ignore_result=True)
def send_letter_task(*, letter_id: str) -> None:
    letters.send_letter(letter_id=letter_id)
