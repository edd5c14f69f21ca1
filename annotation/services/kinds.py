"""Choosing anew who is protected from whom, while nothing rests on the choice that was made at a project's opening."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from annotation import kinds
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Arrival, Dataset, Oracle, Project
from annotation.preset import Preset
from annotation.presets import PRESETS, broken_rules
from annotation.services import configuring, jobs, streams
from annotation.sheets import STREAM_JOB
from privacy.models import BudgetAccount
from privacy.services import ledger
from privacy.wording import say


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another kind for a project: what would change and which rules that would break, by field; nothing is stored."""

    changes: Mapping[str, Any]
    broken: Mapping[str, str]


def propose_kind(*, project: Project, preset: Preset, unit: str, labels_epsilon: float | None) -> Proposal:
    """Return what another kind would change, limits excepted: these stay, and a kind they cannot pay for is refused."""
    wanted = kinds.settings_of_kind(project, preset, unit)
    limits = configuring.limits_of(project)
    if preset.oracle == Oracle.CROWD:
        limits["labels_epsilon"] = _labels_limit(project) or labels_epsilon or preset.defaults["labels_epsilon"]
    broken = broken_rules(vars(project) | limits | wanted) | kinds.broken_by_data(project, wanted)
    return Proposal({name: value for name, value in wanted.items() if getattr(project, name) != value}, broken)


def change_kind(
    *, project: Project, preset: str, unit: str, labels_epsilon: float | None = None, actor: AbstractBaseUser
) -> Mapping[str, Any]:
    """Make a project one of another kind and return the settings that changed.

    The limits stay; `labels_epsilon` is that of the account of the answers, which a crowd project has and which is
    opened here where the project never had one. Raises `ConfigurationFrozen` where something rests on the present
    kind, `InvalidConfiguration` where the new one has no proof; nothing is stored then.
    """
    chosen = PRESETS[preset]
    try:
        with transaction.atomic():
            # The stream first, as whoever posts records does; then whoever stores anything of the project waits.
            stream = Dataset.objects.select_for_update(of=("self",)).filter(project=project, job__kind=STREAM_JOB)
            list(stream)
            locked = Project.objects.select_for_update().get(pk=project.pk)
            arrival = chosen.defaults.get("arrival", Arrival.POOL.value)
            if stuck := kinds.hindrances(locked, oracle=chosen.oracle, arrival=arrival, preset=preset):
                raise ConfigurationFrozen(" ".join(stuck))
            proposal = propose_kind(project=locked, preset=chosen, unit=unit, labels_epsilon=labels_epsilon)
            if proposal.broken:
                raise InvalidConfiguration(
                    "; ".join(
                        say("{field}: {reason}", field=field, reason=rule) for field, rule in proposal.broken.items()
                    )
                )
            _store(locked, chosen, proposal.changes, labels_epsilon, actor)
    except IntegrityError as error:
        raise ConfigurationFrozen("Something came to rest on this kind of project meanwhile, so it stays.") from error
    return proposal.changes


def _store(
    project: Project,
    preset: Preset,
    changes: Mapping[str, Any],
    labels_epsilon: float | None,
    actor: AbstractBaseUser,
) -> None:
    accounts: dict[str, Any] = {}
    if "privacy_unit" in changes:
        accounts["pool_account"] = configuring.account_of_unit(project, changes["privacy_unit"], actor)
    if "oracle" in changes:
        crowd = preset.oracle == Oracle.CROWD
        accounts["labels_account"] = _labels_account(project, preset, labels_epsilon, actor) if crowd else None
    if "arrival" in changes and project.arrival == Arrival.STREAM:
        _close_stream(project)
    for name, value in {**changes, **accounts}.items():
        setattr(project, name, value)
    if changes:
        project.save(update_fields=[*changes, *accounts])
        if "arrival" in changes and project.arrival == Arrival.STREAM:
            streams.open_stream(project=project)
        jobs.send_project_changed(project.pk)


def _close_stream(project: Project) -> None:
    """Take away the empty rows of a stream, which no pool has."""
    for dataset in Dataset.objects.filter(project=project, job__kind=STREAM_JOB, row_count=0):
        job = dataset.job
        dataset.delete()
        job.delete()


def _earlier_labels_account(project: Project) -> BudgetAccount | None:
    """Return the account of the answers that the project has or had; its limit is not chosen twice."""
    return project.labels_account or BudgetAccount.objects.filter(scope=f"project:{project.slug}:labels").first()


def _labels_limit(project: Project) -> float | None:
    account = _earlier_labels_account(project)
    return None if account is None else configuring.epsilon_limit_of(account)


def _labels_account(
    project: Project, preset: Preset, labels_epsilon: float | None, actor: AbstractBaseUser
) -> BudgetAccount:
    return _earlier_labels_account(project) or ledger.open_account(
        scope=f"project:{project.slug}:labels",
        label=f"{project.slug} labels",
        unit="record",
        filter="pure",
        epsilon_limit=labels_epsilon or preset.defaults["labels_epsilon"],
        delta_limit=0.0,
        actor=actor,
        reason=say("answers are protected since a crowd gives them"),
    )
