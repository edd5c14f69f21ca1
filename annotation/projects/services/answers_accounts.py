"""The account of a crowd's answers: of the unit its settings declare, and none where answers are no secret."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from annotation.choices.randomizers import answers_unit
from annotation.models import Oracle, Project
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import guarantee
from privacy.wording import as_message


def open_answers_account(
    slug: str, epsilon_limit: float, *, unit: str, actor: AbstractBaseUser, reason: str
) -> BudgetAccount:
    """Open the account of a crowd's answers: behind a gate the texts are public, and answers may be any others."""
    scope = f"project:{slug}:labels"
    number = BudgetAccount.objects.filter(scope__startswith=scope).count() + 1
    first = number == 1
    return ledger.open_account(
        scope=scope if first else f"{scope}:{number}",
        label=as_message("{project} labels", project=slug)
        if first
        else as_message("{project} labels {number}", project=slug, number=number),
        unit=unit,
        adjacency="replace",
        filter="pure",
        epsilon_limit=epsilon_limit,
        delta_limit=0.0,
        actor=actor,
        reason=reason,
    )


def account_under(
    project: Project, settings: Mapping[str, Any], *, epsilon_limit: float, actor: AbstractBaseUser, reason: str
) -> BudgetAccount | None:
    """Return the account of the answers that a project has under settings: the one it has or had, else a new one."""
    unit = answers_unit(settings) if settings["oracle"] == Oracle.CROWD else None
    if unit is None:
        return None
    known = [account for account in earlier_accounts(project) if account.unit == unit]
    return (
        known[-1] if known else open_answers_account(project.slug, epsilon_limit, unit=unit, actor=actor, reason=reason)
    )


def earlier_limit(project: Project) -> float | None:
    known = earlier_accounts(project)
    return guarantee(known[-1]).epsilon_limit if known else None


def earlier_accounts(project: Project) -> list[BudgetAccount]:
    had = list(BudgetAccount.objects.filter(scope__startswith=f"project:{project.slug}:labels").order_by("pk"))
    return sorted(had, key=lambda account: account.pk == project.labels_account_id)
