"""The next step of a project, the same wherever it stands."""

from typing import Any

from django import template
from django.template.context import RequestContext

from annotation.models import Project
from learner.dashboard.guidance import next_step_context

register = template.Library()


@register.inclusion_tag("learner/_next_step.html", takes_context=True)
def next_step(context: RequestContext, project: Project) -> dict[str, Any]:
    return next_step_context(project, context["request"].user) | {"csrf_token": context.get("csrf_token")}
