"""Further, merged, grouped and coloured classes of a project."""

# A merge renames an answer before anything is computed from it: neighbouring answers stay neighbours, and every
# mechanism costs what it costs on the classes that are left.

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase
from typing import Any, ClassVar, Final

from annotation.choices.label_types.base import DIGITS, NamesSeveral, Teaching
from annotation.choices.label_types.catalogue import label_type_of
from annotation.choices.presets import LONGEST_CLASS, MOST_CLASSES
from dpal.reading.labels import INVISIBLE, class_key, split_line
from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import as_message, in_english
from privacy.wording import gettext_noop as _

# What a merge says of a class: the one it counts as, and since when.
INTO: Final = "into"
AT: Final = "at"
MERGE_BEHIND_GATE: Final = _("Answers are randomised among the declared classes, so these are fixed.")
MERGE_IN_STREAM: Final = _("Classes of a stream are fixed.")
MERGE_OF_STEPS: Final = _("Not for ratings or yes/no questions.")
SEVERAL: Final = _("Classes cannot be merged where an answer may name several.")
NOT_ASKED: Final = _("There are no answers yet: change the list of classes instead.")
NOT_DECIDED_BEFOREHAND: Final = _("Merges are public: decide without looking at records or answers.")
USED: Final = _("A model was trained with this merge, so it cannot be undone.")


def merge_hindrance(settings: Mapping[str, Any]) -> str:
    if settings["oracle"] == "crowd":
        return MERGE_BEHIND_GATE
    if settings["arrival"] == "stream":
        return MERGE_IN_STREAM
    kind = label_type_of(str(settings["question_kind"]), settings)
    if isinstance(kind, NamesSeveral) or kind.teaches is Teaching.SPANS:
        return SEVERAL
    return "" if kind.lists_classes else MERGE_OF_STEPS


def broken_merge(
    classes: Sequence[str], merged: Mapping[str, Mapping[str, str]], name: str, into: str
) -> dict[str, str]:
    broken: dict[str, str] = {}
    for field, said in (("name", name), ("into", into)):
        if said not in classes:
            broken[field] = in_english("There is no class of this name.")
        elif said in merged:
            broken[field] = as_message("This class is already merged into another one.")
    if broken:
        return broken
    if name == into:
        return {"into": as_message("A class cannot be merged into itself.")}
    if any(one[INTO] == name for one in merged.values()):
        return {"name": as_message("Another class is already merged into this one.")}
    if len(classes) - len(merged) <= 2:
        return {"name": as_message("At least two classes must remain.")}
    return {}


def counts_as(classes: Sequence[str], merged: Mapping[str, Mapping[str, str]]) -> tuple[int, ...]:
    """Return of each class the position of the one it counts as; empty where nothing was merged."""
    return _counts_as(tuple(classes), tuple(merged_names(merged).items())) if merged else ()


def merged_names(merged: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {name: one[INTO] for name, one in merged.items()}


def unmerged_classes(classes: Sequence[str], merged: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(str(name) for name in classes if name not in merged)


@lru_cache(maxsize=256)
def _counts_as(classes: tuple[str, ...], merged: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    places, into = {name: place for place, name in enumerate(classes)}, dict(merged)
    return tuple(places[into.get(name, name)] for name in classes)


def counted_words(
    lines: Sequence[str], classes: Sequence[str], merged: Mapping[str, Mapping[str, str]]
) -> tuple[str, ...]:
    """Return lines of words about classes, those of a merged class as lines of the one it counts as."""
    names = {class_key(name): name for name in classes}
    said = [(line, *split_line(line, names)) for line in lines]
    return tuple(f"{merged[name][INTO]}: {words}" if name and name in merged else line for line, name, words in said)


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
    label: ClassVar[str] = "groups, colours and keys of classes"
    # They change nothing that is asked, only where it stands.
    stays: ClassVar[bool] = False

    class_groups: tuple[str, ...] = parameter(
        (),
        label=_("Groups of classes"),
        help=_("One line per class: class, colon, heading."),
    )
    class_colours: tuple[str, ...] = parameter(
        (),
        label=_("Colours of classes"),
        help=_(
            "One line each: class or heading, colon, and red, orange, yellow, green, teal, blue, purple, pink, "
            "brown or grey."
        ),
    )
    class_keys: tuple[str, ...] = parameter(
        (),
        label=_("Keys of classes"),
        help=_("One line per class: class, colon, key. Taken: A, C, F, G, L, S, U, W, Z."),
    )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        said = {"class_groups": self.class_groups, "class_colours": self.class_colours, "class_keys": self.class_keys}
        kind = settings.get("question_kind")
        if kind and not label_type_of(str(kind), settings).lists_classes:
            rule = _("Not for ratings or yes/no questions.")
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
            place, group = split_line(line, places)
            if place is None or not 0 < len(group) <= LONGEST_GROUP:
                return as_message(
                    "Line {number}: write a class, a colon and a heading of at most {longest} letters.",
                    number=number,
                    longest=LONGEST_GROUP,
                )
            if place in named:
                return as_message("Line {number}: this name is on an earlier line.", number=number)
            named.add(place)
        if len(_headings(self.class_groups, places)) > MOST_GROUPS:
            return as_message("At most {most} groups.", most=MOST_GROUPS)
        return ""

    def _broken_colours(self, classes: Sequence[str]) -> str:
        places, named = _places([*classes, *_headings(self.class_groups, _places(classes))]), set[int]()
        for number, line in enumerate(self.class_colours, start=1):
            place, colour = split_line(line, places)
            if place is None or colour.casefold() not in COLOURS:
                return as_message(
                    "Line {number}: write a class or heading, a colon and one of {colours}.",
                    number=number,
                    colours=", ".join(COLOURS),
                )
            if place in named:
                return as_message("Line {number}: this name is on an earlier line.", number=number)
            named.add(place)
        return ""

    def _broken_keys(self, classes: Sequence[str]) -> str:
        places, named, taken = _places(classes), set[int](), set[str]()
        possible = OWN_KEYS if len(classes) > MOST_KEYED else OWN_KEYS + DIGITS
        for number, line in enumerate(self.class_keys, start=1):
            place, typed = split_line(line, places)
            key = typed.lower()
            if place is None or len(key) != 1 or key not in possible:
                return as_message(
                    "Line {number}: write a class, a colon and one of {keys}.",
                    number=number,
                    keys=", ".join(possible.upper()),
                )
            if place in named:
                return as_message("Line {number}: this name is on an earlier line.", number=number)
            if key in taken:
                return as_message("Line {number}: another class has this key.", number=number)
            named.add(place)
            taken.add(key)
        return ""


def looks_of(settings: Mapping[str, Any], classes: Sequence[str]) -> tuple[Look, ...]:
    names = ("class_groups", "class_colours", "class_keys")
    groups, colours, keys = (tuple(settings.get(name) or ()) for name in names)
    return _looks(tuple(classes), groups, colours, keys)


# The page asks with every question, and a thousand classes have a thousand lines.
@lru_cache(maxsize=256)
def _looks(
    classes: tuple[str, ...], lines: tuple[str, ...], coloured: tuple[str, ...], keyed: tuple[str, ...]
) -> tuple[Look, ...]:
    places = _places(classes)
    keys = dict(split_line(line, places) for line in keyed)
    headings = _headings(lines, places)
    spelled = {heading.casefold(): heading for heading in headings}
    groups = [""] * len(classes)
    for line in lines:
        place, group = split_line(line, places)
        if place is not None and group:
            groups[place] = spelled[group.casefold()]
    places = _places([*classes, *headings])
    colours: dict[int, str] = {}
    for line in coloured:
        place, colour = split_line(line, places)
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
    return {class_key(str(name)): place for place, name in reversed(list(enumerate(names)))}


def _headings(lines: Sequence[str], places: Mapping[str, int]) -> list[str]:
    found: dict[str, str] = {}
    for line in lines:
        place, group = split_line(line, places)
        if place is not None and group:
            found.setdefault(group.casefold(), group)
    return list(found.values())


CROWD: Final = _("Answers are randomised among the declared classes, so these are fixed.")
STREAM: Final = _("Classes of a stream are fixed.")
FIXED_ANSWERS: Final = _("Not for ratings or yes/no questions.")
NOT_BEFOREHAND: Final = _("Class names are public: add only names known without reading the records.")
PLAIN: Final = _("Plain text without control characters.")
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
    if settings["oracle"] == "crowd":
        return CROWD
    if settings["arrival"] == "stream":
        return STREAM
    kind = label_type_of(str(settings["question_kind"]), settings)
    return "" if kind.lists_classes else FIXED_ANSWERS


def only_grows(before: Sequence[str], after: Sequence[str]) -> bool:
    return len(after) > len(before) and list(after[: len(before)]) == list(before)


def broken_class(classes: Sequence[str], earlier: Iterable[str], further: FurtherClass) -> dict[str, str]:
    """Return the rules a further class breaks, by field; `earlier` are names that classes had before."""
    broken: dict[str, str] = {}
    if rule := _broken_name([*classes, *earlier], further.name):
        broken["name"] = rule
    elif len(classes) >= MOST_CLASSES:
        broken["name"] = as_message("A project has at most {most:,} classes.", most=MOST_CLASSES)
    for field, lines in (("words", further.words), ("group", (further.group,))):
        if any(not line.isprintable() for line in lines):
            broken[field] = PLAIN
    if len(further.group) > LONGEST_GROUP:
        broken["group"] = as_message("A heading has at most {longest} letters.", longest=LONGEST_GROUP)
    if further.colour and further.colour not in COLOURS:
        broken["colour"] = as_message(
            "Must be one of {possible}, got {got}.", possible=", ".join(COLOURS), got=further.colour
        )
    return broken


def _broken_name(classes: Sequence[str], name: str) -> str:
    if not class_key(name) or len(name) > LONGEST_CLASS:
        return as_message("A class has a name of at most {longest} letters.", longest=LONGEST_CLASS)
    if class_key(name) in set(map(class_key, classes)):
        return as_message("This class already exists.")
    if not name.translate(INVISIBLE).isprintable():
        return PLAIN
    return ""


def broken_rename(classes: Sequence[str], renamed: Mapping[str, str], name: str, to: str) -> dict[str, str]:
    if name not in classes:
        return {"name": in_english("There is no class of this name.")}
    # A name that another class had stays with it: released models know it by that.
    taken = [one for one in classes if one != name or one == to] + [was for was, now in renamed.items() if now != name]
    return {"to": rule} if (rule := _broken_name(taken, to)) else {}


def renamed_settings(settings: Mapping[str, Any], name: str, to: str) -> dict[str, Any]:
    """Return the settings that change with a name: the classes, and the lines about this one."""
    classes = [str(one) for one in settings["classes"]]
    groups = tuple(settings.get("class_groups") or ())
    places = _places([*classes, *_headings(groups, _places(classes))])
    changes: dict[str, Any] = {"classes": [to if one == name else one for one in classes]}
    for setting in ("class_descriptions", "class_groups", "class_colours", "class_keys"):
        if lines := settings.get(setting):
            parts = [(line, *split_line(line, places)) for line in lines]
            here = classes.index(name)
            changes[setting] = [f"{to}: {said}" if place == here else line for line, place, said in parts]
    return changes


def renamed_names(renamed: Mapping[str, str], name: str, to: str) -> dict[str, str]:
    """Return earlier names, each with the one its class has now."""
    moved = {was: to if now == name else now for was, now in renamed.items()} | {name: to}
    return {was: now for was, now in moved.items() if was != now}


def renamed_merges(merged: Mapping[str, Mapping[str, str]], name: str, to: str) -> dict[str, dict[str, str]]:
    now = {name: to}
    return {now.get(one, one): {**said, INTO: now.get(said[INTO], said[INTO])} for one, said in merged.items()}


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
