"""What NIST SP 800-226 has an evaluator ask of a differential privacy guarantee, answered from what a project stores.

References
----------
.. [1] Near, Darais, Lefkovitz, Howarth, "Guidelines for Evaluating Differential Privacy Guarantees", NIST SP 800-226,
   2025. The subjects are those of its pyramid and its hazards; the questions are worded here.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TypedDict

from learner.cards.accuracy import Metric, accuracy_section
from learner.cards.privacy_document import FLAVOUR, TRUST
from learner.cards.rendering import COVERED, AccountTerms, Privacy, neighbours_of, not_covered, view_of
from learner.cards.words import code, markdown_table, number, plain

NOT_STORED = "not stored"
# Beyond it e^epsilon bounds nothing that anybody could use.
LARGEST_ODDS = 1e6


class LimitLine(TypedDict):
    """A limit as somebody set it."""

    when: str
    who: str
    epsilon: float
    delta: float
    reason: str


class UsedMechanism(TypedDict):
    """What one mechanism was used for on an account."""

    name: str
    uses: int
    epsilon: float
    delta: float


class AccountFacts(TypedDict):
    """An account with its history."""

    terms: AccountTerms
    limits: list[LimitLine]
    mechanisms: list[UsedMechanism]
    entries: int
    checkpoint: str
    in_population: bool


class Facts(TypedDict):
    """Everything the document is written from."""

    name: str
    made_on: str
    privacy: Privacy
    accounts: list[AccountFacts]
    texts_per_contributor: int | None
    selection: str
    estimator: str
    features: str
    newest_version: int | None
    metrics: list[Metric]
    checks: dict[str, str]
    public_key: str
    second_factor: str
    encrypted: bool


def answered(facts: Facts) -> str:
    """Return the document as Markdown; what the site does not know says so."""
    lines = [
        f"# NIST SP 800-226: {plain(facts['name'])}",
        "",
        f"Answered on {plain(facts['made_on'])} from the configuration and the ledger. {NOT_STORED.capitalize()} "
        "stands where the site does not know: somebody has to say it who does.",
        "",
    ]
    for title, questions in (
        ("The guarantee", _guarantee(facts)),
        ("Unit of privacy", _unit(facts)),
        ("Trust and adversary", _trust(facts)),
        ("Algorithms and their correctness", _algorithms(facts)),
        ("Utility and bias", _utility(facts)),
        ("Composition and other releases", _composition(facts)),
        ("Security and access", _security(facts)),
        ("Collection and keeping of data", _collection()),
    ):
        lines += [f"## {title}", ""]
        for question, answer in questions:
            lines += [f"### {question}", "", *answer, ""]
    return "\n".join(lines).rstrip() + "\n"


Questions = Iterator[tuple[str, Sequence[str]]]


def _guarantee(facts: Facts) -> Questions:
    shown = facts["privacy"]["questions_shown"]
    yield (
        "What is released?",
        [
            "Models and their versions, and which questions were asked and when."
            if shown
            else "Models and their versions."
        ],
    )
    yield (
        "Which definition of differential privacy holds, with which parameters?",
        markdown_table(
            ("protects", "definition", "epsilon, delta (limit, the guarantee)", "epsilon, delta (spent)"),
            [
                (
                    terms["protects"],
                    _definition(terms),
                    f"{number(terms['limit_epsilon'])}, {number(terms['limit_delta'])}",
                    f"{number(terms['spent_epsilon'])}, {number(terms['spent_delta'])}",
                )
                for terms in _terms(facts)
            ],
        ),
    )
    yield "What does epsilon mean for one person?", [_meaning(terms) for terms in _terms(facts)]
    yield (
        "Who chose the parameters, when, and why?",
        markdown_table(
            ("protects", "when", "who", "epsilon, delta", "reason given"),
            [
                (
                    account["terms"]["protects"],
                    line["when"],
                    line["who"] or NOT_STORED,
                    f"{number(line['epsilon'])}, {number(line['delta'])}",
                    line["reason"],
                )
                for account in facts["accounts"]
                for line in account["limits"]
            ],
        ),
    )


def _unit(facts: Facts) -> Questions:
    yield (
        "What is protected, and which data sets are neighbours?",
        [f"- {plain(terms['protects'])}: one {terms['unit']}; {neighbours_of(terms)}." for terms in _terms(facts)],
    )
    cap = facts["texts_per_contributor"]
    by_person = any(terms["unit"] == "contributor" for terms in _terms(facts))
    if by_person and cap is not None:
        bounded = f"Yes: a contributor counts with at most {cap} texts; what is beyond is left out."
    elif by_person:
        bounded = "Yes: a contributor is the unit, whatever their records."
    else:
        bounded = "No: each record is protected by itself. Somebody with k records has k times the epsilon."
    yield "Is what one person contributes bounded?", [bounded]
    yield (
        "Do records of different people depend on each other?",
        [f"{NOT_STORED.capitalize()}. The guarantee does not speak about it."],
    )


def _trust(facts: Facts) -> Questions:
    privacy = facts["privacy"]
    yield "Central, local or another model?", ["Central: the site holds the records and adds the noise."]
    yield "Who is trusted?", [f"{TRUST[privacy['oracle']].capitalize()}."]
    yield "Against whom does the guarantee hold?", [f"Against {COVERED[view_of(privacy)]}."]
    yield "Against whom, and what, does it not?", [f"- {sentence}" for sentence in not_covered(privacy)]


def _algorithms(facts: Facts) -> Questions:
    yield (
        "Which mechanisms were used, how often, at what cost?",
        markdown_table(
            ("protects", "mechanism", "uses", "epsilon", "delta"),
            [
                (
                    account["terms"]["protects"],
                    each["name"],
                    str(each["uses"]),
                    number(each["epsilon"]),
                    number(each["delta"]),
                )
                for account in facts["accounts"]
                for each in account["mechanisms"]
            ],
        )
        if any(account["mechanisms"] for account in facts["accounts"])
        else ["None yet."],
    )
    yield (
        "What does the project choose?",
        [f"- {name}: {plain(chosen)}" for name, chosen in _chosen(facts) if chosen],
    )
    yield (
        "Where does the noise come from, and what of floating point?",
        [
            "From the operating system's generator, by exact samplers (OpenDP) where it is discrete; docs/privacy.md "
            "says what each mechanism does about floating point. Costs are integers, rounded up."
        ],
    )
    yield (
        "Is anything chosen by looking at private data without paying?",
        ["No: thresholds, vocabularies, bounds and stopping are public or paid for; what has no proof is refused."],
    )
    yield (
        "Was the implementation tested?",
        [f"- {name}: {plain(said)}" for name, said in sorted(facts["checks"].items())]
        or ["No version is released yet, so no check of one stands here."],
    )


def _utility(facts: Facts) -> Questions:
    version = facts["newest_version"]
    yield (
        "How useful is what is released?",
        accuracy_section(facts["metrics"]) if version is not None else ["No version is released yet."],
    )
    yield (
        "Does the noise harm small groups more?",
        [
            f"Of people: {NOT_STORED}, since no attribute of a person is kept. Of classes: the release page shows the "
            "recall of each on public test sets."
        ],
    )


def _composition(facts: Facts) -> Questions:
    yield (
        "How do costs add up?",
        [
            f"- {plain(terms['protects'])}: {FLAVOUR.get(terms['filter'], terms['filter'])}. Parameters may be "
            "chosen adaptively; the database refuses what would pass the limit."
            for terms in _terms(facts)
        ],
    )
    inside = [account for account in facts["accounts"] if account["in_population"]]
    yield (
        "Is anything else released about the same people?",
        ["Other projects of its population are counted together with this one, under a limit of their own."]
        if inside
        else [f"By other projects of this site: outside any common limit. Elsewhere: {NOT_STORED}."],
    )
    yield (
        "Can the limit rise?",
        ["Yes, with a reason that stays in the ledger; the cards of all versions are then issued anew."],
    )


def _security(facts: Facts) -> Questions:
    yield (
        "Who may read the records?",
        ["The project's managers, and its annotators what they are asked; engineers read none."],
    )
    yield "Is a second factor asked for?", [plain(facts["second_factor"]) or "Of nobody."]
    yield "Is traffic encrypted?", ["Yes." if facts["encrypted"] else "Not by this site's settings."]
    yield "Are the data encrypted where they lie?", [f"{NOT_STORED.capitalize()}: that is the host's."]
    yield (
        "Can the history be rewritten?",
        [
            "The database refuses to change or remove an entry, and entries are chained by hashes. Whoever keeps these "
            f"checkpoints notices another history; they are signed with {code(facts['public_key'])}.",
            "",
            *(
                line
                for account in facts["accounts"]
                for line in (
                    f"{plain(account['terms']['protects'])}, {account['entries']} entries:",
                    "",
                    "```",
                    *(
                        account["checkpoint"].rstrip("\n").split("\n")
                        if account["checkpoint"]
                        else ["not signed: entries were lost"]
                    ),
                    "```",
                    "",
                )
            ),
        ][:-1],
    )


def _collection() -> Questions:
    yield "How were the data collected, and for what did people agree?", [f"{NOT_STORED.capitalize()}."]
    yield (
        "How long are records kept?",
        ["As the project's managers set it on the retention page; no part of this document."],
    )
    yield (
        "Can somebody be forgotten?",
        ["Yes, by a manager: their slots are emptied. Released models stay as they are."],
    )


def _terms(facts: Facts) -> list[AccountTerms]:
    return [account["terms"] for account in facts["accounts"]]


def _definition(terms: AccountTerms) -> str:
    if terms["filter"] == "pure" and not terms["limit_delta"]:
        return "pure DP"
    return FLAVOUR.get(terms["filter"], terms["filter"])


def _meaning(terms: AccountTerms) -> str:
    odds = math.exp(min(terms["limit_epsilon"], 100.0))
    times = (
        f"at most {number(odds)} times" if odds <= LARGEST_ODDS else "more than a million times, which bounds little"
    )
    # With a delta the odds are bounded but for outputs that weigh about as much; the word says that it is a reading.
    unlikely = f", roughly, for all but unlikely outputs (delta {number(terms['limit_delta'])})"
    return (
        f"- {plain(terms['protects'])}: whatever somebody holds likely about one {terms['unit']}, all that is "
        f"ever released multiplies the odds by {times}{unlikely if terms['limit_delta'] else ''}."
    )


def _chosen(facts: Facts) -> tuple[tuple[str, str], ...]:
    return (("selection", facts["selection"]), ("estimator", facts["estimator"]), ("features", facts["features"]))
