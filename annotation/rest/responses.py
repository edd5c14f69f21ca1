"""What a route of the REST interface can answer besides what it is asked for, as its OpenAPI description says it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import AfterValidator, BeforeValidator

from privacy.moments import whole_second
from privacy.wording import message_of

# A time of a step that read rows or answers, as those outside may know it.
Moment = Annotated[datetime, AfterValidator(whole_second)]


class SaidOut(Schema):
    """What the sentence beside it was made from, so that a program can tell it in its own words or language.

    One sentence has a `code`, which stays the same whatever the values, and `parameters`: numbers, names, moments
    (`{"moment": ...}`) and further codes with theirs. Where it counts something, `code` is the form for one and
    `plural` the form for other numbers, which `n` of the parameters is. Several sentences are `messages`, put together
    with `separator`.
    """

    code: str | None = None
    plural: str | None = None
    parameters: dict[str, Any] | None = None
    separator: str | None = None
    messages: list[dict[str, Any]] | None = None


def as_code(said: str | None) -> dict[str, Any] | None:
    """Return what a sentence was made from; None where nothing is said."""
    return message_of(said).as_json() if said else None


# A field beside a sentence, whose alias is the sentence's name.
AsCode = Annotated[SaidOut | None, BeforeValidator(as_code)]
LONGEST_KEY = 200
IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "maxLength": LONGEST_KEY},
    "description": "Sent again with the same key within a day, the write happens once.",
}
LINK = {"Link": {"schema": {"type": "string"}, "description": "Where the next page is, while there is one."}}
REPLAYED = {
    "Idempotency-Replayed": {
        "schema": {"type": "string", "const": "true"},
        "description": "There where this answer was given before and nothing was written now.",
    }
}
Headers = Mapping[str, Mapping[str, Any]]


def problem_reference(status: int) -> dict[str, str]:
    """Return the reference to the problem document of a status, which the whole interface shares."""
    return {"$ref": f"#/components/responses/Problem{status}"}


def responses(
    *problems: int,
    headers: Mapping[int, Headers] | None = None,
    parameters: Sequence[Mapping[str, Any]] = (),
    responses: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return what a route adds to its description: refusals of its own, headers of its answers, parameters.

    What every route may answer (no token, no scope, nothing there, not fitting, too often) is added for all of them.
    """
    documented: dict[int, Any] = {status: problem_reference(status) for status in problems}
    documented |= {status: {"headers": dict(found)} for status, found in (headers or {}).items()}
    documented |= dict(responses or {})
    return {"responses": documented} | ({"parameters": list(parameters)} if parameters else {})
