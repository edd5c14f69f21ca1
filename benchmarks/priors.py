"""What leaning on public words is worth to logistic regression and a Huber SVM: SMS spam, paired over seeds.

Run: python -m benchmarks.priors FILE [SEEDS], where FILE has a class, a tab and a text in each line.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from learner.estimators.descriptions import ClassDescription
from learner.estimators.huber_svm import PrivateHuberSVM
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.version_zero import huber_prior, version_zero
from learner.features.choice import RecordShape
from learner.features.static_encoder import StaticTable
from learner.linear_model import LinearModel
from learner.simulation.reading import read_descriptions

CLASSES = ("ham", "spam")
SENTENCES = {
    "ham": "an ordinary personal message between people who know each other",
    "spam": "an unwanted advertising message about a prize, an offer or a paid service",
}
EXAMPLES = Path(__file__).parent / "descriptions" / "sms_spam.json"
LABELS, TEST_ROWS, EPSILON, DELTA, STRENGTH = (100, 470), 1000, 2.0, 1e-6, 3.0


def scaled(model: LinearModel, factor: float) -> LinearModel:
    """Return a model whose decision values are shorter."""
    return LinearModel(model.coef * factor, model.intercept * factor, model.classes, model.multiclass)


def main(path: Path, seeds: int) -> None:
    """Print accuracy and the paired gain over no prior with its standard error."""
    lines = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines() if "\t" in line]
    lines = [line for line in lines if line[0] in CLASSES]
    y = np.array([CLASSES.index(name) for name, _ in lines])
    featurizer = StaticTable.of({"text_columns": 128}).featurizer(RecordShape("text", 128))
    X = featurizer.transform([text for _, text in lines]).astype(np.float64)

    def encode(texts: Sequence[str]) -> NDArray[np.float64]:
        return featurizer.transform(list(texts)).astype(np.float64)

    examples = read_descriptions(EXAMPLES)
    sentences = version_zero(CLASSES, {name: ClassDescription(name, SENTENCES[name]) for name in CLASSES}, encode)
    names = version_zero(CLASSES, {}, encode)
    for_logistic = {"none": None, "names": names, "sentences": sentences}
    for_logistic["examples"] = version_zero(CLASSES, examples, encode)
    for_huber = {"none": None, "names": scaled(names, 0.3), "sentences": scaled(sentences, 0.3)}
    for_huber["examples"] = huber_prior(CLASSES, examples, encode, smoothing=1.0)
    found = defaultdict(list)
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        test = order[:TEST_ROWS]
        shared = {"classes": [0, 1], "intercept_scaling": 0.2, "random_state": 1000 + seed}
        for labels in LABELS:
            rows = order[TEST_ROWS : TEST_ROWS + labels]
            for method, delta in (("objective", 0.0), ("gaussian", DELTA)):
                for prior, model in for_logistic.items():
                    fitted = PrivateLogisticRegression(EPSILON, STRENGTH, method, delta=delta, prior=model, **shared)
                    right = fitted.fit(X[rows], y[rows]).predict(X[test]) == y[test]
                    found["logistic", method, labels, prior].append(right.mean())
            for prior, model in for_huber.items():
                svm = PrivateHuberSVM(EPSILON, STRENGTH, "gaussian", smoothing=1.0, delta=DELTA, prior=model, **shared)
                right = svm.fit(X[rows], y[rows]).predict(X[test]) == y[test]
                found["huber", "gaussian", labels, prior].append(right.mean())
    for key, shares in found.items():
        gains = np.array(shares) - np.array(found[(*key[:-1], "none")])
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        print(*key, f"{np.mean(shares):.4f} paired {gains.mean():+.4f} (standard error {error:.4f})")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 12)
