"""Change of a project's oracle, arrival or preset."""

from collections.abc import Mapping
from typing import Any, Final

from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.choices.catalogue import CATALOGUE, KEYS, default_of
from annotation.choices.gates import other_gate_fields
from annotation.choices.presets import Preset
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
from annotation.selectors import is_charged
from privacy.choices import Kind

# Whoever manages a project says these of it, whatever kind it is.
OF_MANAGERS: Final = (Kind.CLASSES, Kind.LABELLING, Kind.BUDGET)
# What a kind of project decides all the same; name, question, classes, people, periods and limits stay as they are.
OF_ITS_KIND: Final = ("round_size", "overlap")


def hindrances(project: Project, *, oracle: str, arrival: str, preset: str) -> list[str]:
    if (project.oracle, project.arrival, project.preset) == (oracle, arrival, preset):
        return []
    if is_charged(project):
        return [_("Something was paid for: the guarantee that was given rests on who answers and how records come.")]
    found = []
    if GateRun.objects.filter(project=project).exists() or Query.objects.filter(project=project).exists():
        found.append(_("There are questions: what annotators may see of them was decided for this kind of project."))
    if uploads := _private_uploads(project):
        said = ngettext(
            "%(n)d upload of records or first examples was read for this kind of project: a stream takes no uploads, "
            "and a gate counts only what was uploaded for it. Open another project for the other kind.",
            "%(n)d uploads of records or first examples were read for this kind of project: a stream takes no uploads, "
            "and a gate counts only what was uploaded for it. Open another project for the other kind.",
            uploads,
        )
        found.append(said % {"n": uploads})
    if oracle == Oracle.CROWD and Record.objects.filter(dataset__project=project, metadata__isnull=False).exists():
        found.append(
            _(
                "An upload keeps ids or columns of its owner, and behind a gate nothing is kept. Open another project "
                "for the other kind."
            )
        )
    if RecordPost.objects.filter(project=project).exists():
        found.append(_("Records were posted: each has its slot in the stream, which no pool has."))
    if oracle == Oracle.CROWD and _somebody_may(project, Role.REVIEWER):
        found.append(
            _(
                "In front of a crowd nobody reviews but managers. Take the reviewers' roles away first and revoke "
                "their invitations."
            )
        )
    if project.oracle == Oracle.CROWD and oracle != Oracle.CROWD and _lets_strangers_in(project):
        found.append(
            _(
                "The annotators of a crowd are strangers, and experts see the records. Take the annotators' roles "
                "away first and revoke links and invitations; then let in whom you trust."
            )
        )
    return found


def settings_of_kind(project: Project, preset: Preset, unit: str) -> dict[str, Any]:
    declared = [name for name in CATALOGUE.parameters() if CATALOGUE.kind_of(name) not in OF_MANAGERS]
    names = dict.fromkeys((*OF_ITS_KIND, *declared))
    values = {name: preset.defaults.get(name, _where_unsaid(name)) for name in names}
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


def _where_unsaid(name: str) -> Any:
    return Project.absent[name] if name in Project.absent else default_of(name)


def broken_by_data(project: Project, wanted: Mapping[str, Any]) -> dict[str, str]:
    if wanted["data_kind"] != project.data_kind and Dataset.objects.filter(project=project, row_count__gt=0).exists():
        return {"data_kind": _("Records of another kind were read: this kind of project takes none like them.")}
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
