"""Telling the database which choices are declared, so that its own rules know them."""

from typing import Any

from django.apps.registry import Apps

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.gates import GateChoice, own_parameters
from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.learning import LearnsLabels
from annotation.choices.policies import PolicyChoice
from annotation.choices.randomizers import RandomizerChoice
from annotation.choices.selections import AsksInBlocks, SelectionChoice
from annotation.models.configurations import KnownChoice
from privacy.choices import Choice, Parameter


def note_choices(*, apps: Apps, **signal: Any) -> None:
    """Write a row for every declared choice; a name that is no longer declared keeps its row, as documents hold it."""
    try:
        apps.get_model("annotation", "KnownChoice")
    except LookupError:
        return
    for choice in CATALOGUE.all():
        note_choice(choice)


def note_choice(choice: type[Choice]) -> KnownChoice:
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
            "facts": facts_of(choice),
        },
    )
    return known


def facts_of(choice: type[Choice]) -> dict[str, Any]:
    if issubclass(choice, GateChoice):
        needed = [each.name for each in own_parameters(choice) if not each.optional]
        return {"needs": ["gate_epsilon", *needed], "uploads_together": choice.charged_as.proved_in_windows}
    if issubclass(choice, SelectionChoice):
        in_blocks = isinstance(choice, AsksInBlocks)
        return {"hides_selection": in_blocks, "by_chance": choice.by_chance, "in_blocks": in_blocks}
    if issubclass(choice, PolicyChoice):
        return {"hides_selection": choice.hides_selection}
    if issubclass(choice, LabelType):
        return {"teaches": str(choice.teaches)}
    if issubclass(choice, LearnsLabels):
        return {"learns": [str(each) for each in choice.learns]}
    if issubclass(choice, RandomizerChoice):
        drawn = choice.mechanism
        return {"open_answers": drawn is None} | ({} if drawn is None else {"charged_as": drawn.charged_as.kind})
    return {}


def _known(declared: Parameter) -> dict[str, Any]:
    order = {"no_more_than": declared.no_more_than} if declared.no_more_than else {}
    return {**declared.json_schema(), "charged": declared.charged, **order}
