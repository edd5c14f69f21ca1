"""A private labelled upload that starts the first model, and the account of its own that pays for it."""

import math

from django.contrib.auth.models import AbstractBaseUser

from annotation.choices.label_types.learning import training_delta, training_epsilon
from annotation.errors import InvalidUpload
from annotation.models import Arrival, Dataset, DatasetRole, DatasetState, Project
from privacy.ledger import populations
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.wording import as_message, in_english

MOST_EPSILON = 100_000.0


def check_start(project: Project, epsilon: float | None) -> float:
    """Return the limit of the start's account once the project may have such a start; names the field and the rule."""
    if project.arrival == Arrival.STREAM:
        raise InvalidUpload(in_english("role: this project takes no private start"))
    least = _training_of(project)[0]
    if least is None:
        raise InvalidUpload(in_english("role: this project takes no private start"))
    if epsilon is None or not math.isfinite(epsilon) or epsilon > MOST_EPSILON:
        raise InvalidUpload(
            as_message("start_epsilon: must be a number from {least:g} to {most:g}", least=least, most=MOST_EPSILON)
        )
    if epsilon < least:
        raise InvalidUpload(
            as_message("start_epsilon: is too small for the training, which costs {least:g}", least=least)
        )
    return epsilon


def start_delta(project: Project, epsilon: float) -> float:
    each, delta = _training_of(project)
    return 0.0 if each is None else min(int(epsilon / each) * delta, 0.5)


def _training_of(project: Project) -> tuple[float | None, float]:
    return training_epsilon(project.settings), training_delta(project.settings)


def open_start_account(project: Project, epsilon: float, *, actor: AbstractBaseUser | None) -> BudgetAccount:
    # Two uploads at once wait for one another here.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    starts = Dataset.objects.filter(project=project, role=DatasetRole.CHARGED_START)
    if starts.exclude(state=DatasetState.REFUSED).exists():
        raise InvalidUpload("role: the project already has a private start")
    number = starts.count() + 1
    opened = ledger.open_account(
        scope=f"project:{project.slug}:start:{number}",
        label=as_message("{project} start {number}", project=project.slug, number=number),
        unit="record",
        filter="pure",
        epsilon_limit=epsilon,
        delta_limit=start_delta(project, epsilon),
        actor=actor or "import_dataset",
        reason=as_message("private examples that start the first model"),
    )
    populations.follow(opened, like=project.pool_account, actor=actor or "import_dataset")
    return opened
