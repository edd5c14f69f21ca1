"""What services say, in the language of the page."""

from django import template

from annotation.wording import localized

register = template.Library()
register.filter("localized", localized)
