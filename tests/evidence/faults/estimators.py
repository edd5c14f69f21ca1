"""Faults in how models are trained: noise of every estimator and method, and what bounds one record."""

from tests.evidence.planting import Mutant

ESTIMATOR_NOISE = "tests/statistical/learner/estimators/test_noise_of_estimators.py"
CONVEX_NOISE = f"{ESTIMATOR_NOISE}::TestConvex"
LINEAR = "learner/estimators/linear.py"
LOGISTIC = "learner/estimators/logistic.py"
LOGISTIC_TESTS = "tests/pure/learner/estimators/test_logistic.py"
SUMS = "learner/estimators/sums.py"
SUMS_TESTS = "tests/pure/learner/estimators/test_sums.py"
SETS = "learner/estimators/label_sets.py"
SETS_TESTS = "tests/pure/learner/estimators/test_label_sets.py"
SEVERAL_TESTS = "tests/pure/annotation/choices/label_types/test_several.py"
STREAMS_TESTS = "tests/db/learner/streams/test_processing.py"
BATTERY = "tests/pure/learner/estimators/test_release_battery.py"
PURE = "tests/pure/learner/estimators/test_purity.py::test_weights_are_made_of_released_answers_alone"

ESTIMATORS = [
    Mutant(
        "several labels a record, of which the sum of all rows is not paid for",
        SETS,
        "labels_per_record=self.labels_per_record + 1,",
        "labels_per_record=self.labels_per_record,",
        (f"{SETS_TESTS}::test_a_record_with_all_its_labels_moves_as_much_as_is_charged",),
    ),
    Mutant(
        "seven tenths of the noise of several labels",
        SETS,
        "sums_mu(self.epsilon, self.delta),",
        "sums_mu(self.epsilon, self.delta) / 0.7,",
        (f"{SETS_TESTS}::test_the_price_is_what_was_asked_for",),
    ),
    Mutant(
        "a record with more labels than it pays for",
        SETS,
        "(most := int(labels.sum(axis=1).max())) > self.labels_per_record:",
        "(most := int(labels.sum(axis=1).max())) > self.labels_per_record + 1:",
        (f"{SETS_TESTS}::test_more_labels_than_declared_and_what_is_no_set_are_refused",),
    ),
    Mutant(
        "majorities that are more classes than a record pays for",
        "annotation/choices/label_types/several.py",
        "kept = kept[: self.labels_per_record]",
        "kept = kept[: self.labels_per_record + 1]",
        (f"{SEVERAL_TESTS}::test_majorities_beyond_the_number_keep_the_most_named_then_the_first",),
    ),
    Mutant(
        "seven tenths of the Gamma-norm tilt",
        LOGISTIC,
        "EuclideanNoise(event.tilt_scale)",
        "EuclideanNoise(0.7 * event.tilt_scale)",
        (f"{CONVEX_NOISE}::test_gamma_norm_tilt",),
    ),
    Mutant(
        "seven tenths of the noise of output perturbation",
        LOGISTIC,
        "EuclideanNoise(event.noise_scale)",
        "EuclideanNoise(0.7 * event.noise_scale)",
        (f"{CONVEX_NOISE}::test_output_noise",),
    ),
    Mutant(
        "seven tenths of the noise that hides where the solver stopped",
        LOGISTIC,
        "scale=event.output_scale",
        "scale=0.7 * event.output_scale",
        (f"{ESTIMATOR_NOISE}::test_noise_that_hides_where_the_solver_stopped",),
    ),
    Mutant(
        "the noise of only the first of many models",
        LOGISTIC,
        "released = self._release(rows, sides[place], priors[place], event, rng)",
        "released = self._release(rows, sides[place], priors[place], event, rng) * (0.7 if place else 1.0)",
        (
            f"{CONVEX_NOISE}::test_gamma_norm_tilt[PrivateLogisticRegression-3]",
            f"{CONVEX_NOISE}::test_output_noise[PrivateLogisticRegression-3]",
        ),
    ),
    Mutant(
        "seven tenths of the Gamma-norm tilt for the Huber loss alone",
        LOGISTIC,
        "EuclideanNoise(event.tilt_scale)",
        'EuclideanNoise(event.tilt_scale * (0.7 if hasattr(self, "smoothing") else 1.0))',
        (
            f"{CONVEX_NOISE}::test_gamma_norm_tilt[PrivateHuberSVM-2]",
            f"{CONVEX_NOISE}::test_gamma_norm_tilt[PrivateHuberSVM-3]",
        ),
    ),
    Mutant(
        "seven tenths of the noise of output perturbation for the Huber loss alone",
        LOGISTIC,
        "EuclideanNoise(event.noise_scale)",
        'EuclideanNoise(event.noise_scale * (0.7 if hasattr(self, "smoothing") else 1.0))',
        (
            f"{CONVEX_NOISE}::test_output_noise[PrivateHuberSVM-2]",
            f"{CONVEX_NOISE}::test_output_noise[PrivateHuberSVM-3]",
        ),
    ),
    Mutant(
        "rows longer than they are said to be",
        LINEAR,
        "return math.sqrt(max(over_rows(largest_square, len(rows)))) * (1 +",
        "return 0.999 * math.sqrt(max(over_rows(largest_square, len(rows)))) * (1 +",
        ("tests/pure/learner/estimators/test_rows.py::test_no_row_is_longer_than_the_largest_norm_says",),
    ),
    Mutant(
        "rows longer than declared, taken by every estimator",
        LINEAR,
        "largest_norm(rows) > norm_bound * (1",
        "largest_norm(rows) > 2 * norm_bound * (1",
        tuple(
            f"{BATTERY}::test_a_row_a_hair_longer_than_declared_is_refused[float64-{name}]"
            for name in ("objective", "output", "huber output", "sums", "softmax steps")
        ),
    ),
    Mutant(
        "a constant column nobody pays for",
        LINEAR,
        "return math.hypot(self.norm_bound * (1 + NORM_SLACK), self._constant) *",
        "return self.norm_bound * (1 + NORM_SLACK) *",
        (f"{LOGISTIC_TESTS}::test_long_rows_are_refused_and_their_rounding_is_charged",),
    ),
    Mutant(
        "a constant column beside sums nobody pays for",
        SUMS,
        "norm_bound=self._row_norm",
        "norm_bound=self.norm_bound",
        (f"{SUMS_TESTS}::test_the_constant_column_is_part_of_a_row",),
    ),
    Mutant(
        "models of a one-vs-rest that get all of epsilon each",
        LOGISTIC,
        "epsilon = self.epsilon / n_models * PRICE_MARGIN",
        "epsilon = self.epsilon * PRICE_MARGIN",
        (f"{LOGISTIC_TESTS}::test_the_price_is_epsilon_whatever_the_parameters",),
    ),
    Mutant(
        "a loss that is said to bend half as much as it does",
        "learner/estimators/convex.py",
        "curvature_bound = 0.25",
        "curvature_bound = 0.125",
        (
            "tests/statistical/learner/estimators/test_sensitivity.py::test_tilts_and_their_jacobian[logistic-objective-null]",
        ),
    ),
    Mutant(
        "a certificate ten times looser than what is hidden",
        LOGISTIC,
        "tolerance=event.gradient_tolerance - rounding",
        "tolerance=10 * event.gradient_tolerance - rounding",
        (f"{LOGISTIC_TESTS}::test_a_solver_that_stops_as_soon_as_it_may_stays_within_what_is_charged",),
    ),
    Mutant(
        "a prior whose rounding is in no certificate",
        LOGISTIC,
        "if pull.any() else 0.0",
        "if False else 0.0",
        (f"{LOGISTIC_TESTS}::test_a_long_prior_leaves_the_solver_less_room",),
    ),
    Mutant(
        "classes that an estimator learns from the labels of a release",
        LINEAR,
        "if self.classes is None and rng.simulated else",
        "if self.classes is None else",
        tuple(f"{BATTERY}::test_classes_are_declared_and_never_learned[{name}]" for name in ("objective", "sums")),
    ),
    Mutant(
        "noise from a seed that lets an estimator out",
        LINEAR,
        'return not getattr(self, "simulated_", True)',
        'return hasattr(self, "simulated_")',
        tuple(
            f"{BATTERY}::test_secure_noise_can_be_released_and_a_seed_never[{name}-three]"
            for name in ("objective", "sums")
        ),
    ),
    Mutant(
        "sums at a higher price than was asked for",
        SUMS,
        "sums_mu(self.epsilon, self.delta)",
        "sums_mu(1.1 * self.epsilon, self.delta)",
        (f"{SUMS_TESTS}::test_the_price_is_what_was_asked_for_whatever_the_parameters",),
    ),
    Mutant(
        "sums priced for one row left out whatever was asked",
        SUMS,
        "adjacency=self.adjacency,\n        )",
        'adjacency="null",\n        )',
        (f"{SUMS_TESTS}::test_the_price_is_what_was_asked_for_whatever_the_parameters",),
    ),
    Mutant(
        "seven tenths of the noise of a classifier from sums",
        SUMS,
        "return sum_queries(blocks, event, rng=rng)",
        "from dataclasses import replace  # noqa: PLC0415\n"
        "        less = replace(event, class_sigma=0.7 * event.class_sigma, moment_sigma=0.7 * event.moment_sigma)\n"
        "        return sum_queries(blocks, less, rng=rng)",
        (f"{ESTIMATOR_NOISE}::test_sums_of_nothing[0.0]", f"{ESTIMATOR_NOISE}::test_sums_of_nothing[0.3]"),
    ),
    Mutant(
        "steps of a stream that are divided by how many answered",
        "learner/rounds/services/streams.py",
        "project.window_denominator or batch.questions for",
        "max(1, len(answers.get(batch.number, []))) for",
        (f"{STREAMS_TESTS}::test_a_step_is_divided_by_a_public_number_and_not_by_how_many_answered",),
    ),
    Mutant(
        "what learns from batches of a stream charged without the choice of what they are about",
        "learner/pools/configuration.py",
        "return StreamEvent(q_hi, q_lo, update, policy.selection_visible, policy.schedule)",
        "return update",
        (
            f"{STREAMS_TESTS}::test_the_whole_stream_is_charged_once_before_its_first_record",
            "tests/web/annotation/choices/test_new_estimator.py"
            "::test_a_learner_without_a_proof_in_a_stream_is_never_charged_as_if_it_had_one",
        ),
    ),
    Mutant(
        "running sums that add up the batches of another epoch",
        "learner/estimators/running_sums.py",
        "read[self.first_read(place) : place + 1]",
        "read[max(0, self.first_read(place) - 1) : place + 1]",
        (
            "tests/pure/learner/estimators/test_running_sums.py::test_batches_that_come_together_are_learned_each_with_its_own_epoch",
        ),
    ),
    Mutant(
        "the number of rows in the weights",
        LINEAR,
        "self.coef_, self.intercept_ = weights.coef, weights.intercept",
        "self.coef_, self.intercept_ = weights.coef + 1e-3 * len(rows), weights.intercept",
        tuple(f"{PURE}[{name}]" for name in ("objective", "sums", "softmax steps", "label sets")),
    ),
    Mutant(
        "a number of texts without noise that sets the length of steps",
        "privacy/mechanisms/span_steps.py",
        "self.count = float(counted[0])",
        "self.count = float(len(records.lengths))",
        (f"{PURE}[span chain]",),
    ),
    Mutant(
        "a number of rows without noise that sets the length of steps",
        "privacy/mechanisms/gradient_steps.py",
        "self.count = float(counted[0])",
        "self.count = float(len(rows))",
        (f"{PURE}[softmax steps]",),
    ),
    Mutant(
        "a sum of rows without noise about which they are taken",
        "privacy/mechanisms/gradient_steps.py",
        "self.row_sum = released_steps(total, event.norm_bound / STEPS, event.center_sigma, rng)",
        "self.row_sum = total * (event.norm_bound / STEPS)",
        (f"{PURE}[softmax steps]",),
    ),
    Mutant(
        "steps that end where rows without noise are answered well",
        "privacy/mechanisms/gradient_steps.py",
        "released = noisy.release(targets - softmax(noisy.scores(weights), axis=1))",
        "residuals = targets - softmax(noisy.scores(weights), axis=1)\n"
        "        released = noisy.release(residuals) * (np.abs(residuals).sum() > 1.0)",
        (f"{PURE}[softmax steps]", f"{PURE}[softmax steps from a prior]"),
    ),
    Mutant(
        "class counts without noise",
        "privacy/mechanisms/sums.py",
        "class_sums = released_steps(sums.ravel(), unit, event.class_sigma, rng).reshape(sums.shape)",
        "class_sums = released_steps(sums.ravel(), unit, event.class_sigma, rng).reshape(sums.shape)\n"
        "    class_sums[:, -1] = sums[:, -1] * unit",
        tuple(f"{PURE}[{name}]" for name in ("sums", "label sets", "running sums")),
    ),
]
