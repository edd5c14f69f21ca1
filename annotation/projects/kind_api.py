"""REST routes of a project's kind: who is protected from whom, looked at with what follows, then chosen anew."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema

from annotation.choices.kinds import hindrances
from annotation.models import Arrival, Oracle, PrivacyUnit, Project, Role
from annotation.people.identity import person_of
from annotation.projects.api import ConfigurationOut, configuration_out
from annotation.projects.forms.kinds import KindForm
from annotation.projects.forms.wizard import arrival_of
from annotation.projects.services import kinds
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, SaidOut, as_code, checked, project_for, responses
from annotation.work.services.tokens import Scope

router = RoomRouter()


class KindIn(Schema):
    """Who answers, how records come, and whose presence is hidden."""

    oracle: Oracle
    arrival: Arrival
    privacy_unit: PrivacyUnit
    preset: str = Field(
        "", max_length=60, description="Whose values the other settings take where they cannot stay; any if empty."
    )
    labels_epsilon: float | None = Field(None, description="Limit of the answers' account that a crowd gets.")


class KindChangeOut(Answer, reads=Reads.MANAGED):
    """A setting that would change."""

    setting: str
    before: Any
    after: Any


class KindPreviewOut(Answer, reads=Reads.MANAGED):
    """What another kind would change, and why it cannot be chosen; `why_not` is empty where it can."""

    preset: str
    changes: list[KindChangeOut]
    why_not: list[str]
    why_not_as_code: list[SaidOut]


@router.post(
    "projects/{slug:slug}/kind/preview",
    response=KindPreviewOut,
    summary="What choosing another kind of project would change; nothing is stored",
    openapi_extra=responses(409),
)
def preview_kind(request: HttpRequest, slug: str, body: KindIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    chosen = _chosen(project, body)
    preset = chosen["found"]
    proposal = kinds.propose_kind(
        project=project, preset=preset, unit=chosen["privacy_unit"], labels_epsilon=chosen.get("labels_epsilon")
    )
    stuck = hindrances(project, oracle=preset.oracle, arrival=arrival_of(preset), preset=preset.key)
    wrong = [*stuck, *proposal.broken.values()]
    standing = project.settings
    return {
        "preset": preset.key,
        "changes": [
            {"setting": name, "before": standing.get(name), "after": after} for name, after in proposal.changes.items()
        ],
        "why_not": [str(rule) for rule in wrong],
        "why_not_as_code": [as_code(rule) for rule in wrong],
    }


@router.write(
    "projects/{slug:slug}/kind",
    response=ConfigurationOut,
    summary="Choose another kind of project, while nothing rests on the present one",
)
def change_kind(request: HttpRequest, slug: str, body: KindIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    chosen = _chosen(project, body)
    kinds.change_kind(
        project=project,
        preset=chosen["found"].key,
        unit=chosen["privacy_unit"],
        labels_epsilon=chosen.get("labels_epsilon"),
        actor=person_of(request),
    )
    return configuration_out(Project.objects.get(pk=project.pk))


def _chosen(project: Project, body: KindIn) -> dict[str, Any]:
    """Return what was chosen as the page's form understands it, or refuse with its rules."""
    return checked(KindForm(body.dict(), project=project))
