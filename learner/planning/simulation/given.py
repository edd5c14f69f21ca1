"""What somebody gives a simulation in place of a preset's own values, read as its declaration says."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from annotation.choices.catalogue import CATALOGUE, KEYS, declaration_of
from privacy.choices import Choice, Kind

# Settings that no choice declares, with their types.
PLAIN: Final[Mapping[str, type]] = {"privacy_unit": str, "pool_epsilon": float, "pool_delta": float}
TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}


def names_of(*kinds: Kind, playing: type = Choice) -> set[str]:
    """Name what is chosen of each kind, and the parameters of all that there is to choose and can be played."""
    found = {kind.key for kind in kinds if kind.key}
    for choice in (each for kind in kinds for each in CATALOGUE.of_kind(kind)):
        found |= {each.name for each in choice.parameters() if issubclass(choice, playing)}
    return found


def with_given(values: Mapping[str, Any], given: Mapping[str, str], names: Collection[str]) -> dict[str, Any]:
    """Return values with those `given` in their place; what is given as nothing is left out.

    Raises
    ------
    ValueError
        If a name is not among `names`, or a value cannot be read or is out of the range that what is chosen declares.
    """
    if unknown := sorted(set(given) - set(names)):
        raise ValueError(f"unknown settings {', '.join(unknown)}; there are {', '.join(sorted(names))}")
    if unchosen := [name for name in KEYS if name in values and given.get(name) == ""]:
        raise ValueError(f"{', '.join(unchosen)} must be chosen")
    read = {name: _read(name, text) for name, text in given.items() if text}
    found = {name: value for name, value in values.items() if given.get(name) != ""} | read
    for choice in CATALOGUE.chosen(found):
        for each in choice.parameters():
            if each.name in read and (rule := each.broken(read[each.name])):
                raise ValueError(f"{each.name}: {rule}")
    return found


def _read(name: str, text: str) -> Any:
    """Return a text in the type of a setting."""
    for kind in Kind:
        if kind.key == name and CATALOGUE.find(kind, text) is None:
            known = ", ".join(choice.name for choice in CATALOGUE.of_kind(kind))
            raise ValueError(f"{name} must be one of {known}, got {text!r}")
    declared = declaration_of(name)
    wanted = PLAIN.get(name, str) if declared is None else declared.type
    try:
        return TRUTHS[text.lower()] if wanted is bool else wanted(text)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must be of type {wanted.__name__}, got {text!r}") from error
