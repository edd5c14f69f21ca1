"""What NIST SP 800-226 has an evaluator ask of a differential privacy guarantee, answered from what a project stores.

References
----------
.. [1] Near, Darais, Lefkovitz, Howarth, "Guidelines for Evaluating Differential Privacy Guarantees", NIST SP 800-226,
   2025. The subjects are those of its pyramid and its hazards; the questions are worded here.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TypedDict

from learner.releases.cards.accuracy import Metric, accuracy_section
from learner.releases.cards.privacy_document import FLAVOUR, PURE, TRUST
from learner.releases.cards.rendering import COVERED, UNITS, AccountTerms, Privacy, neighbours_of, not_covered, view_of
from learner.releases.cards.words import Telling, code, markdown_table, number, number_pair, plain
from privacy.wording import as_message, as_plural_message
from privacy.wording import gettext_noop as _

NOT_STORED = _("not stored")
NO_VERSION = _("No version is released yet.")
# Beyond it e^epsilon bounds nothing that anybody could use.
LARGEST_ODDS = 1e6
NOT_SIGNED = _("not signed: entries were lost")
# What the gate before a release checks, as the document calls it.
CHECKS = {"entries": _("entries"), "files": _("files"), "ledger": _("ledger"), "mechanism": _("mechanism")}


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


def answered(facts: Facts, *, tell: Telling = str) -> str:
    """Return the document as Markdown, in English or as `tell` says it; what the site does not know says so."""
    lines = [
        f"# NIST SP 800-226: {plain(facts['name'])}",
        "",
        tell(
            as_message(
                "Answered on {day} from the configuration and the ledger. Not stored stands where the site does not "
                "know: somebody has to say it who does.",
                day=plain(facts["made_on"]),
            )
        ),
        "",
    ]
    for title, questions in (
        (_("The guarantee"), _guarantee(facts, tell)),
        (_("Unit of privacy"), _unit(facts, tell)),
        (_("Trust and adversary"), _trust(facts, tell)),
        (_("Algorithms and their correctness"), _algorithms(facts, tell)),
        (_("Utility and bias"), _utility(facts, tell)),
        (_("Composition and other releases"), _composition(facts, tell)),
        (_("Security and access"), _security(facts, tell)),
        (_("Collection and keeping of data"), _collection()),
    ):
        lines += [f"## {tell(title)}", ""]
        for question, answer in questions:
            lines += [f"### {tell(question)}", "", *map(tell, answer), ""]
    return "\n".join(lines).rstrip() + "\n"


Questions = Iterator[tuple[str, Sequence[str]]]


def _guarantee(facts: Facts, tell: Telling) -> Questions:
    shown = facts["privacy"]["questions_shown"]
    yield (
        _("What is released?"),
        [
            _("Models and their versions, and which questions were asked and when.")
            if shown
            else _("Models and their versions.")
        ],
    )
    yield (
        _("Which definition of differential privacy holds, with which parameters?"),
        markdown_table(
            (
                _("protects"),
                _("definition"),
                _("epsilon, delta (limit, the guarantee)"),
                _("epsilon, delta (spent)"),
            ),
            [
                (
                    terms["protects"],
                    tell(_definition(terms)),
                    tell(number_pair(terms["limit_epsilon"], terms["limit_delta"])),
                    tell(number_pair(terms["spent_epsilon"], terms["spent_delta"])),
                )
                for terms in _terms(facts)
            ],
            tell=tell,
        ),
    )
    yield _("What does epsilon mean for one person?"), [f"- {tell(_meaning(terms))}" for terms in _terms(facts)]
    yield (
        _("Who chose the parameters, when, and why?"),
        markdown_table(
            (_("protects"), _("when"), _("who"), _("epsilon, delta"), _("reason given")),
            [
                (
                    account["terms"]["protects"],
                    line["when"],
                    line["who"] or tell(NOT_STORED),
                    tell(number_pair(line["epsilon"], line["delta"])),
                    tell(line["reason"]),
                )
                for account in facts["accounts"]
                for line in account["limits"]
            ],
            tell=tell,
        ),
    )


def _unit(facts: Facts, tell: Telling) -> Questions:
    yield (
        _("What is protected, and which data sets are neighbours?"),
        [
            "- "
            + tell(
                as_message(
                    "{protects}: one {word_unit}; {word_neighbours}.",
                    protects=plain(terms["protects"]),
                    word_unit=UNITS.get(terms["unit"], terms["unit"]),
                    word_neighbours=neighbours_of(terms),
                )
            )
            for terms in _terms(facts)
        ],
    )
    cap = facts["texts_per_contributor"]
    by_person = any(terms["unit"] == "contributor" for terms in _terms(facts))
    if by_person and cap is not None:
        bounded: str = as_message(
            "Yes: a contributor counts with at most {most} texts; what is beyond is left out.", most=cap
        )
    elif by_person:
        bounded = _("Yes: a contributor is the unit, whatever their records.")
    else:
        bounded = _("No: each record is protected by itself. Somebody with k records has k times the epsilon.")
    yield _("Is what one person contributes bounded?"), [bounded]
    yield (
        _("Do records of different people depend on each other?"),
        [_("Not stored. The guarantee does not speak about it.")],
    )


def _trust(facts: Facts, tell: Telling) -> Questions:
    privacy = facts["privacy"]
    yield (
        _("Central, local or another model?"),
        [_("Central: the site holds the records and adds the noise.")],
    )
    trusted = tell(TRUST[privacy["oracle"]])
    yield _("Who is trusted?"), [f"{trusted[:1].upper()}{trusted[1:]}."]
    yield (
        _("Against whom does the guarantee hold?"),
        [as_message("Against {word_who}.", word_who=COVERED[view_of(privacy)])],
    )
    yield _("Against whom, and what, does it not?"), [f"- {tell(sentence)}" for sentence in not_covered(privacy)]


def _algorithms(facts: Facts, tell: Telling) -> Questions:
    yield (
        _("Which mechanisms were used, how often, at what cost?"),
        markdown_table(
            (_("protects"), _("mechanism"), _("uses"), _("epsilon"), _("delta")),
            [
                (
                    account["terms"]["protects"],
                    each["name"],
                    str(each["uses"]),
                    tell(number(each["epsilon"])),
                    tell(number(each["delta"])),
                )
                for account in facts["accounts"]
                for each in account["mechanisms"]
            ],
            tell=tell,
        )
        if any(account["mechanisms"] for account in facts["accounts"])
        else [_("None yet.")],
    )
    yield (
        _("What does the project choose?"),
        [f"- {tell(name)}: {plain(chosen)}" for name, chosen in _chosen(facts) if chosen],
    )
    yield (
        _("Where does the noise come from, and what of floating point?"),
        [
            _(
                "From the operating system's generator, by exact samplers (OpenDP) where it is discrete; "
                "docs/privacy.md says what each mechanism does about floating point. Costs are integers, rounded "
                "up."
            )
        ],
    )
    yield (
        _("Is anything chosen by looking at private data without paying?"),
        [_("No: thresholds, vocabularies, bounds and stopping are public or paid for; what has no proof is refused.")],
    )
    yield (
        _("Was the implementation tested?"),
        [f"- {tell(CHECKS.get(name, name))}: {plain(tell(said))}" for name, said in sorted(facts["checks"].items())]
        or [_("No version is released yet, so no check of one stands here.")],
    )


def _utility(facts: Facts, tell: Telling) -> Questions:
    version = facts["newest_version"]
    yield (
        _("How useful is what is released?"),
        accuracy_section(facts["metrics"], tell=tell) if version is not None else [NO_VERSION],
    )
    yield (
        _("Does the noise harm small groups more?"),
        [
            _(
                "Of people: not stored, since no attribute of a person is kept. Of classes: the release page shows "
                "the recall of each on public test sets."
            )
        ],
    )


def _composition(facts: Facts, tell: Telling) -> Questions:
    yield (
        _("How do costs add up?"),
        [
            "- "
            + tell(
                as_message(
                    "{protects}: {word_filter}. Parameters may be chosen adaptively; the database refuses what would "
                    "pass the limit.",
                    protects=plain(terms["protects"]),
                    word_filter=FLAVOUR.get(terms["filter"], terms["filter"]),
                )
            )
            for terms in _terms(facts)
        ],
    )
    inside = [account for account in facts["accounts"] if account["in_population"]]
    yield (
        _("Is anything else released about the same people?"),
        [
            _("Other projects of its population are counted together with this one, under a limit of their own.")
            if inside
            else _("By other projects of this site: outside any common limit. Elsewhere: not stored.")
        ],
    )
    yield (
        _("Can the limit rise?"),
        [_("Yes, with a reason that stays in the ledger; the cards of all versions are then issued anew.")],
    )


def _security(facts: Facts, tell: Telling) -> Questions:
    yield (
        _("Who may read the records?"),
        [_("The project's managers, and its annotators what they are asked; engineers read none.")],
    )
    yield _("Is a second factor asked for?"), [plain(facts["second_factor"]) or _("Of nobody.")]
    yield (
        _("Is traffic encrypted?"),
        [_("Yes.") if facts["encrypted"] else _("Not by this site's settings.")],
    )
    yield _("Are the data encrypted where they lie?"), [_("Not stored: that is the host's.")]
    yield (
        _("Can the history be rewritten?"),
        [
            tell(
                as_message(
                    "The database refuses to change or remove an entry, and entries are chained by hashes. Whoever "
                    "keeps these checkpoints notices another history; they are signed with {key}.",
                    key=code(facts["public_key"]),
                )
            ),
            "",
            *(line for account in facts["accounts"] for line in _history(account, tell)),
        ][:-1],
    )


def _history(account: AccountFacts, tell: Telling) -> Iterator[str]:
    """Yield how many entries an account has, and the checkpoint that others witness."""
    yield tell(
        as_plural_message(
            "{protects}, {n} entry:",
            "{protects}, {n} entries:",
            protects=plain(account["terms"]["protects"]),
            n=account["entries"],
        )
    )
    note = account["checkpoint"].rstrip("\n").split("\n") if account["checkpoint"] else [tell(NOT_SIGNED)]
    yield from ("", "```", *note, "```", "")


def _collection() -> Questions:
    yield _("How were the data collected, and for what did people agree?"), [_("Not stored.")]
    yield (
        _("How long are records kept?"),
        [_("As the project's managers set it on the retention page; no part of this document.")],
    )
    yield (
        _("Can somebody be forgotten?"),
        [_("Yes, by a manager: their slots are emptied. Released models stay as they are.")],
    )


def _terms(facts: Facts) -> list[AccountTerms]:
    return [account["terms"] for account in facts["accounts"]]


def _definition(terms: AccountTerms) -> str:
    if terms["filter"] == "pure" and not terms["limit_delta"]:
        return PURE
    return FLAVOUR.get(terms["filter"], terms["filter"])


def _meaning(terms: AccountTerms) -> str:
    odds = math.exp(min(terms["limit_epsilon"], 100.0))
    times: str = _("more than a million times, which bounds little")
    if odds <= LARGEST_ODDS:
        times = as_message("at most {odds:.6g} times", odds=odds)
    values = {
        "protects": plain(terms["protects"]),
        "word_unit": UNITS.get(terms["unit"], terms["unit"]),
        "word_times": times,
    }
    if not terms["limit_delta"]:
        return as_message(
            "{protects}: whatever somebody holds likely about one {word_unit}, all that is ever released multiplies "
            "the odds by {word_times}.",
            **values,
        )
    # With a delta the odds are bounded but for outputs that weigh about as much; the word says that it is a reading.
    return as_message(
        "{protects}: whatever somebody holds likely about one {word_unit}, all that is ever released multiplies the "
        "odds by {word_times}, roughly, for all but unlikely outputs (delta {delta:.6g}).",
        **values,
        delta=terms["limit_delta"],
    )


def _chosen(facts: Facts) -> tuple[tuple[str, str], ...]:
    named = (_("selection"), _("estimator"), _("features"))
    return tuple(zip(named, (facts["selection"], facts["estimator"], facts["features"]), strict=True))
