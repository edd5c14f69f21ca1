"""Choosing the gate of a project: a look at what would pass, and taking a gate over while nothing is charged."""

import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Dataset, DatasetRole, Job, Oracle, Project, WorkState
from annotation.presets import broken_rules
from annotation.services import gate_parts, jobs
from annotation.services.projects import ALL_GATE_FIELDS
from privacy.models import EntryKind, LedgerEntry
from privacy.normalizers import Normalizer
from privacy.selectors import guarantee
from privacy.survey import Frequencies, PoolSurvey

# What a page has time for; `manage.py plan_gate` reads any number.
SURVEYED_ROWS = 200_000
KEPT_FIELDS = ("texts_per_contributor",)


def gate_is_frozen(project: Project) -> bool:
    """Say whether the project's gate was charged, or is about to be."""
    paid = LedgerEntry.objects.filter(account=project.pool_account_id, kind=EntryKind.RESERVE)
    coming = Job.objects.filter(
        project=project, kind=jobs.GATE, state__in=(WorkState.WAITING, WorkState.RUNNING, WorkState.DONE)
    )
    return paid.exists() or coming.exists()


def choose_gate(*, project: Project, settings: Mapping[str, Any]) -> Project:
    """Give a crowd project another gate; `ConfigurationFrozen` once its pool account has paid for something.

    `settings` are the fields of one kind, perhaps with `normalizer`; `InvalidConfiguration` names what they break.
    """
    if project.oracle != Oracle.CROWD or settings.keys() - {*ALL_GATE_FIELDS, "gate_kind", "normalizer"}:
        raise InvalidConfiguration("Only the gate of a crowd project can be chosen.")
    with transaction.atomic():
        # This lock waits for whoever is opening a gate job, and they for it: a job's foreign key locks the project too.
        locked = Project.objects.select_for_update().get(pk=project.pk)
        if gate_is_frozen(locked):
            raise ConfigurationFrozen(
                "This project's gate is in use: what was charged for it holds for this gate only."
            )
        chosen = {field: None for field in ALL_GATE_FIELDS if field not in KEPT_FIELDS} | dict(settings)
        pool = guarantee(locked.pool_account)
        limits = {"pool_epsilon": pool.epsilon_limit, "pool_delta": pool.delta_limit}
        assert locked.labels_account is not None
        limits["labels_epsilon"] = guarantee(locked.labels_account).epsilon_limit
        if broken := broken_rules(vars(locked) | limits | chosen):
            raise InvalidConfiguration("; ".join(f"{field}: {rule}" for field, rule in broken.items()))
        for field, value in chosen.items():
            setattr(locked, field, value)
        locked.save(update_fields=list(chosen))
    return locked


def frequencies_of(dataset: Dataset) -> Frequencies:
    """Count how often texts are said in the first rows of an upload; as private as the upload itself."""
    project = dataset.project
    # A public test set names no contributors: there every record counts as somebody's own.
    named = project.privacy_unit == "contributor" and dataset.role == DatasetRole.POOL
    survey = PoolSurvey(
        key=secrets.token_bytes(32),
        unit="contributor" if named else "record",
        texts_per_contributor=project.texts_per_contributor if named else None,
        normalizer=Normalizer(project.normalizer),
        expected_pairs=SURVEYED_ROWS,
    )
    survey.update(gate_parts.records(dataset, lambda read: None, stop=SURVEYED_ROWS))
    return survey.frequencies()
