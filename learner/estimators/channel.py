"""Learn classes from answers that went through a known channel, under scikit-learn's contract."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dpal.recompute.channel import fit_channel
from learner.estimators.adaptation import adapt_to_texts, checked_rows, checked_weights, middle_of
from learner.linear_model import LinearModel


@dataclass(eq=False, repr=False)
class ChannelClassifier(BaseEstimator):  # type: ignore[misc]
    r"""Softmax regression on responses whose law given the true class is public.

    A question with features x was answered, the consensus c went through a channel, and z came out. The log likelihood
    of z is :math:`\ln \sum_c P(z \mid c)\, p_w(c \mid x)`, whatever prior the channel of this question used; several
    responses to one question multiply. Everything it reads is public or was paid with the responses, so it may be
    fitted any number of times.

    The scores are those of a prior model, times a strength that is learned, plus weights of their own that are kept
    small. Where texts without answers are given, the prior moved to them (`adapt_to_texts`) is a second such model.

    Parameters
    ----------
    classes : sequence of str
        Declared classes, at least two.
    prior : LinearModel, optional
        A model at epsilon 0, such as one made from descriptions, or an earlier release.
    regularization : float, optional
        Penalty on the weights of its own, for rows scaled to a mean square of 1; by default the one of
        `dpal.recompute.channel.REGULARIZATIONS` under which held-out responses are likeliest.

    Attributes
    ----------
    model_ : LinearModel
        What was learned.
    regularization_ : float
        The penalty that was used.
    strengths_ : ndarray, shape (0,), (1,) or (2,)
        Of the prior and of the prior moved to the texts.
    log_likelihood_ : float
        Of the responses it was fitted to, in nats.
    parameters_ : dict
        All that the fit read beside the responses.

    References
    ----------
    .. [1] Ghazi, Golowich, Kumar, Manurangsi, Zhang, "Deep learning with label differential privacy", 2021 (the
       responses, from which it learns as if they were true).
    .. [2] Patrini, Rozza, Menon, Nock, Qu, "Making deep neural networks robust to label noise: a loss correction
       approach", 2017, Theorem 2 (the forward correction).
    """

    _: KW_ONLY
    classes: Sequence[str]
    prior: LinearModel | None = None
    regularization: float | None = None

    def fit(
        self,
        X: NDArray[np.floating],
        likelihoods: NDArray[np.floating],
        *,
        texts: NDArray[np.floating] | None = None,
        weights: NDArray[np.floating] | None = None,
        moved: LinearModel | None = None,
    ) -> Self:
        """Learn from responses.

        `X`, shape (n, d), are the features of the questions, n >= 1; `likelihoods`, shape (n, K), P(z | c) of what came
        out for each class: >= 0, some of them > 0; `texts`, shape (m, d), everything that passed the gate, asked about
        or not, and `weights` how often each was said; `moved` is what `adapt_to_texts` made of the prior and these
        texts, where it is known already.
        """
        self.parameters_: dict[str, Any] = self.public_parameters(X, texts=texts, weights=weights, moved=moved)
        chances = checked_likelihoods(likelihoods, len(self.parameters_["rows"]), len(self.classes))
        found = fit_channel(self.parameters_, chances)
        self.regularization_, self.strengths_ = found.regularization, found.strengths
        self.log_likelihood_ = found.log_likelihood
        self.model_ = LinearModel(found.weights.coef, found.weights.intercept, tuple(self.classes), "softmax")
        return self

    def public_parameters(
        self,
        X: NDArray[np.floating],
        *,
        texts: NDArray[np.floating] | None = None,
        weights: NDArray[np.floating] | None = None,
        moved: LinearModel | None = None,
    ) -> dict[str, Any]:
        """Return all that a fit reads beside the responses; parameters are those of `fit`."""
        self._check_classes()
        rows = checked_rows(X, np.shape(X)[1] if np.ndim(X) == 2 else 0)
        public = rows if texts is None else checked_rows(texts, rows.shape[1])
        counts = checked_weights(weights if texts is not None else None, len(public))
        centre, scale = middle_of(public, counts)
        priors = self._priors(None if texts is None else public, counts, moved)
        return {
            "rows": rows,
            "priors": [scored(each) for each in priors],
            "centre": centre,
            "scale": scale,
            "regularization": None if self.regularization is None else float(self.regularization),
        }

    def _check_classes(self) -> None:
        classes = tuple(self.classes)
        if len(classes) < 2 or len(set(classes)) != len(classes):
            raise ValueError(f"classes must be distinct, at least two, got {len(classes)}")
        if self.prior is not None and self.prior.classes != classes:
            raise ValueError("the prior must be a model of the same classes")
        if self.prior is not None and len(classes) > 2 and self.prior.multiclass != "softmax":
            raise ValueError("the prior must be a softmax model, whose scores add up with weights")
        if self.regularization is not None and not 0 < self.regularization < np.inf:
            raise ValueError(f"regularization must be > 0 and finite, got {self.regularization}")

    def _priors(
        self, texts: NDArray[np.float64] | None, counts: NDArray[np.float64], moved: LinearModel | None
    ) -> list[LinearModel]:
        if self.prior is None:
            return []
        if texts is None:
            return [self.prior]
        return [self.prior, moved or adapt_to_texts(self.prior, texts, counts)]


def checked_likelihoods(likelihoods: NDArray[np.floating], n: int, n_classes: int) -> NDArray[np.float64]:
    """Return the probabilities of n responses, refusing what no response has."""
    chances = np.asarray(likelihoods, dtype=np.float64)
    if chances.shape != (n, n_classes):
        raise ValueError(f"likelihoods must have shape {(n, n_classes)}, got {chances.shape}")
    if n and not (np.isfinite(chances).all() and (chances >= 0).all() and (chances.max(axis=1) > 0).all()):
        raise ValueError("likelihoods must be finite numbers >= 0, and not all 0 for a question")
    return chances


def scored(model: LinearModel) -> dict[str, Any]:
    """Return a prior as a transcript holds it."""
    return {"coef": model.coef, "intercept": model.intercept, "multiclass": model.multiclass}
