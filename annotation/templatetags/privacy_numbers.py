"""Template filters for epsilon and delta."""

from django import template
from django.utils.formats import number_format

from annotation.statement.amounts import delta_words, epsilon_left_words, epsilon_words

register = template.Library()
register.filter("epsilon", epsilon_words)
register.filter("epsilon_left", epsilon_left_words)
register.filter("delta", delta_words)


@register.filter
def percent(share: float) -> str:
    """Write a share as a percentage with one decimal, rounded."""
    # As text, because Django cuts the digits of a number off.
    return f"{number_format(f'{100 * share:.1f}')}\N{NO-BREAK SPACE}%"
