"""Range checks whose messages name the parameter and the value seen."""

import math

from privacy.wording import as_message


def positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(as_message("{name} must be > 0 and finite, got {value}", name=name, value=value))


def not_negative(name: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(as_message("{name} must be >= 0 and finite, got {value}", name=name, value=value))


def at_least(name: str, value: int, low: int) -> None:
    if isinstance(value, bool) or int(value) != value or value < low:
        raise ValueError(as_message("{name} must be an integer >= {low}, got {value}", name=name, low=low, value=value))


def rate(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError(as_message("{name} must lie in (0, 1], got {value}", name=name, value=value))


def delta_in_open_interval(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(as_message("{name} must lie in (0, 1), got {value}", name=name, value=value))


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            as_message(
                "{name} must be one of {choices}, got {value!r}", name=name, choices=", ".join(choices), value=value
            )
        )
