"""Changing a project's configuration after it was opened, as far as nothing that was paid for rests on it."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from annotation.choices import services
from annotation.choices.account_kind import DELTA_SHARE, broken_on, filter_of
from annotation.choices.catalogue import default_of
from annotation.choices.classes import growth_hindrance, only_grows, unmerged_classes
from annotation.choices.gates import other_gate_fields
from annotation.choices.presets import PRESETS, broken_rules
from annotation.choices.services import frozen_settings
from annotation.errors import ConfigurationFrozen, refuse_broken
from annotation.models import Project
from annotation.projects.services import answers_accounts
from annotation.questions.services import queue
from annotation.selectors import is_charged
from annotation.signals import classes_changed
from annotation.work.services import jobs
from privacy.accounting.cost import ATTO, NANO, delta_limit_to_atto, epsilon_limit_to_nano
from privacy.ledger import populations
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from privacy.wording import as_message


def limits_of(project: Project) -> dict[str, float | None]:
    """Return the limits of the project's accounts under the names that rules and forms use, as somebody types them."""
    pool, labels = project.pool_account, project.labels_account
    return {
        "pool_epsilon": _as_typed(pool.epsilon_limit_nano, NANO, epsilon_limit_to_nano),
        "pool_delta": _as_typed(pool.delta_limit_atto, ATTO, delta_limit_to_atto),
        "labels_epsilon": _as_typed(labels.epsilon_limit_nano, NANO, epsilon_limit_to_nano) if labels else None,
    }


def _as_typed(count: int, unit: int, stored: Callable[[float], int]) -> float:
    """Return the shortest decimal that is stored as this limit: another account opened with it gets the same one."""
    decimals = (float(f"{count / unit:.{digits}g}") for digits in range(1, 18))
    return next((typed for typed in decimals if stored(typed) == count), count / unit)


def configure_project(*, project: Project, changes: Mapping[str, Any], actor: AbstractBaseUser) -> Project:
    try:
        with transaction.atomic():
            # Waits for whoever stores a record, a question or a job, since their foreign keys lock the row as well.
            locked = Project.objects.select_for_update().get(pk=project.pk)
            standing = locked.settings
            wanted = {name: value for name, value in changes.items() if standing.get(name, default_of(name)) != value}
            if wanted.get("gate_kind"):
                wanted |= dict.fromkeys(other_gate_fields(wanted["gate_kind"]))
            _refuse_frozen(locked, wanted)
            settings = services.settings_with(locked, wanted) | limits_of(locked) | wanted
            if settings["labels_epsilon"] is None:
                settings["labels_epsilon"] = _limit_of_answers(locked)
            charged = is_charged(locked)
            broken = broken_rules(settings)
            if charged:
                broken |= broken_on(settings, locked.pool_account.filter)
            refuse_broken(broken)
            kind = kind_of_account(locked, settings)
            if "privacy_unit" in wanted or kind != locked.pool_account.filter:
                wanted["pool_account"] = account_of_terms(locked, settings["privacy_unit"], kind, actor)
            labels = answers_accounts.account_under(
                locked,
                settings,
                epsilon_limit=settings["labels_epsilon"],
                actor=actor,
                reason=as_message("terms changed before the first charge"),
            )
            if labels != locked.labels_account:
                if charged:
                    raise ConfigurationFrozen("Something was charged, so settings of the guarantee are fixed.")
                wanted["labels_account"] = labels
            if wanted:
                locked.save(update_fields=services.set_settings(project=locked, changes=wanted, actor=actor))
                if "classes" in wanted:
                    classes_changed.send(
                        sender=Project,
                        project=locked,
                        before=unmerged_classes(standing["classes"], locked.merged_classes),
                    )
                jobs.send_project_changed(locked.pk)
    except IntegrityError as error:
        raise ConfigurationFrozen("Something was charged, so settings of the guarantee are fixed.") from error
    # After the commit: from now on every claim notes by itself whom it meets.
    if standing["encounter_limit"] is None and locked.encounter_limit is not None:
        queue.note_encounters(locked)
    return locked


def _refuse_frozen(project: Project, wanted: Mapping[str, Any]) -> None:
    """Refuse what is fixed by now; classes that people are asked with may get further ones behind them."""
    stuck = frozen_settings(project).keys() & wanted.keys()
    if "classes" in stuck and only_grows(project.classes, wanted["classes"]):
        taken = project.renamed_classes.keys() & set(wanted["classes"])
        rule = growth_hindrance(project.settings) or (as_message("This class already exists.") if taken else "")
        refuse_broken({"classes": rule} if rule else {})
        stuck -= {"classes"}
    if stuck:
        raise ConfigurationFrozen(
            as_message("These settings are fixed by now: {stuck}.", stuck=", ".join(sorted(stuck)))
        )


def _limit_of_answers(project: Project) -> float | None:
    default = PRESETS[project.preset].defaults.get("labels_epsilon")
    return answers_accounts.earlier_limit(project) or default


def kind_of_account(project: Project, settings: Mapping[str, Any]) -> str:
    now = project.pool_account
    return now.filter if is_charged(project) or quota_of(now) is not None else filter_of(settings)


def account_of_terms(project: Project, unit: str, kind: str, actor: AbstractBaseUser) -> BudgetAccount:
    """Open an account of other terms under the same limits: those of one that stands never change."""
    now = project.pool_account
    scope = f"project:{project.slug}:pool"
    number = BudgetAccount.objects.filter(scope__startswith=scope).count() + 1
    opened = ledger.open_account(
        scope=f"{scope}:{number}",
        label=as_message("{project} pool {number}", project=project.slug, number=number),
        unit=unit,
        filter=kind,
        # As fractions, since a float would round either limit down.
        epsilon_limit=Fraction(now.epsilon_limit_nano, NANO),
        delta_limit=Fraction(now.delta_limit_atto, ATTO),
        delta_share=DELTA_SHARE if kind == "zcdp" else None,
        actor=actor,
        reason=as_message("terms changed before the first charge"),
    )
    populations.follow(opened, like=now, actor=actor)
    return opened
