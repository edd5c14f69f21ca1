"""Further classes of a project that people work in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from annotation.choices.class_looks import COLOURS, LONGEST_GROUP
from annotation.choices.label_types.catalogue import label_type_of
from annotation.choices.presets import LONGEST_CLASS, MOST_CLASSES
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

CROWD: Final = _(
    "Behind a gate every answer is randomised among the classes that were declared, and is paid for as one of so many: "
    "for another number there is no proof. Open another project with the further class."
)
STREAM: Final = _(
    "A stream pays once for one learner of the classes that were declared: for another number there is no proof. Open "
    "another project with the further class."
)
FIXED_ANSWERS: Final = _(
    "Steps of a scale, and yes or no, mean something beside one another: a further one would change what every answer "
    "before it said."
)
NOT_BEFOREHAND: Final = _(
    "The names of classes stand in every released model, so one that was found in a record would tell of that record: "
    "only what is known without the records may be added."
)
# Of each setting of a class the field that asks for it.
FIELDS: Final[Mapping[str, str]] = {
    "classes": "name",
    "class_descriptions": "words",
    "class_groups": "group",
    "class_colours": "colour",
}


@dataclass(frozen=True, slots=True)
class FurtherClass:
    name: str
    words: tuple[str, ...] = ()
    group: str = ""
    colour: str = ""


def growth_hindrance(settings: Mapping[str, Any]) -> str:
    """Say why the classes that people are asked with, or that was paid for, stay as they are; empty where they grow."""
    if settings["oracle"] == "crowd":
        return CROWD
    if settings["arrival"] == "stream":
        return STREAM
    kind = label_type_of(str(settings["question_kind"]), settings)
    return "" if kind.lists_classes else FIXED_ANSWERS


def only_grows(before: Sequence[str], after: Sequence[str]) -> bool:
    return len(after) > len(before) and list(after[: len(before)]) == list(before)


def broken_class(classes: Sequence[str], further: FurtherClass) -> dict[str, str]:
    broken: dict[str, str] = {}
    if rule := _broken_name(classes, further.name):
        broken["name"] = rule
    for field, lines in (("name", (further.name,)), ("words", further.words), ("group", (further.group,))):
        if any(not line.isprintable() for line in lines):
            broken[field] = as_message("Plain text without control characters.")
    if further.words and ":" in further.name:
        broken["words"] = as_message("A class with a colon in its name has no words of its own.")
    if len(further.group) > LONGEST_GROUP:
        broken["group"] = as_message("A heading has at most {longest} letters.", longest=LONGEST_GROUP)
    if further.colour and further.colour not in COLOURS:
        broken["colour"] = as_message(
            "Must be one of {possible}, got {got}.", possible=", ".join(COLOURS), got=further.colour
        )
    return broken


def _broken_name(classes: Sequence[str], name: str) -> str:
    if not name.strip():
        return as_message("A class needs a name.")
    if len(name) > LONGEST_CLASS:
        return as_message("A class has a name of at most {longest} letters.", longest=LONGEST_CLASS)
    if name.strip().casefold() in {known.strip().casefold() for known in classes}:
        return as_message("There is a class of this name already.")
    if len(classes) >= MOST_CLASSES:
        return as_message("A project has at most {most:,} classes.", most=MOST_CLASSES)
    return ""


def grown_settings(settings: Mapping[str, Any], further: FurtherClass) -> dict[str, Any]:
    changes: dict[str, Any] = {"classes": [*settings["classes"], further.name]}
    lines = {
        "class_descriptions": further.words,
        "class_groups": (further.group,) if further.group else (),
        "class_colours": (further.colour,) if further.colour else (),
    }
    for setting, said in lines.items():
        if said:
            changes[setting] = [*(settings.get(setting) or ()), *(f"{further.name}: {each}" for each in said)]
    return changes
