"""Template tag for the gates at the price of a project's own."""

from django import template

from annotation.gates.comparison import gates_like

register = template.Library()
register.simple_tag(gates_like)
