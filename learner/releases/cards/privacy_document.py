"""privacy.json: what a release guarantees, in words that registries of private releases and auditors use."""

from collections import Counter
from typing import Any

from learner.releases.cards.rendering import COVERED, AccountTerms, Privacy, neighbours_of, not_covered, view_of

SCHEMA = "dpal-privacy/2"
# What composes under each filter, in the words of the accountant.
FLAVOUR = {"pure": "approximate DP by a pure filter", "zcdp": "zero-concentrated DP, converted to approximate DP"}
PURE = "pure DP"
TRUST = {
    "trusted": "annotators read the records and are trusted with them, as is whoever runs the site",
    "crowd": "annotators are not trusted and see what passed the gate alone; whoever runs the site is trusted",
}


def privacy_document(privacy: Privacy) -> dict[str, Any]:
    view = view_of(privacy)
    used = Counter(entry["kind"] for entry in privacy["entries"])
    return {
        "schema": SCHEMA,
        "deployment": {
            "data_product": "machine learning model",
            "access": "non-interactive: the model and its versions are published",
            "model": "central",
            "trust": TRUST[privacy["oracle"]],
            "mechanisms": [{"name": name, "uses": number} for name, number in sorted(used.items())],
            "implementation": "DPAL; noise by OpenDP's exact samplers or a cryptographic generator",
            "accounting": "a filter that refuses what would pass the limit, over an append-only, hash-chained ledger",
        },
        "covered": [COVERED[view]],
        "not_covered": not_covered(privacy),
        "questions_shown": privacy["questions_shown"],
        "oracle": privacy["oracle"],
        "issued_at": privacy["issued_at"],
        "answers": privacy["answers"],
        "accounts": [
            _account(account, privacy["heads"].get(account["protects"], "")) for account in privacy["accounts"]
        ],
        "entries": privacy["entries"],
        **({"transcript_bytes": privacy["transcript_bytes"]} if "transcript_bytes" in privacy else {}),
    }


def _account(account: AccountTerms, head: str) -> dict[str, Any]:
    flavour = FLAVOUR.get(account["filter"], account["filter"])
    if account["filter"] == "pure" and not account["limit_delta"]:
        flavour = PURE
    return {
        **account,
        "unit_of_privacy": account["unit"],
        "neighbouring_data_sets": neighbours_of(account),
        "flavour": flavour,
        "guarantee": {"epsilon": account["limit_epsilon"], "delta": account["limit_delta"]},
        "guarantee_when_released": {
            "epsilon": account["limit_epsilon_when_released"],
            "delta": account["limit_delta_when_released"],
        },
        "spent_when_released": {"epsilon": account["spent_epsilon"], "delta": account["spent_delta"]},
        "chain_head": head,
    }
