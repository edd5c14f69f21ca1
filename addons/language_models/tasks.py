"""Tasks of language models."""

from celery import shared_task

from addons.language_models import drafting, services


@shared_task
def start_machines_task() -> None:
    services.start_due()


@shared_task
def answer_by_machine_task(*, project_id: int) -> None:
    services.answer_some(project_id=project_id)


@shared_task
def draft_words_task(*, draft_id: str) -> None:
    drafting.write_draft(draft_id=draft_id)
