"""How many of a thing, as a sentence for people has it."""

from privacy.wording import Message, as_plural_message


def class_words(number: int) -> Message:
    """Return a number of classes in words."""
    return as_plural_message("{n} class", "{n} classes", n=number)


def column_words(number: int) -> Message:
    """Return a number of columns in words."""
    return as_plural_message("{n} column", "{n} columns", n=number)


def model_words(number: int) -> Message:
    """Return a number of models in words."""
    return as_plural_message("one model", "{n} models", n=number)
