"""The forecast of a project, the same on every page."""

from typing import Any

from django import template
from django.template.context import RequestContext

from annotation.models import Project
from learner.access import may_manage
from learner.simulation.forecast import forecast_of, has_features

register = template.Library()


@register.inclusion_tag("learner/simulation/_forecast.html", takes_context=True)
def forecast(context: RequestContext, project: Project, *, short: bool = False) -> dict[str, Any]:
    """Show managers what a project still does, and everybody with its models how accurate they are expected to be."""
    found = forecast_of(project) if has_features(project) else None
    return {
        "project": project,
        "forecast": found,
        "points": found.course.points[-1:] if found and short else (),
        "may_plan": may_manage(context["request"], project),
        "alone": not short,
        "short": short,
        "csrf_token": context.get("csrf_token"),
    }
