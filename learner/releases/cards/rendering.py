"""Model card of a release in Markdown."""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from dpal.spans.text import MAX_TOKENS
from learner.estimators.abstaining import Threshold
from learner.linear_model import LinearModel
from learner.releases.cards.accuracy import Expected, Metric, TypeScore, accuracy_section, type_words, types_section
from learner.releases.cards.words import code, markdown_table, number, number_pair, plain, stated_limit


def account_limit_words(account: Mapping[str, Any]) -> str:
    """Say whether other projects that hold records of the same people share a limit with an account of records."""
    if account["unit"] not in ("record", "contributor") or "population" not in account:
        return ""
    if not account["population"]:
        return (
            "When the version was released, the account was outside any common limit: whoever has records in other "
            "projects, too, loses the sum of what they spend."
        )
    name = " ".join(account["population"].split()).replace("`", "'")
    return (
        f"When the version was released, the account belonged to the population `{name}`: its projects together stay "
        f"within a limit of their own, counted for a person with at most {account['records_per_person']} records here."
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
PIPELINE_TAGS = {
    "text": "text-classification",
    "table": "tabular-classification",
    "image": "image-classification",
    "spans": "token-classification",
}


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
    # The forecast when the version was released; missing where nobody simulated these settings.
    expected: NotRequired[Expected]
    # Who wrote the public words about the classes, as the owner says it.
    words_source: NotRequired[str]
    # Why it was not compared with version 0.
    not_compared: NotRequired[str]
    # When the model abstains, once counts on a secret sample told it.
    abstain: NotRequired[list[Threshold]]
    # Entity F1 on private texts that the model was not trained on, from noisy counts.
    held_out: NotRequired[TypeScore]


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
    "trusted": "anyone who sees the released models, and which questions were asked and when",
    "secret": "anyone who sees the released models, and when they were released",
    "crowd": "the annotators and anyone else who sees the texts that passed the gate, and anyone who sees the models",
}
BEYOND_THE_SITE = "whoever runs the site or holds its database"
BEYOND_THE_UNIT = "what one record shows about another that depends on it beyond the unit of protection"
NOT_COVERED = {
    "secret": (
        (
            "the annotators, who read the records by design, and whoever learns from them which records were asked, "
            "how many or when"
        ),
        BEYOND_THE_SITE,
        "what the moment shows at which a manager closes a block by hand, if the answers decided it",
        "that one question kept another from being reached, where a block closed before everything was asked",
        BEYOND_THE_UNIT,
    ),
    "trusted": ("the annotators, who read the records by design", BEYOND_THE_SITE, BEYOND_THE_UNIT),
    "crowd": (BEYOND_THE_SITE, "what the annotators themselves do with the texts they are shown", BEYOND_THE_UNIT),
}
BY_HAND = "answers, from the project's managers, who read all of them, and what they do by hand where others see it"
# Of a crowd's answers, by the unit of their account.
ANSWERS_NOT_COVERED = {
    "answer": (BY_HAND, "several answers of one annotator together, beyond as many times the limit of one answer"),
    "annotator": (
        BY_HAND,
        "that an annotator took part, when, what they skipped or reported, and their answers to hidden checks",
        "somebody who takes part under several names, beyond as many times the limit of one annotator",
    ),
    "": ("any answer of an annotator: the answers are declared not to be secret",),
}
ADJACENCY_WORDS = {
    "null": "two data sets that differ in one {word_unit}, replaced by an empty placeholder",
    "replace": "two data sets that differ in one {word_unit}, replaced by another",
    "add_remove": "two data sets of which one lacks one {word_unit}",
}

REISSUE = (
    "A limit may be raised, with a reason that stays in the ledger. This card is then issued anew and signed before "
    "anything is spent under the higher limit; the newest one counts and is found where this release came from."
)

# What neighbours differ in where it is no single thing.
UNIT_WORDS = {"annotator": "two data sets that differ in all answers of one annotator, replaced by others"}

OPEN_ANSWERS = (
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


FINDING = """```python
import dpal

model = dpal.load("https://site.example", "project")
print(model.predict(["a text"]))
```"""


def render_card(model: LinearModel, *, reads: str, card: Card, privacy: Privacy) -> str:
    measure = measure_of(model)
    kind = card["estimator"] if model.names_spans else f"linear model ({card['estimator']})"
    what_it_is = (
        f"It is a {kind} over {model.dimension} features, trained on {_trained_on(card)} "
        f"and released on {plain(card['created_at'])}."
    )
    lines = [
        f"# {plain(card['name'])}, version {card['version']}",
        "",
        plain(card["predicts"]),
        "",
        tells(model),
        what_it_is,
        "",
        "## Guarantee",
        "",
        *guarantee_section(privacy),
        "",
        "## Ledger entries",
        "",
        *markdown_table(
            ("entry", "kind", "what", "epsilon", "delta"),
            [
                (
                    entry["id"],
                    entry["kind"],
                    entry["summary"],
                    number(entry["epsilon"]),
                    number(entry["delta"]),
                )
                for entry in privacy["entries"]
            ],
        ),
        "",
        *words_source(card),
        *([said, ""] if (said := card.get("not_compared")) else []),
        f"## {measure[0].upper()}{measure[1:]} on public data",
        "",
        *accuracy_section(card["metrics"], expected=card.get("expected"), held_out="held_out" in card, measure=measure),
        *types_section(card["metrics"]),
        *held_out_section(card),
        "",
        *abstain_section(card),
        *transcript_section(privacy),
        *loading_section(model),
    ]
    return "\n".join([*front_matter(reads=reads, card=card, privacy=privacy), *lines]) + "\n"


def held_out_section(card: Card) -> list[str]:
    if "held_out" not in card:
        return []
    found = card["held_out"]
    said = (
        f"Entity F1 on private texts that were held out: {type_words(found)}, of about {found['spans']} spans. It is "
        "from noisy counts of at most 8 true and 8 predicted spans a text, which the training's ledger entry pays for."
    )
    return ["", said]


def abstain_section(card: Card) -> list[str]:
    if not card.get("abstain"):
        return []
    rows = [
        (
            f"{one.precision:.0%}",
            "none found" if one.threshold is None else number(one.threshold),
            f"{one.answered:.0%}" if one.threshold is not None else "",
        )
        for one in card["abstain"]
    ]
    said = (
        "Noisy counts on a secret sample that the model was not trained on chose these thresholds, charged to the "
        "account as listed above. Each keeps its share of right answers on records like the pool's in at least 95 % "
        "of all such choices. `dpal predict --abstain` uses them."
    )
    head = ("right at least", "least probability of the likeliest class", "answers, about")
    return ["## Abstaining", "", *markdown_table(head, rows), "", said, ""]


def transcript_section(privacy: Privacy) -> list[str]:
    if "transcript_bytes" not in privacy:
        return []
    said = (
        f"`transcript.json` has {privacy['transcript_bytes']} bytes and holds every noisy answer that the weights were "
        "made of: `dpal verify` recomputes them from it."
    )
    return ["## Transcript", "", said, ""]


def words_source(card: Card) -> list[str]:
    said = card.get("words_source")
    return [f"Words about the classes: {plain(said)}.", ""] if said else []


def loading_section(model: LinearModel) -> list[str]:
    if model.names_spans:
        return ["## Loading", "", "`dpal.load` checks the files and finds spans with their scores.", "", FINDING]
    files_said = (
        "`manifest.json` lists the SHA-256 of every file, `features.json` describes the features completely,",
        "`weights.json` holds the same numbers as `model.skops`, and `privacy.json` the guarantee for programs.",
    )
    return ["## Loading", "", *files_said, "", LOADING]


def measure_of(model: LinearModel) -> str:
    return "entity F1" if model.names_spans else "accuracy"


def tells(model: LinearModel) -> str:
    names = ", ".join(code(name) for name in model.classes)
    n = len(model.classes)
    if model.names_spans:
        return (
            f"It finds spans of these types in the first {MAX_TOKENS} words of a text: {names}. Right, in the entity "
            "F1 below, is a span with its exact ends and type."
        )
    if not model.names_sets:
        return f"It knows 1 class: {names}." if n == 1 else f"It tells apart {n} classes: {names}."
    if n == 1:
        return f"It says of 1 class whether a record has it: {names}."
    return (
        f"It says of each of {n} classes by itself whether a record has it, so a record has several, one or none: "
        f"{names}. Right, in the accuracy below, is who is given all classes of an example and no other."
    )


def _trained_on(card: Card) -> str:
    asked, rate = card["questions_asked"], card["sampling_rate"] or 0.0
    if asked is not None:
        return f"the answers to at most {asked} question{'' if asked == 1 else 's'}"
    records = "its 1 record" if card["pool_size"] == 1 else f"each of {card['pool_size']} records"
    return (
        f"the answers to a secret sample, in which {records} took part with probability at most {rate:.6g}, starting "
        "from the release before it"
    )


def view_of(privacy: Privacy) -> str:
    return privacy["oracle"] if privacy["questions_shown"] else "secret"


def front_matter(*, reads: str, card: Card, privacy: Privacy) -> list[str]:
    tag = PIPELINE_TAGS[reads]
    fields: dict[str, Any] = {
        "library_name": "dpal" if reads == "spans" else "sklearn",
        # Whose model it is, its owner says; a card that guessed would grant rights nobody gave.
        "license": "unknown",
        "pipeline_tag": tag,
        "tags": ["differential-privacy", *([] if reads == "spans" else ["sklearn", "skops", "onnx"]), tag],
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
        measured = ["f1"] if reads == "spans" else ["accuracy", "f1"]
        fields |= {"metrics": measured, "model-index": [{"name": card["name"], "results": results}]}
    return front_matter_lines(fields)


def _result(metric: Metric, *, task: str) -> dict[str, Any]:
    kind, name = ("f1", "Entity F1") if task == PIPELINE_TAGS["spans"] else ("accuracy", "Accuracy")
    return {
        "task": {"type": task},
        "dataset": {"type": "public-test-set", "name": metric["dataset"]},
        "metrics": [
            {"type": kind, "name": name, "value": metric["accuracy"], "verified": False},
            {"type": "f1", "name": "Macro F1", "value": metric["macro_f1"], "verified": False},
            {"type": "expected_calibration_error", "value": metric["calibration_error"], "verified": False},
        ],
    }


def guarantee_section(privacy: Privacy) -> list[str]:
    lines = []
    for account in privacy["accounts"]:
        promised = (
            f"For {plain(account['protects'])}: ({account['limit_epsilon']:.6g}, {account['limit_delta']:.6g})-"
            f"differential privacy for {neighbours_of(account)}. This is the account's limit as it stood on "
            f"{plain(privacy['issued_at'])}, when this card was issued, for all that the account pays for together."
        )
        said = [promised, _raised(account), account_limit_words(account)]
        lines += [" ".join(sentence for sentence in said if sentence), ""]
    if privacy["answers"]:
        lines += [plain(privacy["answers"]), ""]
    lines += [REISSUE, ""]
    rows = [
        (
            account["protects"],
            account["unit"],
            account["filter"],
            number_pair(account["limit_epsilon"], account["limit_delta"]),
            number_pair(account["spent_epsilon"], account["spent_delta"]),
        )
        for account in privacy["accounts"]
    ]
    head = ("protects", "unit", "filter", "limit when issued (epsilon, delta)", "spent when released")
    lines += markdown_table(head, rows)
    lines += ["", f"Covered: {COVERED[view_of(privacy)]}.", ""]
    lines += ["Not covered:", ""]
    lines += [f"- {sentence}" for sentence in not_covered(privacy)]
    return lines


def neighbours_of(account: AccountTerms) -> str:
    if account["unit"] in UNIT_WORDS:
        return UNIT_WORDS[account["unit"]]
    unit = account["unit"]
    return ADJACENCY_WORDS[account["adjacency"]].format(word_unit=unit)


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
    return "When the version was released, the limit was ({:.6g}, {:.6g}).".format(*before)
