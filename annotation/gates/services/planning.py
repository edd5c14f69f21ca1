"""Choosing the gate of a project: a look at what would pass, and taking a gate over while nothing is charged."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet

from annotation.choices.gates import all_gate_fields, own_gate_parameters
from annotation.choices.presets import broken_rules
from annotation.choices.services import configurations
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.gates.services import pool_rows
from annotation.models import Dataset, DatasetRole, DatasetState, Job, Oracle, Project, Survey, WorkState
from annotation.work.services import attempts, jobs
from privacy.engines.base import Tell
from privacy.gate.coins import new_key
from privacy.gate.normalizers import Normalizer
from privacy.gate.survey import Frequencies, PoolSurvey
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.selectors import guarantee
from privacy.wording import as_message, joined_rules

# What a page has time for; what is larger takes a job.
SURVEYED_ROWS = 200_000


def gate_is_frozen(project: Project) -> bool:
    """Say whether the project's gate was charged, or is about to be."""
    paid = LedgerEntry.objects.filter(account=project.pool_account_id, kind=EntryKind.RESERVE)
    coming = Job.objects.filter(
        project=project, kind=jobs.GATE, state__in=(WorkState.WAITING, WorkState.RUNNING, WorkState.DONE)
    )
    # Its price was agreed to.
    sent = Dataset.objects.filter(project=project, role=DatasetRole.POOL, state=DatasetState.RECEIVING)
    return paid.exists() or coming.exists() or sent.exists()


def choose_gate(*, project: Project, settings: Mapping[str, Any]) -> Project:
    """Give a crowd project another gate; `ConfigurationFrozen` once its pool account has paid for something.

    `settings` are the fields of one kind, perhaps with `normalizer`; `InvalidConfiguration` names what they break.
    """
    if project.oracle != Oracle.CROWD or settings.keys() - {*all_gate_fields(), "gate_kind", "normalizer"}:
        raise InvalidConfiguration("Only the gate of a crowd project can be chosen.")
    with transaction.atomic():
        # This lock waits for whoever is opening a gate job, and they for it: a job's foreign key locks the project too.
        locked = Project.objects.select_for_update().get(pk=project.pk)
        if gate_is_frozen(locked):
            raise ConfigurationFrozen(
                "This project's gate is in use: what was charged for it holds for this gate only."
            )
        # What all gates have stays where it is not chosen anew, but for the price.
        chosen = dict.fromkeys(("gate_epsilon", *own_gate_parameters())) | dict(settings)
        pool = guarantee(locked.pool_account)
        limits = {"pool_epsilon": pool.epsilon_limit, "pool_delta": pool.delta_limit}
        if locked.labels_account is not None:
            limits["labels_epsilon"] = guarantee(locked.labels_account).epsilon_limit
        if broken := broken_rules(locked.settings | limits | chosen):
            raise InvalidConfiguration(joined_rules(broken))
        locked.save(update_fields=configurations.set_settings(project=locked, changes=chosen, actor=None))
    return locked


def countable_uploads(project: Project) -> QuerySet[Dataset]:
    """Return the uploads that may be counted whole.

    Private examples are for the training that was paid for alone, and registered tables for their gate.
    """
    ready = Dataset.objects.filter(project=project, state=DatasetState.READY, source__isnull=True)
    return ready.exclude(role=DatasetRole.CHARGED_START)


def frequencies_of(dataset: Dataset) -> Frequencies | None:
    """Return how often texts are said in an upload, as private as the upload itself.

    A small one is counted now. A large one takes a job: None until `start_survey` was called and has ended.
    """
    if dataset.row_count <= SURVEYED_ROWS:
        return _count(dataset, lambda read: None)
    found = Survey.objects.filter(dataset=dataset, normalizer=dataset.project.normalizer).first()
    return None if found is None or found.frequencies is None else Frequencies.from_json(found.frequencies)


def survey_job(dataset: Dataset) -> Job | None:
    """Return the job that counts a large upload, if one was opened for the rule that holds now."""
    found = Survey.objects.filter(dataset=dataset, normalizer=dataset.project.normalizer).select_related("job").first()
    return None if found is None else found.job


def start_survey(*, dataset: Dataset, owner: AbstractBaseUser | None = None) -> Job:
    """Open the job that counts a whole upload; the one that stands, unless it failed or counted by another rule."""
    with transaction.atomic():
        locked = Dataset.objects.select_for_update(of=("self",)).select_related("project").get(pk=dataset.pk)
        standing = survey_job(locked)
        if standing is not None and standing.state != WorkState.FAILED:
            return standing
        jobs.refuse_when_busy()
        Survey.objects.filter(dataset=locked).delete()
        job = jobs.open_job(project=locked.project, kind=jobs.SURVEY, owner=owner)
        Survey.objects.create(dataset=locked, job=job, normalizer=locked.project.normalizer)
    return job


def run_survey(*, job_id: UUID | str) -> None:
    """Count a whole upload in bounded memory; nothing is charged, since only managers of the project see it."""
    job = Job.objects.get(pk=job_id, kind=jobs.SURVEY)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        survey = Survey.objects.select_related("dataset__project").get(job=job)
        counted = _count(survey.dataset, partial(_tell, lease, survey.dataset))
        with transaction.atomic():
            Survey.objects.filter(pk=survey.pk).update(frequencies=counted.to_json())
            attempts.finish_work(
                row=job, progress_done=survey.dataset.row_count, message=as_message("The upload is counted.")
            )


def _tell(lease: attempts.Lease, dataset: Dataset, read: int) -> None:
    lease.check()
    lease.report(progress_done=read, progress_total=dataset.row_count, message=as_message("Counting the upload."))


def _count(dataset: Dataset, tell: Tell) -> Frequencies:
    project = dataset.project
    # A public test set names no contributors: there every record counts as somebody's own.
    named = project.privacy_unit == "contributor" and dataset.role == DatasetRole.POOL
    survey = PoolSurvey(
        key=new_key(),
        unit="contributor" if named else "record",
        texts_per_contributor=project.texts_per_contributor if named else None,
        normalizer=Normalizer(project.normalizer),
        expected_pairs=max(SURVEYED_ROWS, dataset.row_count),
    )
    survey.update(pool_rows.records(dataset, tell, contributors=named))
    return survey.frequencies()
