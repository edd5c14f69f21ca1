"""The forecast of a project, the same on every page."""

from typing import Any

from django import template
from django.template.context import RequestContext

from annotation.models import Project
from learner.access import may_manage
from learner.simulation.forecast import forecast_of

register = template.Library()


@register.inclusion_tag("learner/simulation/_forecast.html", takes_context=True)
def forecast(context: RequestContext, project: Project) -> dict[str, Any]:
    """Show managers what a project still does, and everybody with its models how accurate they are expected to be."""
    return {
        "project": project,
        "forecast": forecast_of(project),
        "may_plan": may_manage(context["request"], project),
        "alone": True,
        "csrf_token": context.get("csrf_token"),
    }
