"""Prefer records on which hypotheses compatible with everything released still disagree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog, nnls

from learner.linear_model import LinearModel
from learner.strategies.scoring import score_blocks
from learner.strategies.screen import RateScreenChoice, Screen
from privacy.accounting.events import BernoulliScreenEvent, Event
from privacy.arrays import Array
from privacy.choices import parameter
from privacy.mechanisms.screening import coin_probability
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

VolumeMethod = Literal["auto", "exact", "sampled"]
LARGEST_DIMENSION = 20
# Solving one small problem for each undecided record is affordable up to here; beyond, witnesses decide alone.
LARGEST_EXACT = 20_000
WITNESSES = 256
TOLERANCE = 1e-9


class VersionSpace:
    r"""The cone of hypotheses :math:`\{w : \langle a, w\rangle \ge 0 \text{ for every row } a \text{ of evidence}\}`.

    A record is undecided if its hyperplane passes through the inside of the cone: then hypotheses in it disagree
    about the record. In two dimensions the cone is an arc with two end points, which decide. In more, hypotheses
    sampled by hit-and-run are witnesses of disagreement; a record on which they agree is decided exactly if
    it, or its negative, is a non-negative combination of the evidence (Farkas' lemma).

    Parameters
    ----------
    evidence : array_like of shape (k, d)
        Half-spaces that hold the truth: labelled public points, each times its label -1 or +1, or the rows of
        `cone_around`. Released or public numbers only.
    witnesses : int
        How many hypotheses to sample, >= 2.
    seed : int
        Seed of the witnesses, a public number: what they are tells nothing about any record.

    Raises
    ------
    ValueError
        If shapes do not fit or there are more than 20 columns.

    References
    ----------
    .. [1] Rane, Brito, "A version space perspective on differentially private pool-based active learning", 2019.
    .. [2] Lovasz, Vempala, "Hit-and-run from a corner", 2006.
    """

    def __init__(self, evidence: ArrayLike, *, witnesses: int = WITNESSES, seed: int = 0) -> None:
        rows = np.array(evidence, dtype=np.float64)
        if rows.ndim != 2 or not 1 <= rows.shape[1] <= LARGEST_DIMENSION:
            raise ValueError(f"evidence must have 1 to {LARGEST_DIMENSION} columns, got shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("evidence must be finite")
        if witnesses < 2:
            raise ValueError(f"witnesses must be >= 2, got {witnesses}")
        norms = np.linalg.norm(rows, axis=1)
        self.evidence: Array = rows[norms > 0] / norms[norms > 0, None]
        self.center = self._deepest_point()
        self.witnesses: Array = np.empty((0, rows.shape[1]))
        if self.center is not None:
            self.witnesses = (
                self._arc_ends(self.center)
                if rows.shape[1] == 2
                else self._hit_and_run(self.center, count=witnesses, seed=seed)
            )

    def undecided(self, points: NDArray[np.floating], *, exact: bool) -> NDArray[np.bool_]:
        """Say for which points, shape (n, d), hypotheses disagree; without `exact` only witnesses are asked."""
        wide = points.astype(np.float64)
        if self.center is None:
            return np.zeros(len(wide), dtype=np.bool_)
        if not len(self.evidence):
            return np.asarray(wide.any(axis=1), dtype=np.bool_)
        sides = wide @ self.witnesses.T
        # A hyperplane along the border of the cone, up to rounding, does not pass through its inside.
        border = TOLERANCE * np.linalg.norm(wide, axis=1)
        disputed: NDArray[np.bool_] = (sides.min(axis=1) < -border) & (sides.max(axis=1) > border)
        if exact and wide.shape[1] > 2:
            for place in np.flatnonzero(~disputed & np.isfinite(wide).all(axis=1)):
                disputed[place] = not self._is_decided(wide[place])
        return disputed

    def _is_decided(self, point: Array) -> bool:
        length = float(np.linalg.norm(point))
        if length == 0:
            return True
        unit = point / length
        return any(float(nnls(self.evidence.T, side * unit)[1]) <= TOLERANCE for side in (1.0, -1.0))

    def _deepest_point(self) -> Array | None:
        """Return the unit vector farthest inside all half-spaces in the box's measure, None if they have no inside."""
        n_columns = self.evidence.shape[1]
        if not len(self.evidence):
            anywhere: Array = np.eye(1, n_columns)[0]
            return anywhere
        depth = np.ones((len(self.evidence), 1))
        found = linprog(
            np.append(np.zeros(n_columns), -1.0),
            A_ub=np.hstack([-self.evidence, depth]),
            b_ub=np.zeros(len(self.evidence)),
            bounds=[(-1, 1)] * n_columns + [(0, None)],
            method="highs",
        )
        if found.x is None or found.x[-1] <= TOLERANCE:
            return None
        center = np.asarray(found.x[:-1], dtype=np.float64)
        return center / np.linalg.norm(center)

    def _arc_ends(self, center: Array) -> Array:
        """Return the two extreme hypotheses of a cone in the plane."""
        if not len(self.evidence):
            return np.eye(2)
        middle = np.arctan2(center[1], center[0])
        normals = np.arctan2(self.evidence[:, 1], self.evidence[:, 0])
        # Each half-space allows a quarter turn to either side of its normal; the centre is inside all of them.
        offset = (normals - middle + np.pi) % (2 * np.pi) - np.pi
        ends = middle + np.array([(offset - np.pi / 2).max(), (offset + np.pi / 2).min()])
        return np.stack([np.cos(ends), np.sin(ends)], axis=1)

    def _hit_and_run(self, center: Array, *, count: int, seed: int) -> Array:
        """Walk along random chords of the cone cut by the unit ball; all walkers start at the centre."""
        # Public noise, so a seeded generator is in place.
        rng = np.random.default_rng(seed)
        walkers = np.tile(center / 2, (count, 1))
        for _step in range(8 * center.size):
            steps = rng.normal(size=walkers.shape)
            steps /= np.linalg.norm(steps, axis=1, keepdims=True)
            along = (walkers * steps).sum(axis=1)
            reach = np.sqrt(np.maximum(along**2 + 1 - (walkers**2).sum(axis=1), 0))
            low, high = -along - reach, -along + reach
            inside, slope = walkers @ self.evidence.T, steps @ self.evidence.T
            with np.errstate(divide="ignore", invalid="ignore"):
                exits = -inside / slope
            low = np.maximum(low, np.where(slope > 0, exits, -np.inf).max(axis=1, initial=-np.inf))
            high = np.minimum(high, np.where(slope < 0, exits, np.inf).min(axis=1, initial=np.inf))
            walkers += (low + rng.random(count) * np.maximum(high - low, 0))[:, None] * steps
        return walkers


def cone_around(weights: ArrayLike, *, half_angle: float) -> Array:
    r"""Return evidence for the hypotheses within about `half_angle` of released weights.

    Parameters
    ----------
    weights : array_like of shape (d,)
        Released weights; zeros give no evidence.
    half_angle : float
        Angle in radians, in (0, pi/2): how far the truth may lie from the release, a public guess from the noise.

    Returns
    -------
    ndarray of shape (2 (d - 1), d)
        With an orthonormal basis :math:`e_j` of the complement of the direction u, the half-spaces
        :math:`\langle w, \sin\theta\, u \pm \cos\theta\, e_j\rangle \ge 0`: a box-shaped cone around u that holds
        the round one.
    """
    vector = np.asarray(weights, dtype=np.float64)
    if not 0 < half_angle < np.pi / 2:
        raise ValueError(f"half_angle must lie in (0, pi/2), got {half_angle}")
    norm = float(np.linalg.norm(vector))
    if norm == 0 or vector.size < 2:
        return np.empty((0, vector.size))
    unit = vector / norm
    # The Householder reflection that sends the first axis to the direction, up to sign, sends the others beside it.
    mirror = unit.copy()
    mirror[0] += 1.0 if unit[0] >= 0 else -1.0
    basis = np.eye(unit.size) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
    beside = np.cos(half_angle) * basis[1:]
    return np.vstack([np.sin(half_angle) * unit + beside, np.sin(half_angle) * unit - beside])


class VersionSpaceScreen(Screen):
    """Select at one rate what released information leaves undecided, and everything else at a lower one.

    The version space is that of the released models, and of public evidence if there is any: a clean model,
    as in the source, would make the decision depend on other records and cost far more.

    Parameters
    ----------
    high, low : float
        Selection probabilities, 0 < low <= high < 1, taken as the nearest multiples of 2**-53.
    half_angle : float
        Angle in radians around the last released weights that is taken to hold the truth, in (0, pi/2).
    evidence : array_like of shape (k, d), optional
        Public labelled points times their labels -1 or +1, for two classes.
    method : {"auto", "exact", "sampled"}
        Whether records on which all witnesses agree are settled exactly; "auto" does so up to 20,000 candidates.

    Raises
    ------
    ValueError
        If a parameter is out of range; in `query`, if features and intercept make more than 20 dimensions.

    References
    ----------
    .. [1] Rane, Brito, "A version space perspective on differentially private pool-based active learning", 2019,
       section IV (whose Proposition 1 holds for released information only).
    """

    name = "version_space_screen"

    def __init__(
        self,
        high: float = 0.5,
        low: float = 0.1,
        *,
        half_angle: float = 0.2,
        evidence: ArrayLike | None = None,
        method: VolumeMethod = "auto",
    ) -> None:
        self.high, self.low = coin_probability(high), coin_probability(low)
        if self.low > self.high:
            raise ValueError(f"low must be <= high, got {low} and {high}")
        if not 0 < half_angle < np.pi / 2:
            raise ValueError(f"half_angle must lie in (0, pi/2), got {half_angle}")
        if method not in get_args(VolumeMethod):
            raise ValueError(f"method must be one of {', '.join(get_args(VolumeMethod))}, got {method!r}")
        self.half_angle = float(half_angle)
        self.evidence = None if evidence is None else np.asarray(evidence, dtype=np.float64)
        self.method: VolumeMethod = method

    def probabilities(self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel) -> NDArray[np.float64]:
        """Return one of the two rates for each row."""
        return np.where(self.informative(X, rows, model), *self.rates)

    def informative(self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel) -> NDArray[np.bool_]:
        """Say which rows are undecided for at least one output of the model, shape (rows,)."""
        # Refuses a model that does not fit, whatever the rows.
        next(score_blocks(X, model, candidates=rows[:1]), None)
        spaces = self._spaces(model)
        points = X[rows]
        if spaces[0].evidence.shape[1] > points.shape[1]:
            points = np.hstack([points, np.ones((len(points), 1), dtype=np.float32)])
        exact = self.method == "exact" or (self.method == "auto" and len(X) <= LARGEST_EXACT)
        undecided: NDArray[np.bool_] = np.any([space.undecided(points, exact=exact) for space in spaces], axis=0)
        return undecided

    def _spaces(self, model: LinearModel) -> Sequence[VersionSpace]:
        weights = model.coef
        evidence = self.evidence
        if model.intercept.any():
            weights = np.hstack([weights, model.intercept[:, None]])
            if evidence is not None and evidence.shape[1] == model.dimension:
                raise ValueError("evidence needs a last column, the labels, since the model has an intercept")
        known = np.empty((0, weights.shape[1])) if evidence is None else evidence
        if known.ndim != 2 or known.shape[1] != weights.shape[1]:
            raise ValueError(f"evidence must have {weights.shape[1]} columns, got shape {known.shape}")
        return [VersionSpace(np.vstack([known, cone_around(row, half_angle=self.half_angle)])) for row in weights]

    def one_pass_event(self) -> Event:
        """Return the event of one pass."""
        return BernoulliScreenEvent(*self.rates)


@dataclass(frozen=True)
class Undecided(RateScreenChoice):
    """A version-space screen as projects choose it."""

    name: ClassVar[str] = "version_space_screen"
    label: ClassVar[str] = _("screen by what released models leave undecided")

    half_angle: float = parameter(
        0.2,
        above=0,
        below=1.57,
        unit="radians",
        label=_("Screen: half angle"),
        help=_("How far, in radians, the truth may be from the released weights."),
        rule=_("Must lie between 0 and 1.57, got {got}."),
    )

    def strategy(self) -> VersionSpaceScreen:
        """Return the screen."""
        return VersionSpaceScreen(self.screen_high, self.screen_low, half_angle=self.half_angle)

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse more features than a version space can be told apart in."""
        # Features and intercept together: above this nearly every record cuts the cone of hypotheses.
        n_features = settings.get("n_features", 0)
        broken = dict(super().rules(settings))
        if n_features >= LARGEST_DIMENSION:
            broken["feature_dimension"] = as_message(
                "A version space is told apart in up to {most} features, got {got}: "
                "above, nearly every record is undecided.",
                most=LARGEST_DIMENSION - 1,
                got=n_features,
            )
        return broken
