"""Loading a release and predicting 100,000 short texts, beside the bare numpy path.

    .venv/bin/python benchmarks/load.py [--texts N] [--rounds R]

The bare path reads weights.json and nothing else: scikit-learn's HashingVectorizer after the words' rule in plain
Python, the site's own hashed words, or its own table of word vectors, times a numpy matrix. The client's path begins
with a folder on the disk: it checks the signature and every digest, reads the files, compares samples, and predicts.
Both have one thread and are timed by the process's own time, in turns; the ratio is that of the fastest rounds and
must not exceed 1.2.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "client" / "src"))

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

import dpal
from learner.features.base import Featurizer
from learner.features.static_encoder import StaticEncoder, read_table, table_digest
from learner.features.text import HashingTextFeaturizer
from learner.linear_model import LinearModel
from learner.releases.artifacts.files import write_artifacts
from learner.releases.artifacts.provenance import Provenance
from learner.releases.artifacts.signatures import Signer
from learner.releases.cards.rendering import Card, Privacy

LIMIT = 1.2
FEATURES = 128
CLASSES = tuple("abcde")
SIGNER = Signer.from_secret("a secret of the benchmark, long enough for a key")
CARD: Card = {
    "project": "bench",
    "name": "Bench",
    "version": 1,
    "predicts": "What is wanted?",
    "estimator": "none",
    "questions_asked": 1,
    "pool_size": None,
    "sampling_rate": None,
    "created_at": "2026-01-01",
    "metrics": [],
}
PRIVACY: Privacy = {
    "oracle": "trusted",
    "questions_shown": True,
    "accounts": [],
    "entries": [],
    "heads": {},
    "issued_at": "2026-01-01",
    "answers": "",
}

PROVENANCE: Provenance = {
    "configuration_sha256": "",
    "data": {"public_sha256": {}},
    "ledger": [],
}


def texts(number: int) -> list[str]:
    """Return short commands of two to nine words out of 5,000, some beyond ASCII."""
    rng = np.random.default_rng(1)
    letters = list("abcdefghijklmnoprstuvwé")
    words = ["".join(rng.choice(letters, size=rng.integers(2, 9), p=[0.998 / 22] * 22 + [0.002])) for _ in range(5000)]
    return [" ".join(rng.choice(words, size=rng.integers(2, 10))).capitalize() + "?" for _ in range(number)]


def words_of(text: str) -> list[str]:
    """Apply the rule L1 as docs used to print it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = (character for character in folded if character not in "'\u2019\u02bc")
    return "".join(" " if unicodedata.category(one).startswith("P") else one for one in kept).split()


def bare_hashing(folder: Path, said: list[str]) -> np.ndarray:
    """Predict by scikit-learn's vectoriser and a product."""
    weights = json.loads((folder / "weights.json").read_text())
    hashing = HashingVectorizer(
        n_features=FEATURES, tokenizer=words_of, token_pattern=None, lowercase=False, norm="l2", alternate_sign=True
    )
    return shares(hashing.transform(said).toarray(), weights)


def bare_vectors(folder: Path, said: list[str]) -> np.ndarray:
    """Predict by the site's own sums of word vectors and a product."""
    weights = json.loads((folder / "weights.json").read_text())
    # A program that begins anew reads the table, as the client does.
    table_digest.cache_clear()
    read_table.cache_clear()
    return shares(StaticEncoder(n_features=FEATURES).raw_rows(said), weights)


def bare_site(folder: Path, said: list[str]) -> np.ndarray:
    """Predict by the site's own hashed words, an array at a time, and a product."""
    weights = json.loads((folder / "weights.json").read_text())
    return shares(HashingTextFeaturizer(FEATURES).raw_rows(said), weights)


def shares(rows: np.ndarray, weights: dict) -> np.ndarray:
    """Return probabilities of one logistic model a class."""
    logistic = 1 / (1 + np.exp(-(rows @ np.array(weights["coef"]).T + np.array(weights["intercept"]))))
    return logistic / logistic.sum(axis=1, keepdims=True)


def seconds(action: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Return how much of the process's time an action takes."""
    begun = time.process_time()
    found = action()
    return time.process_time() - begun, found


def measure(
    featurizer: Featurizer, bare: Callable[[Path, list[str]], np.ndarray], said: list[str], rounds: int
) -> float:
    """Return the ratio of the client's time to the bare path's, both at their fastest."""
    rng = np.random.default_rng(2)
    model = LinearModel(rng.normal(size=(len(CLASSES), FEATURES)), rng.normal(size=len(CLASSES)), CLASSES)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "release"
        write_artifacts(
            folder, model=model, featurizer=featurizer, card=CARD, privacy=PRIVACY, provenance=PROVENANCE, signer=SIGNER
        )
        for _ in range(rounds):
            taken, found = seconds(lambda: dpal.open_folder(folder, public_key=SIGNER.public_key).predict_proba(said))
            ours.append(taken)
            taken, expected = seconds(lambda: bare(folder, said))
            theirs.append(taken)
            assert np.abs(found - expected).max() < 1e-6
    ratio = min(ours) / min(theirs)
    print(f"{bare.__name__:14} client {min(ours):6.2f} s   bare {min(theirs):6.2f} s   ratio {ratio:.2f}")
    return ratio


def main() -> None:
    """Print all ratios of one run, and fail where one is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    said = texts(options.texts)
    print(f"{len(said):,} texts, load {' '.join(f'{value:.1f}' for value in os.getloadavg())}")
    ratios = [
        measure(HashingTextFeaturizer(FEATURES), bare_hashing, said, options.rounds),
        measure(HashingTextFeaturizer(FEATURES), bare_site, said, options.rounds),
        measure(StaticEncoder(n_features=FEATURES), bare_vectors, said, options.rounds),
    ]
    if max(ratios) > LIMIT:
        sys.exit(f"above {LIMIT}")


if __name__ == "__main__":
    main()
