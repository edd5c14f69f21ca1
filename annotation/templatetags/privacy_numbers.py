"""Template filters for epsilon and delta."""

from django import template

from annotation.amounts import delta_words, epsilon_left_words, epsilon_words

register = template.Library()
register.filter("epsilon", epsilon_words)
register.filter("epsilon_left", epsilon_left_words)
register.filter("delta", delta_words)
