"""REST routes of studies on a crowd platform: where they stand, and what they cost."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from annotation.crowds import selectors
from annotation.models import Role
from annotation.people.services.tokens import Scope
from annotation.rest.base import project_for, require_scope
from annotation.rest.responses import SaidOut, as_code

router = Router()


class StudyOut(Schema):
    """A study with its money, in the project's currency; amounts are texts, so that nobody rounds them."""

    study: int
    name: str
    state: str = Field(description="In the platform's words; empty until it knows of it.")
    wanted: str = Field(description="What the platform is being asked for; empty where nothing is.")
    places: int
    places_taken: int
    approved: int
    minutes: int
    pay_per_place: str
    pay_per_hour: str
    cost_so_far: str = Field(description="With the fee.")
    promised_at_most: str = Field(description="With the fee.")
    fault: str
    fault_as_code: SaidOut | None
    followed_at: datetime | None


@router.get("projects/{slug:slug}/studies", response=list[StudyOut], summary="The project's studies on Prolific")
def list_studies(request: HttpRequest, slug: str) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    return [_study(sheet) for sheet in selectors.studies_of(project_for(request, slug, Role.MANAGER))]


def _study(sheet: selectors.StudySheet) -> dict[str, Any]:
    study = sheet.study
    return {
        "study": study.pk,
        "name": study.name,
        "state": study.state,
        "wanted": study.wanted,
        "places": study.places,
        "places_taken": study.places_taken,
        "approved": study.approved,
        "minutes": study.minutes,
        "pay_per_place": str(sheet.per_place),
        "pay_per_hour": str(sheet.per_hour),
        "cost_so_far": str(sheet.so_far),
        "promised_at_most": str(sheet.promised),
        "fault": str(study.fault),
        "fault_as_code": as_code(study.fault),
        "followed_at": study.followed_at,
    }
