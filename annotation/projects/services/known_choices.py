"""Telling the database which choices are declared, so that its own rules know them."""

from typing import Any

from django.apps.registry import Apps

from annotation.choices.catalogue import CATALOGUE
from annotation.models.configurations import KnownChoice
from privacy.choices import Choice, Parameter


def note_choices(*, apps: Apps, **signal: Any) -> None:
    """Write a row for every declared choice; a name that is no longer declared keeps its row, as documents hold it.

    Every app is told of every migration, also of one that stops before this table was made.
    """
    try:
        apps.get_model("annotation", "KnownChoice")
    except LookupError:
        return
    for choice in CATALOGUE.all():
        note_choice(choice)


def note_choice(choice: type[Choice]) -> KnownChoice:
    """Write the row of one choice."""
    known, _ = KnownChoice.objects.update_or_create(
        kind=choice.kind.value,
        name=choice.name,
        defaults={
            "section": choice.kind.section,
            "key": choice.kind.key,
            "oracles": sorted(choice.sound.oracles),
            "arrivals": sorted(choice.sound.arrivals),
            "data_kinds": sorted(choice.sound.data_kinds),
            "parameters": {each.name: _known(each) for each in choice.parameters()},
            "stays": choice.stays,
            "facts": choice.facts(),
        },
    )
    return known


def _known(declared: Parameter) -> dict[str, Any]:
    """Return what the database knows of a parameter: its schema, and what it means beside the others."""
    order = {"no_more_than": declared.no_more_than} if declared.no_more_than else {}
    return {**declared.json_schema(), "charged": declared.charged, **order}
