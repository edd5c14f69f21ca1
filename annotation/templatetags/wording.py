"""Filters that tell stored messages in the language of the page, and names of classes."""

from django import template

from annotation.wording import class_name, localized

register = template.Library()
register.filter("localized", localized)
register.filter("class_name", class_name)
