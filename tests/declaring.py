"""Choices that a test declares itself, in its own module and nowhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

from annotation.choices.catalogue import CATALOGUE
from annotation.models.configurations import KnownChoice
from annotation.projects.services.known_choices import note_choice
from privacy.choices import Choice


@contextmanager
def declaring(*choices: type[Choice]) -> Iterator[None]:
    """Declare them for a block, as their lines in a catalogue and `migrate` would."""
    for choice in choices:
        CATALOGUE.register(choice)
        note_choice(choice)
    yield
    for choice in choices:
        CATALOGUE.withdraw(choice)
        KnownChoice.objects.filter(name=choice.name).delete()


def fields_shown(page) -> dict[str, object]:
    """Return what the fields of a form's page hold, by their names."""
    return {bound.name: bound.value() for bound in page.context["fields"]}
