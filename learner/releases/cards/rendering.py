"""Model card of a release in Markdown."""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from learner.linear_model import LinearModel
from learner.releases.cards.accuracy import Metric, accuracy_section
from learner.releases.cards.words import Telling, code, markdown_table, number, number_pair, plain, stated_limit
from privacy.wording import as_message, as_plural_message
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


# What YAML does not take in a text, or takes for the end of a line.
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def front_matter_lines(fields: Mapping[str, Any]) -> list[str]:
    return ["---", *(f"{name}: {as_yaml(value)}" for name, value in fields.items()), "---", ""]


def as_yaml(value: Any) -> str:
    """Return a value on one line: JSON, but for two things that YAML 1.1 reads otherwise."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_yaml(name)}: {as_yaml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    if isinstance(value, float):
        digits, exponent, power = repr(value).partition("e")
        return digits + ("" if "." in digits else ".0") + exponent + power
    if isinstance(value, str):
        return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    return json.dumps(value)


# By what the records are.
PIPELINE_TAGS = {"text": "text-classification", "table": "tabular-classification", "image": "image-classification"}


class Card(TypedDict):
    # The name in addresses, which is one project's alone.
    project: str
    name: str
    version: int
    predicts: str
    estimator: str
    # Asked, not answered: how many got a consensus depends on what the records hold, and files leave the boundary.
    questions_asked: int | None
    # Of a secret sample the number of questions is secret, too; the law of its coins is public.
    pool_size: int | None
    sampling_rate: float | None
    created_at: str
    metrics: list[Metric]
    # What a plan found without privacy, in a sentence.
    no_privacy: NotRequired[str]


class AccountTerms(TypedDict):
    """One account: its limit is the guarantee, what is spent stands beside it."""

    protects: str
    filter: str
    unit: str
    adjacency: str
    limit_epsilon: float
    limit_delta: float
    spent_epsilon: float
    spent_delta: float
    limit_epsilon_when_released: float
    limit_delta_when_released: float
    # The people whom several projects share, by name; empty where the account is outside any common limit.
    population: NotRequired[str]
    records_per_person: NotRequired[int]


class EntryLine(TypedDict):
    id: str
    kind: str
    summary: str
    epsilon: float
    delta: float


class Privacy(TypedDict):
    oracle: Literal["trusted", "crowd"]
    questions_shown: bool
    accounts: list[AccountTerms]
    entries: list[EntryLine]
    # Hash of the last ledger entry by what the account protects, when the files were written.
    heads: dict[str, str]
    # The day on which these limits stood.
    issued_at: str
    # How answers left the site, in a sentence; empty where each training reads them itself.
    answers: str
    # Size of transcript.json, where there is one.
    transcript_bytes: NotRequired[int]


COVERED = {
    "trusted": _("anyone who sees the released models, and which questions were asked and when"),
    "secret": _("anyone who sees the released models, and when they were released"),
    "crowd": _(
        "the annotators and anyone else who sees the texts that passed the gate, and anyone who sees the models"
    ),
}
BEYOND_THE_SITE = _("whoever runs the site or holds its database")
BEYOND_THE_UNIT = _("what one record shows about another that depends on it beyond the unit of protection")
NOT_COVERED = {
    "secret": (
        _(
            "the annotators, who read the records by design, and whoever learns from them which records were asked, "
            "how many or when"
        ),
        BEYOND_THE_SITE,
        _("what the moment shows at which a manager closes a block by hand, if the answers decided it"),
        _("that one question kept another from being reached, where a block closed before everything was asked"),
        BEYOND_THE_UNIT,
    ),
    "trusted": (_("the annotators, who read the records by design"), BEYOND_THE_SITE, BEYOND_THE_UNIT),
    "crowd": (BEYOND_THE_SITE, _("what the annotators themselves do with the texts they are shown"), BEYOND_THE_UNIT),
}
BY_HAND = _("answers, from the project's managers, who read all of them, and what they do by hand where others see it")
# Of a crowd's answers, by the unit of their account.
ANSWERS_NOT_COVERED = {
    "answer": (BY_HAND, _("several answers of one annotator together, beyond as many times the limit of one answer")),
    "annotator": (
        BY_HAND,
        _("that an annotator took part, when, what they skipped or reported, and their answers to hidden checks"),
        _("somebody who takes part under several names, beyond as many times the limit of one annotator"),
    ),
    "": (_("any answer of an annotator: the answers are declared not to be secret"),),
}
UNITS = {"record": _("record"), "contributor": _("contributor"), "answer": _("answer"), "annotator": _("annotator")}
ADJACENCY_WORDS = {
    "null": _("two data sets that differ in one {word_unit}, replaced by an empty placeholder"),
    "replace": _("two data sets that differ in one {word_unit}, replaced by another"),
    "add_remove": _("two data sets of which one lacks one {word_unit}"),
}

REISSUE = _(
    "A limit may be raised, with a reason that stays in the ledger. This card is then issued anew and signed before "
    "anything is spent under the higher limit; the newest one counts and is found where this release came from."
)

# What neighbours differ in where it is no single thing.
UNIT_WORDS = {"annotator": _("two data sets that differ in all answers of one annotator, replaced by others")}

OPEN_ANSWERS = _(
    "The answers of this project are declared not to be secret: no account protects them, and the model may show any "
    "of them. Protected is what people said in front of the gate, and nothing else."
)

LOADING = """```python
import json

import numpy as np
import skops.io

model = skops.io.load("model.skops", trusted=[])  # standard scikit-learn types alone
with open("weights.json", encoding="utf-8") as file:
    weights = json.load(file)
rows = np.zeros((1, weights["dimension"]))  # features as described in features.json
print(model.predict(rows), model.predict_proba(rows))
```"""


def render_card(model: LinearModel, *, reads: str, card: Card, privacy: Privacy) -> str:
    return (
        "\n".join(front_matter(reads=reads, card=card, privacy=privacy))
        + "\n"
        + card_body(model, card=card, privacy=privacy)
    )


def card_body(model: LinearModel, *, card: Card, privacy: Privacy, tell: Telling = str) -> str:
    what_it_is = as_message(
        "It is a linear model ({word_estimator}) over {dimension} features, trained on {word_trained} and released on "
        "{day}.",
        word_estimator=card["estimator"],
        dimension=model.dimension,
        word_trained=_trained_on(card),
        day=plain(card["created_at"]),
    )
    lines = [
        f"# {plain(card['name'])}, version {card['version']}",
        "",
        plain(card["predicts"]),
        "",
        tells(model, tell=tell),
        tell(what_it_is),
        "",
        f"## {tell(_('Guarantee'))}",
        "",
        *guarantee_section(privacy, tell=tell),
        "",
        f"## {tell(_('Ledger entries'))}",
        "",
        *markdown_table(
            (_("entry"), _("kind"), _("what"), _("epsilon"), _("delta")),
            [
                (
                    entry["id"],
                    entry["kind"],
                    tell(entry["summary"]),
                    tell(number(entry["epsilon"])),
                    tell(number(entry["delta"])),
                )
                for entry in privacy["entries"]
            ],
            tell=tell,
        ),
        "",
        f"## {tell(_('Accuracy on public data'))}",
        "",
        *accuracy_section(card["metrics"], estimate=card.get("no_privacy", ""), tell=tell),
        "",
        *transcript_section(privacy, tell=tell),
        *loading_section(tell=tell),
    ]
    return "\n".join(lines) + "\n"


def transcript_section(privacy: Privacy, *, tell: Telling = str) -> list[str]:
    if "transcript_bytes" not in privacy:
        return []
    said = as_message(
        "`transcript.json` has {n} bytes and holds every noisy answer that the weights were made of: `dpal verify` "
        "recomputes them from it.",
        n=privacy["transcript_bytes"],
    )
    return [f"## {tell(_('Transcript'))}", "", tell(said), ""]


def loading_section(*, tell: Telling = str) -> list[str]:
    files_said = (
        _("`manifest.json` lists the SHA-256 of every file, `features.json` describes the features completely,"),
        _("`weights.json` holds the same numbers as `model.skops`, and `privacy.json` the guarantee for programs."),
    )
    return [f"## {tell(_('Loading'))}", "", *map(tell, files_said), "", LOADING]


def tells(model: LinearModel, *, tell: Telling = str) -> str:
    names = ", ".join(code(name) for name in model.classes)
    if not model.names_sets:
        return tell(
            as_plural_message(
                "It knows {n} class: {names}.",
                "It tells apart {n} classes: {names}.",
                n=len(model.classes),
                names=names,
            )
        )
    return tell(
        as_plural_message(
            "It says of {n} class whether a record has it: {names}.",
            "It says of each of {n} classes by itself whether a record has it, so a record has several, one or none: "
            "{names}. Right, in the accuracy below, is who is given all classes of an example and no other.",
            n=len(model.classes),
            names=names,
        )
    )


def _trained_on(card: Card) -> str:
    if card["questions_asked"] is not None:
        return as_plural_message(
            "the answers to at most {n} question", "the answers to at most {n} questions", n=card["questions_asked"]
        )
    return as_plural_message(
        "the answers to a secret sample, in which its {n} record took part with probability at most {rate:.6g}, "
        "starting from the release before it",
        "the answers to a secret sample, in which each of {n} records took part with probability at most {rate:.6g}, "
        "starting from the release before it",
        n=card["pool_size"],
        rate=card["sampling_rate"] or 0.0,
    )


def view_of(privacy: Privacy) -> str:
    return privacy["oracle"] if privacy["questions_shown"] else "secret"


def front_matter(*, reads: str, card: Card, privacy: Privacy) -> list[str]:
    tag = PIPELINE_TAGS[reads]
    fields: dict[str, Any] = {
        "library_name": "sklearn",
        # Whose model it is, its owner says; a card that guessed would grant rights nobody gave.
        "license": "unknown",
        "pipeline_tag": tag,
        "tags": ["differential-privacy", "sklearn", "skops", "onnx", tag],
        "model_name": card["name"],
        "version": card["version"],
        "privacy": [
            {
                "epsilon": stated_limit(account["limit_epsilon"]),
                "delta": stated_limit(account["limit_delta"]),
                "unit": account["unit"],
                "adjacency": account["adjacency"],
            }
            for account in privacy["accounts"]
        ],
    }
    if card["metrics"]:
        # Of nothing that was measured nothing is claimed; the hub refuses an index without results.
        results = [_result(metric, task=tag) for metric in card["metrics"]]
        fields |= {"metrics": ["accuracy", "f1"], "model-index": [{"name": card["name"], "results": results}]}
    return front_matter_lines(fields)


def _result(metric: Metric, *, task: str) -> dict[str, Any]:
    return {
        "task": {"type": task},
        "dataset": {"type": "public-test-set", "name": metric["dataset"]},
        "metrics": [
            {"type": "accuracy", "name": "Accuracy", "value": metric["accuracy"], "verified": False},
            {"type": "f1", "name": "Macro F1", "value": metric["macro_f1"], "verified": False},
            {"type": "expected_calibration_error", "value": metric["calibration_error"], "verified": False},
        ],
    }


def guarantee_section(privacy: Privacy, *, tell: Telling = str) -> list[str]:
    lines = []
    for account in privacy["accounts"]:
        promised = as_message(
            "For {protects}: ({epsilon:.6g}, {delta:.6g})-differential privacy for {word_neighbours}. This is the "
            "account's limit as it stood on {day}, when this card was issued, for all that the account pays for "
            "together.",
            protects=plain(account["protects"]),
            epsilon=account["limit_epsilon"],
            delta=account["limit_delta"],
            word_neighbours=neighbours_of(account),
            day=plain(privacy["issued_at"]),
        )
        said = [promised, _raised(account), account_limit_words(account)]
        lines += [" ".join(tell(sentence) for sentence in said if sentence), ""]
    if privacy["answers"]:
        lines += [plain(tell(privacy["answers"])), ""]
    lines += [tell(REISSUE), ""]
    rows = [
        (
            account["protects"],
            tell(account["unit"]),
            account["filter"],
            tell(number_pair(account["limit_epsilon"], account["limit_delta"])),
            tell(number_pair(account["spent_epsilon"], account["spent_delta"])),
        )
        for account in privacy["accounts"]
    ]
    head = (_("protects"), _("unit"), _("filter"), _("limit when issued (epsilon, delta)"), _("spent when released"))
    lines += markdown_table(head, rows, tell=tell)
    lines += ["", tell(as_message("Covered: {word_who}.", word_who=COVERED[view_of(privacy)])), ""]
    lines += [tell(_("Not covered:")), ""]
    lines += [f"- {tell(sentence)}" for sentence in not_covered(privacy)]
    return lines


def neighbours_of(account: AccountTerms) -> str:
    if account["unit"] in UNIT_WORDS:
        return UNIT_WORDS[account["unit"]]
    unit = account["unit"]
    return as_message(ADJACENCY_WORDS[account["adjacency"]], word_unit=UNITS.get(unit, unit))


def not_covered(privacy: Privacy) -> list[str]:
    found = [*NOT_COVERED[view_of(privacy)]]
    if privacy["oracle"] == "crowd":
        units = [account["unit"] for account in privacy["accounts"] if account["unit"] in ANSWERS_NOT_COVERED]
        found += ANSWERS_NOT_COVERED[units[0] if units else ""]
    return found


def _raised(account: AccountTerms) -> str:
    """Say what the limit was when the version was released, where it has risen since."""
    before = account["limit_epsilon_when_released"], account["limit_delta_when_released"]
    if before == (account["limit_epsilon"], account["limit_delta"]):
        return ""
    return as_message(
        "When the version was released, the limit was ({epsilon:.6g}, {delta:.6g}).", epsilon=before[0], delta=before[1]
    )
