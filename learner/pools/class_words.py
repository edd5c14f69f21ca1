"""Public words of an owner about the classes, which give a model before any label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpal.reading.labels import class_key, split_line
from learner.estimators.descriptions import ClassDescription, described_by
from privacy.choices import Choice, Kind, Sound, parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

LONGEST_LINE = 500
MOST_LINES = 5000


@dataclass(frozen=True)
class ClassWords(Choice):
    """Sentences and example phrases of each class, as a project holds them."""

    kind: ClassVar[Kind] = Kind.CLASSES
    name: ClassVar[str] = "class_words"
    label: ClassVar[str] = _("class descriptions")
    sound: ClassVar[Sound] = Sound()
    # Public words, so another sentence changes no price and no promise.
    stays: ClassVar[bool] = False

    class_descriptions: tuple[str, ...] = parameter(
        (),
        label=_("Class descriptions"),
        help=_(
            "One line each: class, colon, public sentence or example. A few per class "
            "can replace a hundred answers, for free."
        ),
    )

    words_source: str = parameter(
        "",
        label=_("Authors of the class descriptions"),
        help=_("Printed on model cards, such as: drafted by a model, edited by Ada."),
    )

    def event(self, *args: Any, **circumstances: Any) -> None:
        """Nothing private is read."""

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse lines that name no class, or that are too many or too long."""
        lines = self.class_descriptions
        if len(self.words_source) > LONGEST_LINE or not self.words_source.isprintable():
            return {"words_source": as_message("At most {letters} letters on one line.", letters=LONGEST_LINE)}
        if len(lines) > MOST_LINES or any(len(line) > LONGEST_LINE for line in lines):
            rule = as_message(
                "At most {lines} lines of {letters} letters each.", lines=MOST_LINES, letters=LONGEST_LINE
            )
            return {"class_descriptions": rule}
        known = {class_key(str(name)): True for name in settings.get("classes", ())}
        for number, line in enumerate(lines, start=1):
            if not all(split_line(line, known)):
                rule = as_message("Line {number} must be a class, a colon and a text.", number=number)
                return {"class_descriptions": rule}
        return {}


# What projects may say about their classes.
CHOICES: tuple[type[Choice], ...] = (ClassWords,)


def descriptions_of(settings: Mapping[str, Any], classes: Sequence[str]) -> dict[str, ClassDescription]:
    return described_by(settings.get("class_descriptions") or (), classes)
