"""The page that travels with a released model: what it predicts, what it guarantees, how to load it."""

from typing import Any, Literal, NotRequired, TypedDict

from learner.cards.accuracy import Metric, accuracy_section
from learner.cards.common_limit import account_limit_words
from learner.cards.front_matter import front_matter_lines
from learner.cards.words import code, markdown_table, number, plain, stated_limit
from learner.linear_model import LinearModel

PIPELINE_TAGS = {
    "hashing_text": "text-classification",
    "sentence_encoder": "text-classification",
    "static_encoder": "text-classification",
    "tabular": "tabular-classification",
    "image": "image-classification",
    "principal_image": "image-classification",
}


class Card(TypedDict):
    """What is said about a release besides its guarantee."""

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
    """One account: its limit is the guarantee, what is spent stands beside it.

    Where a limit rises, a card issued anew prints it, and what stood when the version was released stays beside it.
    """

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
    """One ledger entry the release descends from."""

    id: str
    kind: str
    summary: str
    epsilon: float
    delta: float


class Privacy(TypedDict):
    """The guarantee of a release."""

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


COVERED = {
    "trusted": "anyone who sees the released models, and which questions were asked and when",
    "secret": "anyone who sees the released models, and when they were released",
    "crowd": "the annotators and anyone else who sees the texts that passed the gate, and anyone who sees the models",
}
NOT_COVERED = {
    "secret": (
        "the annotators, who read the records by design, and whoever learns from them which records were asked, "
        "how many or when",
        "whoever runs the site or holds its database",
        "what the moment shows at which a manager closes a block by hand, if the answers decided it",
        "that one question kept another from being reached, where a block closed before everything was asked",
        "what one record shows about another that depends on it beyond the unit of protection",
    ),
    "trusted": (
        "the annotators, who read the records by design",
        "whoever runs the site or holds its database",
        "what one record shows about another that depends on it beyond the unit of protection",
    ),
    "crowd": (
        "whoever runs the site or holds its database",
        "what the annotators themselves do with the texts they are shown",
        "what one record shows about another that depends on it beyond the unit of protection",
    ),
}
# Of a crowd's answers, by the unit of their account.
ANSWERS_NOT_COVERED = {
    "answer": (
        "answers, from the project's managers, who read all of them, and what they do by hand where others see it",
        "several answers of one annotator together, beyond as many times the limit of one answer",
    ),
    "annotator": (
        "answers, from the project's managers, who read all of them, and what they do by hand where others see it",
        "that an annotator took part, when, what they skipped or reported, and their answers to hidden checks",
        "somebody who takes part under several names, beyond as many times the limit of one annotator",
    ),
    "": ("any answer of an annotator: the answers are declared not to be secret",),
}
ADJACENCY_WORDS = {
    "null": "two data sets that differ in one {unit}, replaced by an empty placeholder",
    "replace": "two data sets that differ in one {unit}, replaced by another",
    "add_remove": "two data sets of which one lacks one {unit}",
}

REISSUE = (
    "A limit may be raised, with a reason that stays in the ledger. This card is then issued anew and signed before "
    "anything is spent under the higher limit; the newest one counts and is found where this release came from."
)

RANDOMIZED = (
    "What the answers to a question agree on left the site through a randomised response, {times} for each "
    "question. Epsilon {epsilon} of {whose} covers all questions, rounds, trainings and versions together; it was "
    "spent once, and this version cost nothing more."
)
ONE_ANSWER = "one answer"
ONE_ANNOTATOR = "one annotator, whose answers to at most {questions} questions are protected together,"

# What neighbours differ in where it is no single thing.
UNIT_WORDS = {"annotator": "all answers of one annotator"}

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


def render_card(model: LinearModel, *, feature_kind: str, card: Card, privacy: Privacy) -> str:
    """Return the model card as Markdown with YAML front matter."""
    lines = [
        *front_matter(feature_kind=feature_kind, card=card, privacy=privacy),
        f"# {plain(card['name'])}, version {card['version']}",
        "",
        plain(card["predicts"]),
        "",
        tells(model),
        f"It is a linear model ({plain(card['estimator'])}) over {model.dimension} features, trained on "
        f"{_trained_on(card)} and released on {plain(card['created_at'])}.",
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
                (entry["id"], entry["kind"], entry["summary"], number(entry["epsilon"]), number(entry["delta"]))
                for entry in privacy["entries"]
            ],
        ),
        "",
        "## Accuracy on public data",
        "",
        *accuracy_section(card["metrics"], estimate=card.get("no_privacy", "")),
        "",
        *loading_section(),
    ]
    return "\n".join(lines) + "\n"


def loading_section() -> list[str]:
    """Return how a downloaded release is read."""
    return [
        "## Loading",
        "",
        "`manifest.json` lists the SHA-256 of every file, `features.json` describes the features completely,",
        "`weights.json` holds the same numbers as `model.skops`, and `privacy.json` the guarantee for programs.",
        "",
        LOADING,
    ]


def tells(model: LinearModel) -> str:
    """Say which classes a model tells apart, and what it says of each."""
    names = ", ".join(code(name) for name in model.classes)
    if not model.names_sets:
        return f"It tells apart {len(model.classes)} classes: {names}."
    return (
        f"It says of each of {len(model.classes)} classes by itself whether a record has it, so a record has several, "
        f"one or none: {names}. Right, in the accuracy below, is who is given all classes of an example and no other."
    )


def _trained_on(card: Card) -> str:
    if card["questions_asked"] is not None:
        return f"the answers to at most {card['questions_asked']} questions"
    return (
        f"the answers to a secret sample, in which each of {card['pool_size']} records took part with probability "
        f"at most {number(card['sampling_rate'] or 0.0)}, starting from the release before it"
    )


def view_of(privacy: Privacy) -> str:
    """Return whose view of the project the guarantee is about."""
    return privacy["oracle"] if privacy["questions_shown"] else "secret"


def front_matter(*, feature_kind: str, card: Card, privacy: Privacy) -> list[str]:
    """Return YAML lines, each value written so that YAML 1.1 and 1.2 read the same."""
    tag = PIPELINE_TAGS[feature_kind]
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
        fields |= {
            "metrics": ["accuracy", "f1"],
            "model-index": [{"name": card["name"], "results": results}],
        }
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


def guarantee_section(privacy: Privacy) -> list[str]:
    """Return the limits, in words and as a table, and whom they protect from whom."""
    lines = []
    for account in privacy["accounts"]:
        neighbours = neighbours_of(account)
        lines += [
            f"For {plain(account['protects'])}: ({_limit(account)})-differential privacy for {neighbours}. This is the "
            f"account's limit as it stood on {plain(privacy['issued_at'])}, when this card was issued, for all that "
            f"the account pays for together.{_raised(account)}"
            f"{account_limit_words(account)}",
            "",
        ]
    if privacy["answers"]:
        lines += [plain(privacy["answers"]), ""]
    lines += [REISSUE, ""]
    rows = [
        (
            account["protects"],
            account["unit"],
            account["filter"],
            _limit(account),
            f"{number(account['spent_epsilon'])}, {number(account['spent_delta'])}",
        )
        for account in privacy["accounts"]
    ]
    lines += markdown_table(
        ("protects", "unit", "filter", "limit when issued (epsilon, delta)", "spent when released"),
        rows,
    )
    lines += ["", f"Covered: {COVERED[view_of(privacy)]}.", "", "Not covered:", ""]
    lines += [f"- {sentence}" for sentence in not_covered(privacy)]
    return lines


def neighbours_of(account: AccountTerms) -> str:
    """Say in what the data sets differ that an account makes hard to tell apart."""
    if account["unit"] in UNIT_WORDS:
        return f"two data sets that differ in {UNIT_WORDS[account['unit']]}, replaced by others"
    return ADJACENCY_WORDS[account["adjacency"]].format(unit=account["unit"])


def not_covered(privacy: Privacy) -> list[str]:
    """Return what the guarantee says nothing about."""
    found = [*NOT_COVERED[view_of(privacy)]]
    if privacy["oracle"] == "crowd":
        units = [account["unit"] for account in privacy["accounts"] if account["unit"] in ANSWERS_NOT_COVERED]
        found += ANSWERS_NOT_COVERED[units[0] if units else ""]
    return found


def _limit(account: AccountTerms) -> str:
    return f"{number(account['limit_epsilon'])}, {number(account['limit_delta'])}"


def _raised(account: AccountTerms) -> str:
    """Say what the limit was when the version was released, where it has risen since."""
    before = account["limit_epsilon_when_released"], account["limit_delta_when_released"]
    if before == (account["limit_epsilon"], account["limit_delta"]):
        return ""
    return f" When the version was released, the limit was ({number(before[0])}, {number(before[1])})."
