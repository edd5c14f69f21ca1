"""What a manager does next in a young project, until the first question stands on an annotator's page."""

from typing import Any

from django import template
from django.template.context import RequestContext

from annotation.models import Arrival, DatasetRole, DatasetState, Membership, Project, Query, Role
from annotation.models import Label as Answer

register = template.Library()


@register.inclusion_tag("annotation/_next_step.html", takes_context=True)
def next_step(context: RequestContext, project: Project) -> dict[str, Any]:
    """Show the next step; nothing any more once somebody has answered."""
    request = context["request"]
    return {"project": project, "user": request.user, "csrf_token": context.get("csrf_token")} | _step(
        project, request.user.pk
    )


def _step(project: Project, user_id: int) -> dict[str, Any]:
    members = Membership.objects.filter(project=project, role=Role.ANNOTATOR)
    if project.arrival == Arrival.STREAM or Answer.objects.filter(query__project=project).exists():
        return {"step": ""}
    pools = project.datasets.filter(role=DatasetRole.POOL).exclude(state=DatasetState.REFUSED)
    if not pools.exists():
        return {"step": "upload"}
    if not members.exists():
        return {"step": "people"}
    if not Query.objects.filter(project=project, state="open").exists():
        return {"step": "wait"}
    return {"step": "label" if members.filter(user=user_id).exists() else "tell"}
