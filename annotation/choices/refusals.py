"""Refusal of settings by the rules they break."""

from collections.abc import Mapping

from annotation.errors import InvalidConfiguration
from privacy.wording import joined_rules


def refuse_broken(broken: Mapping[str, str]) -> None:
    if broken:
        raise InvalidConfiguration(joined_rules(broken), broken=broken)
