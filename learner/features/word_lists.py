"""words.json: the public lists behind the rules about words, for whoever applies one elsewhere."""

import json

from privacy.gate.common_words import COMMON_WORDS
from privacy.gate.normalizers import FUNCTION_WORDS, MASKS, NUMBER, OTHER, WORD_RULES, Normalizer

WORDS = "words.json"
SCHEMA = "dpal-words/1"


def word_lists(normalizer: Normalizer) -> dict[str, bytes]:
    """Return the file by its name; nothing for rules that look at characters alone."""
    if normalizer not in WORD_RULES:
        return {}
    body = {
        "schema": SCHEMA,
        "masks": MASKS,
        "number": NUMBER,
        "other": OTHER,
        "function_words": sorted(FUNCTION_WORDS),
        "common_words": sorted(COMMON_WORDS),
    }
    return {WORDS: (json.dumps(body, sort_keys=True, indent=1) + "\n").encode()}
