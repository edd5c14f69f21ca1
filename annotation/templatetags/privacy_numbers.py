"""Template filters for epsilon and delta."""

from django import template
from django.utils.formats import number_format
from django.utils.html import format_html

from annotation.budget.words import delta_words, epsilon_left_words, epsilon_words, exact_words
from annotation.choices.measures import measure_of

register = template.Library()
register.filter("epsilon", epsilon_words)
register.filter("epsilon_left", epsilon_left_words)
register.filter("delta", delta_words)
register.filter("exact", exact_words)
register.filter("measure", measure_of)


@register.filter
def unbroken(number: str) -> str:
    """Keep a number such as 5.0e-6 on one line without adding a character that copying would take along."""
    return format_html('<span class="whole">{}</span>', number) if "e-" in number else number


@register.filter
def percent(share: float) -> str:
    # As text, because Django cuts the digits of a number off.
    return f"{number_format(f'{100 * share:.1f}')}\N{NO-BREAK SPACE}%"
