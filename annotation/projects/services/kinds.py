"""Change of who is protected from whom, while nothing rests on the choice that a project was opened with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.choices import services
from annotation.choices.catalogue import CATALOGUE, KEYS, default_of
from annotation.choices.gates import other_gate_fields, own_gate_parameters, run_event
from annotation.choices.planned_settings import planned_settings
from annotation.choices.presets import PRESETS, Preset, broken_rules
from annotation.data.services import streams
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.models import (
    STREAM_JOB,
    Arrival,
    Dataset,
    DatasetRole,
    DatasetState,
    GateRun,
    Membership,
    Oracle,
    Project,
    Query,
    Record,
    RecordPost,
    Role,
)
from annotation.models.joining import CrowdLink, Invitation
from annotation.models.people import GroupRole
from annotation.projects.services import answers_accounts, configuring
from annotation.selectors import is_charged
from annotation.work.services import jobs
from privacy.choices import Kind
from privacy.ledger.selectors import quota_of
from privacy.wording import as_message, joined_messages, joined_rules

# Whoever manages a project says these of it, whatever kind it is.
OF_MANAGERS: Final = (Kind.CLASSES, Kind.LABELLING, Kind.BUDGET)
# What a kind of project decides all the same; name, question, classes, people, periods and limits stay as they are.
OF_ITS_KIND: Final = ("round_size", "overlap")


def hindrances(project: Project, *, oracle: str, arrival: str, preset: str) -> list[str]:
    if (project.oracle, project.arrival, project.preset) == (oracle, arrival, preset):
        return []
    if is_charged(project):
        return [_("Something was charged, so settings of the guarantee are fixed.")]
    found = []
    if GateRun.objects.filter(project=project).exists() or Query.objects.filter(project=project).exists():
        found.append(_("There are questions of this kind of project."))
    if uploads := _private_uploads(project):
        said = ngettext(
            "%(n)d upload was read for this kind of project. Open another project for the other kind.",
            "%(n)d uploads were read for this kind of project. Open another project for the other kind.",
            uploads,
        )
        found.append(said % {"n": uploads})
    if oracle == Oracle.CROWD and Record.objects.filter(dataset__project=project, metadata__isnull=False).exists():
        found.append(_("An upload keeps ids or columns, which a gate cannot."))
    if RecordPost.objects.filter(project=project).exists():
        found.append(_("The project holds records of another kind."))
    if oracle == Oracle.CROWD and _somebody_may(project, Role.REVIEWER):
        found.append(_("Remove roles, links and invitations of the other kind first."))
    if project.oracle == Oracle.CROWD and oracle != Oracle.CROWD and _lets_strangers_in(project):
        found.append(_("Remove roles, links and invitations of the other kind first."))
    return found


def settings_of_kind(project: Project, preset: Preset, unit: str) -> dict[str, Any]:
    declared = [name for name in CATALOGUE.parameters() if CATALOGUE.kind_of(name) not in OF_MANAGERS]
    names = dict.fromkeys((*OF_ITS_KIND, *declared))
    unsaid = {name: Project.absent[name] if name in Project.absent else default_of(name) for name in names}
    values = {name: preset.defaults.get(name, unsaid[name]) for name in names}
    values |= {key: preset.defaults.get(key, Project.absent.get(key, "")) for key in KEYS}
    if preset.oracle == Oracle.CROWD:
        values |= dict.fromkeys(other_gate_fields(values["gate_kind"]))
    kind = project.data_kind if project.data_kind in preset.data_kinds else "text"
    if kind != project.data_kind:
        values |= {"columns": [], "image_height": None, "image_width": None}
    return values | {
        "preset": preset.key,
        "oracle": preset.oracle,
        "arrival": preset.defaults.get("arrival", Arrival.POOL.value),
        "privacy_unit": unit,
        "data_kind": kind,
    }


def broken_by_data(project: Project, wanted: Mapping[str, Any]) -> dict[str, str]:
    if wanted["data_kind"] != project.data_kind and Dataset.objects.filter(project=project, row_count__gt=0).exists():
        return {"data_kind": _("The project holds records of another kind.")}
    return {}


def _private_uploads(project: Project) -> int:
    private = Dataset.objects.filter(project=project).exclude(role=DatasetRole.PUBLIC_TEST)
    return private.exclude(state=DatasetState.REFUSED).exclude(job__kind=STREAM_JOB).count()


def _lets_strangers_in(project: Project) -> bool:
    links = CrowdLink.objects.filter(project=project, revoked_at=None, expires_at__gt=Now())
    return links.exists() or _somebody_may(project, Role.ANNOTATOR)


def _somebody_may(project: Project, role: Role) -> bool:
    invited = Invitation.objects.filter(project=project, revoked_at=None, expires_at__gt=Now())
    return (
        Membership.objects.filter(project=project, role=role).exists()
        or GroupRole.objects.filter(project=project, role=role).exists()
        or invited.filter(role=role, uses__lt=F("maximum_uses")).exists()
    )


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another kind for a project: what would change and which rules that would break, by field; nothing is stored."""

    changes: Mapping[str, Any]
    broken: Mapping[str, str]


def propose_kind(*, project: Project, preset: Preset, unit: str, labels_epsilon: float | None) -> Proposal:
    """Return what another kind would change, limits excepted: these stay, and a kind they cannot pay for is refused."""
    wanted = settings_of_kind(project, preset, unit)
    limits = configuring.limits_of(project)
    if preset.oracle == Oracle.CROWD:
        limits["labels_epsilon"] = _labels_limit(project, preset, labels_epsilon)
    shared = quota_of(project.pool_account) is not None
    wanted |= planned_settings(project.settings | limits | wanted, shared_limit=shared)
    broken = _blame_limits(broken_rules(project.settings | limits | wanted), preset, limits)
    broken |= broken_by_data(project, wanted)
    standing = project.settings
    return Proposal(
        {name: value for name, value in wanted.items() if standing.get(name, default_of(name)) != value}, broken
    )


def _blame_limits(broken: Mapping[str, str], preset: Preset, limits: Mapping[str, Any]) -> dict[str, str]:
    """Say of a gate that the limits cannot pay for that they have to be raised: nobody chooses its numbers here."""
    unpaid = {*own_gate_parameters(), "pool_epsilon", "pool_delta"}
    if preset.oracle != Oracle.CROWD or not any(name in broken for name in unpaid):
        return dict(broken)
    cost = run_event(preset.defaults).cost()
    if cost.epsilon <= limits["pool_epsilon"] and cost.delta <= limits["pool_delta"]:
        return dict(broken)
    rule = as_message(
        "An upload through this gate costs epsilon {epsilon:.2g}, delta {delta:.2g}; the limits are "
        "{most_epsilon:.2g} and {most_delta:.2g}. Raise them first.",
        epsilon=cost.epsilon,
        delta=cost.delta,
        most_epsilon=limits["pool_epsilon"],
        most_delta=limits["pool_delta"],
    )
    return {name: reason for name, reason in broken.items() if name not in unpaid} | {"pool_delta": rule}


def change_kind(
    *, project: Project, preset: str, unit: str, labels_epsilon: float | None = None, actor: AbstractBaseUser
) -> Mapping[str, Any]:
    chosen = PRESETS[preset]
    try:
        with transaction.atomic():
            # The stream first, as whoever posts records does; then whoever stores anything of the project waits.
            stream = Dataset.objects.select_for_update(of=("self",)).filter(project=project, job__kind=STREAM_JOB)
            list(stream)
            locked = Project.objects.select_for_update().get(pk=project.pk)
            arrival = chosen.defaults.get("arrival", Arrival.POOL.value)
            if stuck := hindrances(locked, oracle=chosen.oracle, arrival=arrival, preset=preset):
                raise ConfigurationFrozen(joined_messages(" ", stuck))
            proposal = propose_kind(project=locked, preset=chosen, unit=unit, labels_epsilon=labels_epsilon)
            if proposal.broken:
                raise InvalidConfiguration(joined_rules(proposal.broken))
            _store(locked, chosen, proposal.changes, labels_epsilon, actor)
    except IntegrityError as error:
        raise ConfigurationFrozen("The project holds records of another kind.") from error
    return proposal.changes


def _store(
    project: Project, preset: Preset, changes: Mapping[str, Any], labels_epsilon: float | None, actor: AbstractBaseUser
) -> None:
    accounts: dict[str, Any] = {}
    settings = {**project.settings, **configuring.limits_of(project), **changes}
    kind = configuring.kind_of_account(project, settings)
    if "privacy_unit" in changes or kind != project.pool_account.filter:
        accounts["pool_account"] = configuring.account_of_terms(project, settings["privacy_unit"], kind, actor)
    labels = answers_accounts.account_under(
        project,
        {**project.settings, **changes},
        epsilon_limit=_labels_limit(project, preset, labels_epsilon),
        actor=actor,
        reason=as_message("answers are protected since a crowd gives them"),
    )
    if labels != project.labels_account:
        accounts["labels_account"] = labels
    if "arrival" in changes and project.arrival == Arrival.STREAM:
        _close_stream(project)
    if changes:
        project.save(update_fields=services.set_settings(project=project, changes={**changes, **accounts}, actor=actor))
        if "arrival" in changes and project.arrival == Arrival.STREAM:
            streams.open_stream(project=project)
        jobs.send_project_changed(project.pk)


def _close_stream(project: Project) -> None:
    for dataset in Dataset.objects.filter(project=project, job__kind=STREAM_JOB, row_count=0):
        job = dataset.job
        dataset.delete()
        job.delete()


def _labels_limit(project: Project, preset: Preset, labels_epsilon: float | None) -> float:
    """Return the limit of the answers' account; that of an earlier one stays, and trusted presets have none."""
    limit = answers_accounts.earlier_limit(project) or labels_epsilon or preset.defaults.get("labels_epsilon", 0.0)
    return float(limit)
