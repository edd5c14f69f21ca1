"""What a model's card says of a limit over several projects, or that there is none."""

from collections.abc import Mapping
from typing import Any

from privacy.wording import as_message
from privacy.wording import gettext_noop as _


def account_limit_words(account: Mapping[str, Any]) -> str:
    """Say whether other projects that hold records of the same people share a limit with an account of records."""
    if account["unit"] not in ("record", "contributor") or "population" not in account:
        return ""
    if not account["population"]:
        return _(
            "When the version was released, the account was outside any common limit: whoever has records in other "
            "projects, too, loses the sum of what they spend."
        )
    name = " ".join(account["population"].split()).replace("`", "'")
    return as_message(
        "When the version was released, the account belonged to the population `{name}`: its projects together stay "
        "within a limit of their own, counted for a person with at most {records} records here.",
        name=name,
        records=account["records_per_person"],
    )
