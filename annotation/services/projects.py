"""Opening projects with their accounts, and who takes part in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils.text import slugify

from annotation.errors import InvalidConfiguration
from annotation.models import (
    Arrival,
    Assignment,
    AssignmentState,
    Membership,
    Oracle,
    Project,
    ProjectState,
    Role,
    Selection,
)
from annotation.presets import GATE_FIELDS, PRESETS, broken_rules
from annotation.selection_rules import GAUSSIAN, POOL_ESTIMATORS
from annotation.services import groups, jobs, leases, queue, streams
from privacy.models import BudgetAccount
from privacy.services import ledger
from privacy.wording import say

ALL_GATE_FIELDS = ("gate_epsilon", "texts_per_contributor", *GATE_FIELDS["k_anonymity"], *GATE_FIELDS["threshold"])
LABELLING_FIELDS = (
    "confirm_answers",
    "skips_to_set_aside",
    "answers_per_person",
    "answers_per_day",
    "encounter_limit",
    "quiet_from",
    "quiet_until",
)
QUALITY_FIELDS = {
    "gold_share",
    "gold_minimum",
    "gold_warn_below",
    "gold_pause_below",
    "overlap_limit",
    "aggregation",
}
# Whoever chooses one of these gives the delta of the preset's estimator up.
WITHOUT_DELTA = tuple(name for name in POOL_ESTIMATORS if name not in GAUSSIAN)
ACCOUNT_FIELDS = ("pool_epsilon", "pool_delta", "labels_epsilon")


def create_project(
    *, name: str, preset: str, owner: User, data_kind: str, classes: list[str], question: str, **settings: Any
) -> Project:
    """Open a project and its accounts from a preset; `settings` override the preset's fields one by one.

    Raises `InvalidConfiguration` naming each field and the rule it breaks; nothing is stored then.
    """
    chosen = PRESETS[preset]
    values: dict[str, Any] = {
        "labels_epsilon": None,
        "gate_kind": "k_anonymity",
        **dict.fromkeys(ALL_GATE_FIELDS),
        **chosen.defaults,
        **settings,
        "oracle": chosen.oracle,
        "data_kind": data_kind,
        "classes": classes,
    }
    if values.get("estimator") in WITHOUT_DELTA and "training_delta" not in settings:
        values["training_delta"] = 0.0
    if broken := broken_rules(values):
        raise InvalidConfiguration(
            "; ".join(say("{field}: {reason}", field=field, reason=rule) for field, rule in broken.items())
        )
    kept = ("gate_epsilon", "texts_per_contributor", *GATE_FIELDS[values["gate_kind"]])
    values |= dict.fromkeys(ALL_GATE_FIELDS if chosen.oracle == "trusted" else set(ALL_GATE_FIELDS) - set(kept))
    limits = {field: values.pop(field) for field in ACCOUNT_FIELDS}
    with transaction.atomic():
        slug = _free_slug(name)
        pool = _open_account(slug, "pool", values["privacy_unit"], limits["pool_epsilon"], limits["pool_delta"], owner)
        labels = None
        if chosen.oracle == "crowd":
            labels = _open_account(slug, "labels", "record", limits["labels_epsilon"], 0.0, owner)
        project = Project.objects.create(
            slug=slug,
            name=name,
            preset=preset,
            question=question,
            created_by=owner,
            pool_account=pool,
            labels_account=labels,
            **values,
        )
        add_member(project=project, user=owner, role=Role.MANAGER)
        if project.arrival == Arrival.STREAM:
            streams.open_stream(project=project)
    return project


@contextmanager
def rehearsed_project(*, preset: str, owner: User, **settings: Any) -> Iterator[Project]:
    """Open a project until the end of the block and take all of it back then: what is asked of it, it would answer so.

    Nothing of it is ever committed, so nobody else sees it and no task is sent.
    """
    with transaction.atomic():
        yield create_project(preset=preset, owner=owner, **settings)
        transaction.set_rollback(True)


def _open_account(slug: str, part: str, unit: str, epsilon: float, delta: float, owner: User) -> BudgetAccount:
    return ledger.open_account(
        scope=f"project:{slug}:{part}",
        label=f"{slug} {part}",
        unit=unit,
        filter="pure",
        epsilon_limit=epsilon,
        delta_limit=delta,
        actor=owner,
        reason=say("project opened"),
    )


def _free_slug(name: str) -> str:
    """Return a slug nobody uses; two people opening the same name at once are told apart by the unique index."""
    base = slugify(name)[:50] or "project"
    # The address of a project named like the page that opens one would be that page.
    taken = {"new", *Project.objects.filter(slug__startswith=base).values_list("slug", flat=True)}
    return next(slug for n in range(1, len(taken) + 3) if (slug := base if n == 1 else f"{base}-{n}") not in taken)


def add_member(*, project: Project, user: User, role: str) -> Membership:
    """Give a person a role, by themselves even where a group gives it, too; giving it twice changes nothing."""
    membership, _ = Membership.objects.update_or_create(
        project=project, user=user, role=role, defaults={"is_direct": True}
    )
    return membership


def remove_member(*, project: Project, user: User, role: str) -> None:
    """Take a role from a person, unless a group gives it, too; what they labelled stays, what they hold goes back."""
    own = Membership.objects.filter(project=project, user=user, role=role)
    with transaction.atomic():
        # Locked first: a group that gives or takes the role at this moment is seen, or waits.
        locked = own.select_for_update().first()
        if locked is None:
            return
        if own.filter(groups.by_group()).exists():
            own.update(is_direct=False)
            return
        locked.delete()
        if role == Role.ANNOTATOR:
            held = Assignment.objects.filter(project=project, annotator=user, state=AssignmentState.LEASED)
            leases.give_back(held)


def set_label_budget(
    *,
    project: Project,
    labels_limit: int | None,
    money_limit: Decimal | None,
    price_per_label: Decimal | None,
    currency: str,
) -> Project:
    """Say how many answers may be asked for, and at what price; a limit under what was asked starts no new round."""
    if project.selection == Selection.SECRET_SAMPLE and not (labels_limit is None and money_limit is None):
        raise InvalidConfiguration("labels_limit: how many a secret sample asks is secret, and a limit would tell.")
    if money_limit is not None and not price_per_label:
        raise InvalidConfiguration("price_per_label: a limit in money needs the price of an answer.")
    if price_per_label is not None and price_per_label <= 0:
        raise InvalidConfiguration("price_per_label: must be above 0.")
    project.labels_limit, project.money_limit = labels_limit, money_limit
    project.price_per_label, project.currency = price_per_label, currency
    with transaction.atomic():
        project.save(update_fields=["labels_limit", "money_limit", "price_per_label", "currency"])
        jobs.send_project_changed(project.pk)
    return project


def set_labelling(*, project: Project, **settings: Any) -> Project:
    """Say how questions are handed out and answered; of `LABELLING_FIELDS`, those that change."""
    assert set(settings) <= set(LABELLING_FIELDS)
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        newly_limited = settings.get("encounter_limit") is not None and locked.encounter_limit is None
        for field, value in settings.items():
            setattr(locked, field, value)
        locked.save(update_fields=list(settings))
    # After the commit: from now on every claim notes by itself whom it meets.
    if newly_limited:
        _note_encounters(locked)
    return locked


def _note_encounters(project: Project) -> None:
    """Note whom each person has met so far, since nothing is noted while a project has no limit."""
    if project.oracle != Oracle.CROWD:
        with connection.cursor() as cursor:
            cursor.execute(queue.NOTE_ALL_ENCOUNTERS, {"project": project.pk})


def set_quality(*, project: Project, **fields: Any) -> Project:
    """Set how answers are checked and compared."""
    unknown = set(fields) - QUALITY_FIELDS
    if unknown:
        raise ValueError(f"no such fields: {sorted(unknown)}")
    for name, value in fields.items():
        setattr(project, name, value)
    project.save(update_fields=[*fields])
    return project


def set_description(*, project: Project, **fields: Any) -> Project:
    """Set the name, the question or the time for one; none of them is part of a guarantee."""
    unknown = set(fields) - {"name", "question", "lease_seconds"}
    if unknown:
        raise ValueError(f"no such fields: {sorted(unknown)}")
    for name, value in fields.items():
        setattr(project, name, value)
    project.save(update_fields=[*fields])
    return project


def compare_with(*, project: Project, other: Project | None) -> Project:
    """Show the releases of a project that asks at random beside this one's; None shows this one alone."""
    project.compared_with = other
    project.save(update_fields=["compared_with"])
    return project


def pause_project(*, project: Project) -> Project:
    """Stop handing out questions and starting rounds."""
    return _set_state(project, ProjectState.PAUSED)


def resume_project(*, project: Project) -> Project:
    """Hand out questions again."""
    return _set_state(project, ProjectState.ACTIVE)


def _set_state(project: Project, state: str) -> Project:
    project.state = state
    project.save(update_fields=["state"])
    return project
