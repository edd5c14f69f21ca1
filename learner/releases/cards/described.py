"""The card and the guarantee of version 0: a model of public words about classes, which nothing private went into."""

from typing import Any

from learner.linear_model import LinearModel
from learner.releases.cards.accuracy import accuracy_section, types_section
from learner.releases.cards.privacy_document import privacy_document
from learner.releases.cards.rendering import (
    Card,
    Privacy,
    front_matter,
    loading_section,
    measure_of,
    tells,
    words_source,
)
from learner.releases.cards.words import plain

VERSION = 0
# Stands wherever version 0 is given out, word for word.
MARK = "epsilon 0, from class descriptions alone, no label, no private row read"
COVERED = "everybody, whatever they know and see"
NOT_COVERED = (
    "what the words themselves tell: whoever wrote about the classes must have done so without looking at the records"
)
TRUST = "nobody needs to be trusted: no private row and no answer was read"


def zero_promise(*, unit: str, adjacency: str, issued_at: str) -> Privacy:
    """Return the guarantee of version 0: a limit of 0 in the project's unit, true in any other, too."""
    return {
        "oracle": "trusted",
        "questions_shown": True,
        "accounts": [
            {
                "protects": "every record and every answer",
                "filter": "pure",
                "unit": unit,
                "adjacency": adjacency,
                "limit_epsilon": 0.0,
                "limit_delta": 0.0,
                "spent_epsilon": 0.0,
                "spent_delta": 0.0,
                "limit_epsilon_when_released": 0.0,
                "limit_delta_when_released": 0.0,
            }
        ],
        "entries": [],
        "heads": {},
        "issued_at": issued_at,
        "answers": f"Version 0: {MARK}.",
    }


def described_document(privacy: Privacy) -> dict[str, Any]:
    document = privacy_document(privacy)
    document["deployment"] |= {"trust": TRUST, "implementation": "DPAL", "accounting": "nothing is charged"}
    return document | {"covered": [COVERED], "not_covered": [NOT_COVERED]}


def described_card(model: LinearModel, *, reads: str, card: Card, privacy: Privacy) -> str:
    measure = measure_of(model)
    kind = "conditional random field" if model.names_spans else "linear model"
    made_of = (
        f"It is a {kind} over {model.dimension} features, made of what the project's owner wrote about the "
        f"classes by {plain(card['created_at'])}; a class that nobody described stands there by its name. Other words "
        "make another version 0. What is trained is numbered from 1."
    )
    lines = [
        f"# {plain(card['name'])}, version {VERSION}",
        "",
        "**Epsilon 0, from class descriptions alone, no label, no private row read.**",
        "",
        plain(card["predicts"]),
        "",
        tells(model),
        made_of,
        "",
        *words_source(card),
        "## Guarantee",
        "",
        "(0, 0)-differential privacy for any two data sets: the model is the same whatever records and answers the "
        "project holds. No ledger was charged.",
        "",
        f"Covered: {COVERED}.",
        "",
        f"Not covered: {NOT_COVERED}.",
        "",
        f"## {measure[0].upper()}{measure[1:]} on public data",
        "",
        *accuracy_section(card["metrics"], measure=measure),
        *types_section(card["metrics"]),
        "",
        *loading_section(model),
    ]
    return "\n".join([*front_matter(reads=reads, card=card, privacy=privacy), *lines]) + "\n"
