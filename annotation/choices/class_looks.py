"""Groups, colours and keys of classes on the label page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase
from typing import Any, ClassVar, Final

from annotation.choices.label_types.base import DIGITS
from annotation.choices.label_types.catalogue import label_type_of
from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

LONGEST_GROUP: Final = 60
MOST_GROUPS: Final = 50
# Each is a token of the style sheet for light and one for dark, legible on every ground that classes stand on.
COLOURS: Final = ("red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "brown", "grey")
# So many have a key by themselves, 1 to 9 and 0; more are found by typing.
MOST_KEYED: Final = len(DIGITS)
# What else the label page does by a letter: accept, comment, flag, guidelines, list, skip, undo, why, zoom.
PAGE_KEYS: Final = "acfglsuwz"
OWN_KEYS: Final = "".join(letter for letter in ascii_lowercase if letter not in PAGE_KEYS)


@dataclass(frozen=True, slots=True)
class Look:
    """The heading a class stands under, which one that is, its colour's name and its own key; empty where none."""

    group: str = ""
    colour: str = ""
    order: int = MOST_GROUPS
    key: str = ""


NO_LOOK: Final = Look()


@dataclass(frozen=True)
class ClassLooks(FreeChoice):
    """One level of groups of classes, a colour for a class or a whole group, and a key a class; none is learned."""

    kind: ClassVar[Kind] = Kind.CLASSES
    name: ClassVar[str] = "class_looks"
    label: ClassVar[str] = _("groups, colours and keys of classes")
    # They change nothing that is asked, only where it stands.
    stays: ClassVar[bool] = False

    class_groups: tuple[str, ...] = parameter(
        (),
        label=_("Groups of classes"),
        help=_(
            "One line each: a class, a colon and the heading it stands under. Headings come in the order of these "
            "lines. Keys and codes stay as they are, and typing a heading finds its classes."
        ),
    )
    class_colours: tuple[str, ...] = parameter(
        (),
        label=_("Colours of classes"),
        help=_(
            "One line each: a class or a heading, a colon and red, orange, yellow, green, teal, blue, purple, pink, "
            "brown or grey. The name always stands beside the colour."
        ),
    )
    class_keys: tuple[str, ...] = parameter(
        (),
        label=_("Keys of classes"),
        help=_(
            "One line each: a class, a colon and its key, a letter or a digit. Other classes keep the digit of their "
            "place, or take one that is left. With more than ten classes a key is a letter: Shift and the letter "
            "answer at once, and the letter alone finds the class. A, C, F, G, L, S, U, W and Z do other things."
        ),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        said = {"class_groups": self.class_groups, "class_colours": self.class_colours, "class_keys": self.class_keys}
        kind = settings.get("question_kind")
        if kind and not label_type_of(str(kind), settings).lists_classes:
            rule = _("Only where a class is asked for: steps of a scale, and yes or no, stand as they are.")
            return {name: rule for name, lines in said.items() if lines}
        classes = settings.get("classes", ())
        broken = {
            "class_groups": self._broken_groups(classes),
            "class_colours": self._broken_colours(classes),
            "class_keys": self._broken_keys(classes),
        }
        return {name: rule for name, rule in broken.items() if rule}

    def _broken_groups(self, classes: Sequence[str]) -> str:
        places, named = _places(classes), set[int]()
        for number, line in enumerate(self.class_groups, start=1):
            place, group = _split(line, places)
            if place is None or not 0 < len(group) <= LONGEST_GROUP:
                return as_message(
                    "Line {number} must be a class, a colon and a heading of at most {longest} letters.",
                    number=number,
                    longest=LONGEST_GROUP,
                )
            if place in named:
                return as_message("Line {number} names a class that has a group already.", number=number)
            named.add(place)
        if len(_headings(self.class_groups, places)) > MOST_GROUPS:
            return as_message("At most {most} groups.", most=MOST_GROUPS)
        return ""

    def _broken_colours(self, classes: Sequence[str]) -> str:
        places, named = _places([*classes, *_headings(self.class_groups, _places(classes))]), set[int]()
        for number, line in enumerate(self.class_colours, start=1):
            place, colour = _split(line, places)
            if place is None or colour.casefold() not in COLOURS:
                return as_message(
                    "Line {number} must be a class or a heading, a colon and one of {colours}.",
                    number=number,
                    colours=", ".join(COLOURS),
                )
            if place in named:
                return as_message("Line {number} names what has a colour already.", number=number)
            named.add(place)
        return ""

    def _broken_keys(self, classes: Sequence[str]) -> str:
        places, named, taken = _places(classes), set[int](), set[str]()
        possible = OWN_KEYS if len(classes) > MOST_KEYED else OWN_KEYS + DIGITS
        for number, line in enumerate(self.class_keys, start=1):
            place, typed = _split(line, places)
            key = typed.lower()
            if place is None or len(key) != 1 or key not in possible:
                return as_message(
                    "Line {number} must be a class, a colon and one of {keys}.",
                    number=number,
                    keys=", ".join(possible.upper()),
                )
            if place in named:
                return as_message("Line {number} names a class that has a key already.", number=number)
            if key in taken:
                return as_message("Line {number} has a key that another class has.", number=number)
            named.add(place)
            taken.add(key)
        return ""


def looks_of(settings: Mapping[str, Any], classes: Sequence[str]) -> tuple[Look, ...]:
    """Return how each class looks, in the order of the classes; a class's own colour goes before its group's."""
    names = ("class_groups", "class_colours", "class_keys")
    groups, colours, keys = (tuple(settings.get(name) or ()) for name in names)
    return _looks(tuple(classes), groups, colours, keys)


# The page asks with every question, and a thousand classes have a thousand lines.
@lru_cache(maxsize=256)
def _looks(
    classes: tuple[str, ...], lines: tuple[str, ...], coloured: tuple[str, ...], keyed: tuple[str, ...]
) -> tuple[Look, ...]:
    places = _places(classes)
    keys = dict(_split(line, places) for line in keyed)
    headings = _headings(lines, places)
    spelled = {heading.casefold(): heading for heading in headings}
    groups = [""] * len(classes)
    for line in lines:
        place, group = _split(line, places)
        if place is not None and group:
            groups[place] = spelled[group.casefold()]
    places = _places([*classes, *headings])
    colours: dict[int, str] = {}
    for line in coloured:
        place, colour = _split(line, places)
        if place is not None and colour.casefold() in COLOURS:
            colours[place] = colour.casefold()
    of_groups = {heading: colours.get(len(classes) + number, "") for number, heading in enumerate(headings)}
    order = {heading: number for number, heading in enumerate(headings)}
    return tuple(
        Look(
            group,
            colours.get(place) or of_groups.get(group, ""),
            order.get(group, MOST_GROUPS),
            keys.get(place, "").lower(),
        )
        for place, group in enumerate(groups)
    )


def keys_of(looks: Sequence[Look]) -> list[str]:
    """Return a key for each of a few classes: its own, else the digit of its place, else one that is left."""
    own = {look.key for look in looks}
    left = [digit if digit not in own else "" for digit in DIGITS]
    keys = [look.key or "".join(left[place : place + 1]) for place, look in enumerate(looks)]
    spare = [digit for digit in left if digit and digit not in keys]
    return [key or (spare.pop(0) if spare else "") for key in keys]


def grouped(looks: Sequence[Look]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return headings in their order, each with the positions of its classes; what has none comes last."""
    found: dict[tuple[int, str], list[int]] = {}
    for place, look in enumerate(looks):
        found.setdefault((look.order, look.group), []).append(place)
    return tuple((heading, tuple(places)) for (_order, heading), places in sorted(found.items()))


def _places(names: Sequence[str]) -> dict[str, int]:
    return {str(name).strip().casefold(): place for place, name in reversed(list(enumerate(names)))}


def _split(line: str, places: Mapping[str, int]) -> tuple[int | None, str]:
    for colon in reversed([at for at, sign in enumerate(line) if sign == ":"]):
        if (place := places.get(line[:colon].strip().casefold())) is not None:
            return place, line[colon + 1 :].strip()
    return None, ""


def _headings(lines: Sequence[str], places: Mapping[str, int]) -> list[str]:
    found: dict[str, str] = {}
    for line in lines:
        place, group = _split(line, places)
        if place is not None and group:
            found.setdefault(group.casefold(), group)
    return list(found.values())
