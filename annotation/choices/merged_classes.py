"""Classes that count as another one.

A merge renames an answer, whosever it is, before anything is computed from it: neighbouring answers stay neighbours,
and every mechanism costs what it costs on the classes that are left.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from annotation.choices.label_types.base import NamesSeveral
from annotation.choices.label_types.catalogue import label_type_of
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

# What a merge says of a class: the one it counts as, and since when.
INTO: Final = "into"
AT: Final = "at"
CROWD: Final = _(
    "Behind a gate every answer is randomised among the classes that were declared, and is paid for as one of so many: "
    "for another number there is no proof, so none is merged."
)
STREAM: Final = _(
    "A stream pays once for one learner of the classes that were declared: for another number there is no proof, so "
    "none is merged."
)
FIXED_ANSWERS: Final = _(
    "Steps of a scale, and yes or no, mean something beside one another: one that counts as another would change what "
    "every answer said."
)
SEVERAL: Final = _(
    "Where an answer names several classes, it is paid for by how many it may name, and a merge would change how many "
    "those are: none is merged."
)
NOT_ASKED: Final = _("Nothing rests on these classes yet: change their list in the settings instead.")
NOT_BEFOREHAND: Final = _(
    "Which classes are merged stands in every model released from now on, so a merge that was decided by looking at "
    "records or answers would tell of them: only what is decided without them may be merged."
)
USED: Final = _("A training has learned under this merge, and a model stays as it was released: the merge stays, too.")


def merge_hindrance(settings: Mapping[str, Any]) -> str:
    """Say why no class of a project counts as another one; empty where one may."""
    if settings["oracle"] == "crowd":
        return CROWD
    if settings["arrival"] == "stream":
        return STREAM
    kind = label_type_of(str(settings["question_kind"]), settings)
    if isinstance(kind, NamesSeveral):
        return SEVERAL
    return "" if kind.lists_classes else FIXED_ANSWERS


def broken_merge(
    classes: Sequence[str], merged: Mapping[str, Mapping[str, str]], name: str, into: str
) -> dict[str, str]:
    broken: dict[str, str] = {}
    for field, said in (("name", name), ("into", into)):
        if said not in classes:
            broken[field] = as_message("There is no class of this name.")
        elif said in merged:
            broken[field] = as_message("This class counts as another one already: merges make no chains.")
    if broken:
        return broken
    if name == into:
        return {"into": as_message("A class cannot count as itself.")}
    if any(one[INTO] == name for one in merged.values()):
        return {"name": as_message("Another class counts as this one already: merges make no chains.")}
    if len(classes) - len(merged) <= 2:
        return {"name": as_message("Two classes stay: of one alone nothing is learned.")}
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


def counted_words(lines: Sequence[str], merged: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Return lines of words about classes, those of a merged class as lines of the one it counts as.

    A class with a colon in its name has no words of its own, so none are given to it.
    """
    into = {name.strip().casefold(): one[INTO] for name, one in merged.items()}
    said = [(line, *line.partition(":")) for line in lines]
    found = [(line, into.get(name.strip().casefold(), ""), words) for line, name, _colon, words in said]
    return tuple(f"{other}:{words}" if other else line for line, other, words in found if ":" not in other)
