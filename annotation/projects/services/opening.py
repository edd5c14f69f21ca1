"""Opening projects with their accounts, describing, pausing and comparing them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.utils.text import slugify

from annotation.budget import services as memberships
from annotation.choices import services
from annotation.choices.account_kind import DELTA_SHARE, filter_of
from annotation.choices.catalogue import chosen_of
from annotation.choices.gates import SHARED_GATE_FIELDS, own_gate_parameters
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.several import ChooseSeveral
from annotation.choices.planned_settings import planned_settings
from annotation.choices.policies import PerRound
from annotation.choices.presets import PRESETS, broken_rules, epsilon_of_kind, fitting_estimator
from annotation.choices.randomizers import answers_unit
from annotation.data.services import streams
from annotation.errors import refuse_broken
from annotation.models import Arrival, Features, Oracle, Project, ProjectState, Role
from annotation.people.services.members import add_member
from annotation.projects.services import answers_accounts
from annotation.questions.services.guidelines import bring_guideline_pictures
from annotation.work.services import looks
from privacy.choices import Kind
from privacy.ledger import services as ledger
from privacy.ledger.models import BudgetAccount
from privacy.wording import as_message

ACCOUNT_FIELDS = ("pool_epsilon", "pool_delta", "labels_epsilon")


def create_project(
    *,
    name: str,
    preset: str,
    owner: User,
    data_kind: str,
    classes: list[str],
    question: str,
    population: BudgetAccount | None = None,
    records_per_person: int | None = None,
    **settings: Any,
) -> Project:
    chosen = PRESETS[preset]
    values: dict[str, Any] = {
        "labels_epsilon": None,
        "gate_kind": "k_anonymity",
        "features": Features.STANDARD.value,
        "question_kind": ChooseOne.name,
        "update_policy": PerRound.name,
        **dict.fromkeys(SHARED_GATE_FIELDS),
        **{name: declared.default for name, declared in own_gate_parameters().items()},
        **chosen.defaults,
        **settings,
        "oracle": chosen.oracle,
        "data_kind": data_kind,
        "classes": classes,
    }
    if values["question_kind"] == ChooseSeveral.name:
        values.setdefault("labels_per_record", ChooseSeveral.fitting(len(classes)))
    if values["estimator"] == chosen.defaults["estimator"]:
        values["estimator"] = fitting_estimator(chosen, values)
    trained = chosen_of(Kind.ESTIMATOR, values)
    if trained is not None and "training_delta" not in {*settings, *(each.name for each in trained.parameters())}:
        # Whoever chooses one without a delta gives that of the preset's estimator up.
        values["training_delta"] = 0.0
    values |= _plan(values, settings, shared_limit=population is not None)
    if "gate_epsilon" not in settings and values["gate_kind"] != chosen.defaults.get("gate_kind", values["gate_kind"]):
        values["gate_epsilon"] = epsilon_of_kind(chosen, values)
    refuse_broken(broken_rules(values))
    kind = filter_of(values)
    if chosen.oracle == Oracle.TRUSTED:
        values["gate_kind"] = ""
    limits = {field: values.pop(field) for field in ACCOUNT_FIELDS}
    with transaction.atomic():
        slug = _free_slug(name)
        pool = ledger.open_account(
            scope=f"project:{slug}:pool",
            label=as_message("{project} pool", project=slug),
            unit=values["privacy_unit"],
            filter=kind,
            epsilon_limit=limits["pool_epsilon"],
            delta_limit=limits["pool_delta"],
            delta_share=DELTA_SHARE if kind == "zcdp" else None,
            actor=owner,
            reason=as_message("project opened"),
        )
        labels = None
        if chosen.oracle == "crowd":
            unit = answers_unit(values)
            if unit is not None:
                labels = answers_accounts.open_answers_account(
                    slug, limits["labels_epsilon"], unit=unit, actor=owner, reason=as_message("project opened")
                )
        columns = {field: value for field, value in values.items() if not services.in_document(field)}
        described = {"slug": slug, "name": name, "preset": preset, "question": question, "created_by": owner}
        project = services.store_project(
            settings={**columns, **described, "pool_account": pool, "labels_account": labels},
            document=services.document_of(values),
        )
        add_member(project=project, user=owner, role=Role.MANAGER)
        bring_guideline_pictures(project=project, by=owner)
        if project.arrival == Arrival.STREAM:
            streams.open_stream(project=project)
        if population is not None:
            memberships.add_project(
                population=population, project=project, records_per_person=records_per_person, actor=owner
            )
        looks.look_at([project.pk])
    return project


def _plan(values: Mapping[str, Any], said: Mapping[str, Any], *, shared_limit: bool) -> dict[str, Any]:
    """Return what is planned where nobody said anything else than what is planned under a limit of its own."""
    alone, planned = planned_settings(values), planned_settings(values, shared_limit=shared_limit)
    return {name: planned[name] for name, value in alone.items() if said.get(name, value) == value}


@contextmanager
def rehearsed_project(*, preset: str, owner: User, **settings: Any) -> Iterator[Project]:
    """Open a project until the end of the block and take all of it back then: what is asked of it, it would answer so.

    Nothing of it is ever committed, so nobody else sees it and no task is sent.
    """
    with transaction.atomic():
        yield create_project(preset=preset, owner=owner, **settings)
        transaction.set_rollback(True)


def _free_slug(name: str) -> str:
    """Return a slug nobody uses; two people opening the same name at once are told apart by the unique index."""
    base = slugify(name)[:50] or "project"
    # The address of a project named like the page that opens one would be that page.
    taken = {"new", *Project.objects.filter(slug__startswith=base).values_list("slug", flat=True)}
    return next(slug for n in range(1, len(taken) + 3) if (slug := base if n == 1 else f"{base}-{n}") not in taken)


def set_description(*, project: Project, actor: AbstractBaseUser | None = None, **fields: Any) -> Project:
    unknown = set(fields) - {"name", "question", "lease_seconds"}
    if unknown:
        raise ValueError(f"no such fields: {sorted(unknown)}")
    return services.change_settings(project=project, changes=fields, kinds={Kind.LABELLING}, actor=actor)


def pause_project(*, project: Project) -> Project:
    return _set_state(project, ProjectState.PAUSED)


def resume_project(*, project: Project) -> Project:
    return _set_state(project, ProjectState.ACTIVE)


def _set_state(project: Project, state: str) -> Project:
    project.state = state
    project.save(update_fields=["state"])
    looks.look_at([project.pk])
    return project
