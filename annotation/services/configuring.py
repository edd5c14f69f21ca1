"""Changing a project's configuration after it was opened, as far as nothing that was paid for rests on it."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from annotation.configuration import frozen_settings
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import Project
from annotation.presets import GATE_FIELDS, broken_rules
from annotation.services import jobs
from annotation.services.projects import ALL_GATE_FIELDS
from privacy.accounting.units import ATTO, NANO
from privacy.models import BudgetAccount
from privacy.selectors import guarantee
from privacy.services import ledger
from privacy.wording import say


def limits_of(project: Project) -> dict[str, float | None]:
    """Return the limits of the project's accounts under the names that rules and forms use."""
    pool = guarantee(project.pool_account)
    labels = project.labels_account
    return {
        "pool_epsilon": pool.epsilon_limit,
        "pool_delta": pool.delta_limit,
        "labels_epsilon": guarantee(labels).epsilon_limit if labels else None,
    }


def epsilon_limit_of(account: BudgetAccount) -> float:
    """Return the epsilon limit of an account."""
    return guarantee(account).epsilon_limit


def configure_project(*, project: Project, changes: Mapping[str, Any], actor: AbstractBaseUser) -> Project:
    """Store other settings.

    Raises `ConfigurationFrozen` where one is fixed by now, `InvalidConfiguration` where they have no proof together;
    nothing is stored then.
    """
    try:
        with transaction.atomic():
            # Waits for whoever stores a record, a question or a job, since their foreign keys lock the row as well.
            locked = Project.objects.select_for_update().get(pk=project.pk)
            wanted = {name: value for name, value in changes.items() if getattr(locked, name) != value}
            if wanted.get("gate_kind"):
                wanted |= dict.fromkeys(name for name in _other_gate_fields(wanted["gate_kind"]))
            if stuck := frozen_settings(locked).keys() & wanted.keys():
                raise ConfigurationFrozen(
                    say("These settings are fixed by now: {stuck}.", stuck=", ".join(sorted(stuck)))
                )
            if broken := broken_rules(vars(locked) | limits_of(locked) | wanted):
                raise InvalidConfiguration(
                    "; ".join(say("{field}: {reason}", field=field, reason=rule) for field, rule in broken.items())
                )
            if "privacy_unit" in wanted:
                wanted["pool_account"] = account_of_unit(locked, wanted["privacy_unit"], actor)
            for name, value in wanted.items():
                setattr(locked, name, value)
            if wanted:
                locked.save(update_fields=list(wanted))
                jobs.send_project_changed(locked.pk)
    except IntegrityError as error:
        raise ConfigurationFrozen("Something was paid for under these settings meanwhile, so they stay.") from error
    return locked


def _other_gate_fields(kind: str) -> set[str]:
    return set(ALL_GATE_FIELDS) - {"gate_epsilon", "texts_per_contributor", *GATE_FIELDS[kind]}


def account_of_unit(project: Project, unit: str, actor: AbstractBaseUser) -> BudgetAccount:
    """Open an account of the other unit under the same limits: the terms of one that stands never change."""
    now = project.pool_account
    scope = f"project:{project.slug}:pool"
    number = BudgetAccount.objects.filter(scope__startswith=scope).count() + 1
    return ledger.open_account(
        scope=f"{scope}:{number}",
        label=f"{project.slug} pool {number}",
        unit=unit,
        filter=now.filter,
        # As fractions, since a float would round either limit down.
        epsilon_limit=Fraction(now.epsilon_limit_nano, NANO),
        delta_limit=Fraction(now.delta_limit_atto, ATTO),
        actor=actor,
        reason=say("unit of privacy changed before the first charge"),
    )
