"""Parameters of a choice: each is declared once, with its range, words and rule, as a field of a frozen dataclass."""

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

from privacy.json_values import FORMATS, JSON_TYPES, NUMBERS, beyond_bounds, mistyped, pattern_of, read, written_value
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

DECLARATION: Final = "parameter"
ARRIVALS: Final = ("pool", "stream")
DATA_KINDS: Final = ("text", "table", "image")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a choice.

    Attributes
    ----------
    name : str
        Its name in the document, in forms and over REST; two choices that use a name mean the same by it.
    type : type
        bool, int, float, str, tuple for a list of texts, Decimal for an amount of money, or time for one of the day.
    default : object
        What it is where nobody says otherwise; None where it must be said and is not optional.
    label, help : str
        What people read beside it: its name, and what it does.
    unit : str
        What it is counted in, where that is not plain from its name.
    above, at_least, below, at_most : float or None
        Its range.
    options : mapping of str to str
        The values it may have, with their labels, where these are few.
    rule : str
        What is said to a value outside the range; `{got}` is the value.
    pattern : str
        What a text must look like that is not empty.
    decimals : int
        How many an amount of money has at most.
    optional : bool
        Whether it may be left empty.
    arrivals : collection of str
        Where it applies; elsewhere it keeps its default and no form asks for it.
    elsewhere : str
        What is said to another value elsewhere.
    data_kinds : collection of str
        Of which records it says anything; of others no form asks for it, and it may have any value.
    no_more_than : str
        Another parameter of the same choice that this one is never above.
    charged : bool
        Whether what one use is charged rests on it, so that a document names it unless it may be left empty.
    """

    name: str
    type: type
    default: Any
    label: str
    help: str = ""
    unit: str = ""
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    rule: str = ""
    pattern: str = ""
    decimals: int = 0
    optional: bool = False
    arrivals: Collection[str] = ARRIVALS
    elsewhere: str = ""
    data_kinds: Collection[str] = DATA_KINDS
    no_more_than: str = ""
    charged: bool = False

    def broken(self, value: Any) -> str:
        """Return the rule that a value breaks, typed or as a document has it; empty where it breaks none."""
        value = read(value, self.type)
        if value is None or value == "":
            may_be_empty = self.optional or (value == "" and self.type is str and not self.options)
            return "" if may_be_empty else as_message(self.rule, got=value) if self.rule else _("Is missing.")
        if mistyped := self.mistyped(value):
            return mistyped
        if self.options and value not in self.options:
            return as_message("Must be one of {possible}, got {got}.", possible=", ".join(self.options), got=value)
        if self.pattern and not re.fullmatch(self.pattern, value):
            return as_message(self.rule, got=value)
        broken = ""
        if self.type in NUMBERS:
            bounds = {"above": self.above, "at_least": self.at_least, "below": self.below, "at_most": self.at_most}
            broken = beyond_bounds(value, decimals=self.decimals, **bounds)
        return as_message(self.rule, got=value) if broken and self.rule else broken

    def mistyped(self, value: Any) -> str:
        """Say that a value is of another type, empty where it is of the declared one."""
        return "" if value is None and self.optional else mistyped(read(value, self.type), self.type)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of its value."""
        kind = JSON_TYPES[self.type]
        bounds = {
            "exclusiveMinimum": self.above,
            "minimum": self.at_least,
            "exclusiveMaximum": self.below,
            "maximum": self.at_most,
        }
        schema: dict[str, Any] = {"type": [kind, "null"] if self.optional else kind, "title": self.label}
        schema |= {"description": " ".join(part for part in (self.help, self.unit and f"[{self.unit}]") if part)}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        if self.options:
            schema["enum"] = [*self.options, *([None] if self.optional else [])]
        if self.type is tuple:
            schema["items"] = {"type": "string"}
        if self.type in FORMATS:
            schema["format"] = FORMATS[self.type]
        if pattern := self.pattern or pattern_of(self.type, self.decimals):
            schema["pattern"] = f"^({pattern})?$" if self.type is str else f"^{pattern}$"
        return schema | {"default": written_value(self.default, self.decimals)}


def parameter(
    default: Any,
    *,
    label: str,
    help: str = "",  # noqa: A002
    unit: str = "",
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    options: Mapping[str, str] | None = None,
    rule: str = "",
    pattern: str = "",
    decimals: int = 0,
    arrivals: Collection[str] = ARRIVALS,
    elsewhere: str = "",
    data_kinds: Collection[str] = DATA_KINDS,
    no_more_than: str = "",
    charged: bool = False,
) -> Any:
    """Declare a parameter of a choice; its type is the field's annotation, `| None` makes it optional."""
    declared = {name: said for name, said in locals().items() if name != "default"}  # the dataclass holds that
    declared |= {"options": dict(options or {}), "arrivals": tuple(arrivals), "data_kinds": tuple(data_kinds)}
    return field(default=default, metadata={DECLARATION: declared})


@cache
def declared_in(choice: type[Any]) -> tuple[Parameter, ...]:
    """Return the parameters that a dataclass declares, in their order.

    Raises
    ------
    TypeError
        If one has no default, or a type that a document cannot hold.
    """
    hints = get_type_hints(choice)
    return tuple(_parameter(each, hints[each.name]) for each in fields(choice) if DECLARATION in each.metadata)


def _parameter(declared: "Field[Any]", hint: Any) -> Parameter:
    optional = NoneType in get_args(hint)
    known = [part for part in get_args(hint) if part is not NoneType] if optional else [hint]
    plain = get_origin(known[0]) or known[0]
    if len(known) != 1 or plain not in JSON_TYPES:
        raise TypeError(f"parameter {declared.name} must be of a type that a document can hold, got {hint}")
    if declared.default is MISSING:
        raise TypeError(f"parameter {declared.name} must have a default")
    values = declared.metadata[DECLARATION]
    return Parameter(name=declared.name, type=plain, default=declared.default, optional=optional, **values)
