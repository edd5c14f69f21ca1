"""Charges that come by themselves once a project is set going."""

from typing import Any

from django import template

from annotation.models import Arrival, Project
from learner.pools import prices, selectors

register = template.Library()


@register.inclusion_tag("learner/_coming_charges.html")
def coming_charges(project: Project) -> dict[str, Any]:
    if project.arrival == Arrival.STREAM:
        return {"account": None}
    return {
        "account": selectors.training_account(project),
        "training": selectors.training_price(project),
        "round": prices.round_price(project, before_upload=True),
    }
