"""What a route of the REST interface can answer besides what it is asked for, as its OpenAPI description says it."""

from collections.abc import Mapping, Sequence
from typing import Any

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


def problem(status: int) -> dict[str, str]:
    """Return the reference to the problem document of a status, which the whole interface shares."""
    return {"$ref": f"#/components/responses/Problem{status}"}


def answers(
    *problems: int,
    headers: Mapping[int, Headers] | None = None,
    parameters: Sequence[Mapping[str, Any]] = (),
    responses: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return what a route adds to its description: refusals of its own, headers of its answers, parameters.

    What every route may answer (no token, no scope, nothing there, not fitting, too often) is added for all of them.
    """
    told: dict[int, Any] = {status: problem(status) for status in problems}
    told |= {status: {"headers": dict(found)} for status, found in (headers or {}).items()}
    told |= dict(responses or {})
    return {"responses": told} | ({"parameters": list(parameters)} if parameters else {})


def written(*statuses: int, problems: Sequence[int] = ()) -> dict[str, Any]:
    """Return the same for a write that takes an Idempotency-Key and is answered with one of `statuses`."""
    return answers(*problems, headers=dict.fromkeys(statuses, REPLAYED), parameters=[IDEMPOTENCY_KEY])


def paged(*problems: int) -> dict[str, Any]:
    """Return the same for a list that comes in pages."""
    return answers(*problems, headers={200: LINK})
