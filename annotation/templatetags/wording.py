"""What services say, in the language of the page."""

from django import template

from annotation.wording import told

register = template.Library()
register.filter("told", told)
