"""Faults in the mechanisms: noise of seven tenths, coins and responses that say more than they are charged for."""

from tests.evidence.planting import Mutant

ESTIMATOR_NOISE = "tests/statistical/learner/estimators/test_noise_of_estimators.py"
CONVEX_NOISE = f"{ESTIMATOR_NOISE}::TestConvex"
NOISE_SCALE = "tests/statistical/privacy/mechanisms/test_noise_scale.py"
SCREENING = "tests/pure/privacy/mechanisms/test_screening.py"
RESPONSES = "tests/pure/privacy/mechanisms/test_randomized_response.py"
SUMS = "tests/pure/privacy/mechanisms/test_sums.py"
SHARES = "tests/pure/privacy/mechanisms/test_shares.py"
COUNTS = "tests/pure/privacy/mechanisms/test_span_counts.py"
SHORTENING = "tests/pure/privacy/mechanisms/test_shortening.py"

NOISE = [
    Mutant(
        "seven tenths of discrete Laplace noise from the library",
        "privacy/mechanisms/discrete.py",
        'l1_distance(T="i64"), scale)',
        'l1_distance(T="i64"), 0.7 * scale)',
        (f"{NOISE_SCALE}::test_exact_discrete_laplace",),
    ),
    Mutant(
        "seven tenths of discrete Gaussian noise from the library",
        "privacy/mechanisms/discrete.py",
        'l2_distance(T="f64"), scale)',
        'l2_distance(T="f64"), 0.7 * scale)',
        (f"{NOISE_SCALE}::test_exact_discrete_gaussian",),
    ),
    Mutant(
        "seven tenths of Gamma-norm noise on a grid",
        "privacy/mechanisms/k_norm.py",
        "settle(Fraction(self.scale), on_grid)",
        "settle(Fraction(0.7 * self.scale), on_grid)",
        (
            f"{CONVEX_NOISE}::test_output_noise",
            "tests/statistical/privacy/mechanisms/test_audits.py::test_euclidean_noise[1-1.0-12000-True]",
        ),
    ),
    Mutant(
        "seven tenths of Gamma-norm noise inside",
        "privacy/mechanisms/k_norm.py",
        "settle(Fraction(self.scale), nearest_float)",
        "settle(Fraction(0.7 * self.scale), nearest_float)",
        (f"{NOISE_SCALE}::test_euclidean_noise",),
    ),
    Mutant(
        "seven tenths of the noise on sums",
        "privacy/mechanisms/sums.py",
        "scale = math.nextafter(sigma / unit, math.inf) * finer",
        "scale = 0.7 * math.nextafter(sigma / unit, math.inf) * finer",
        ("tests/statistical/privacy/mechanisms/test_sums_audit.py::test_noise_variance[1.0-True]",),
    ),
    Mutant(
        "a row that is right by the rows around it",
        "privacy/mechanisms/pick.py",
        "right[number] += int((leaders == wanted).sum())",
        "right[number] += int((leaders == wanted).sum()) + len(wanted) // 40",
        ("tests/pure/privacy/mechanisms/test_pick.py::test_a_record_moves_each_count_by_itself_alone",),
    ),
    Mutant(
        "counts picked with seven tenths of their noise",
        "privacy/mechanisms/pick.py",
        "released_steps(right[1:] - right[0], 1.0, event.scale, rng)",
        "released_steps(right[1:] - right[0], 1.0, 0.7 * event.scale, rng)",
        ("tests/statistical/privacy/mechanisms/test_pick_audit.py::test_noise_of_counts[1.0-True]",),
    ),
    Mutant(
        "spans of held-out texts without a cap",
        "privacy/mechanisms/span_counts.py",
        "counted(truths, found, types, most=most)",
        "counted(truths, found, types)",
        (f"{COUNTS}::test_the_sensitivity_is_reached",),
    ),
    Mutant(
        "spans counted with seven tenths of their noise",
        "privacy/mechanisms/span_counts.py",
        "released_steps(exact, 1.0, event.scale, rng)",
        "released_steps(exact, 1.0, 0.7 * event.scale, rng)",
        ("tests/statistical/privacy/mechanisms/test_span_counts_audit.py::test_noise_variance[1.0-True]",),
    ),
    Mutant(
        "residuals clipped to half as much again as is charged",
        "privacy/mechanisms/gradient_steps.py",
        "residuals * np.minimum(1.0, event.residual_bound * (1 - 1e-12)",
        "residuals * np.minimum(1.0, 1.5 * event.residual_bound * (1 - 1e-12)",
        ("tests/pure/privacy/mechanisms/test_gradient_steps.py::test_empirical_sensitivity",),
    ),
    Mutant(
        "a text's gradient clipped to half as much again as is charged",
        "privacy/mechanisms/span_steps.py",
        "bound = (self._event.residual_bound - rounding_slack(n_tags))",
        "bound = 1.5 * (self._event.residual_bound - rounding_slack(n_tags))",
        ("tests/pure/privacy/mechanisms/test_span_steps.py::test_empirical_sensitivity",),
    ),
    Mutant(
        "transitions left out of the clip of a text",
        "privacy/mechanisms/span_steps.py",
        " + (moves**2).sum(axis=1).sum(axis=0)",
        "",
        ("tests/pure/privacy/mechanisms/test_span_steps.py::test_empirical_sensitivity",),
    ),
    Mutant(
        "a step over texts more than is paid for",
        "privacy/mechanisms/span_steps.py",
        "if self._made == event.steps:",
        "if self._made > event.steps:",
        ("tests/pure/privacy/mechanisms/test_span_steps.py::test_no_step_beyond_those_paid_for",),
    ),
    Mutant(
        "one step more than is paid for",
        "privacy/mechanisms/gradient_steps.py",
        "if self._made == event.steps:",
        "if self._made > event.steps:",
        ("tests/pure/privacy/mechanisms/test_gradient_steps.py::test_no_step_beyond_those_paid_for",),
    ),
    Mutant(
        "half the noise beside the diagonal of second moments",
        "privacy/mechanisms/sums.py",
        "math.sqrt(0.5), math.inf)",
        "math.sqrt(0.125), math.inf)",
        ("tests/statistical/privacy/mechanisms/test_sums_audit.py::test_noise_variance[1.0-True]",),
    ),
    Mutant(
        "weights a third steeper in a top-c choice",
        "privacy/mechanisms/top_c.py",
        "pull = scale * scores",
        "pull = 1.4 * scale * scores",
        (f"{NOISE_SCALE}::test_top_c_weights",),
    ),
    Mutant(
        "a true answer said oftener than it is charged for",
        "privacy/mechanisms/randomized_response.py",
        "response = np.where(weight < self.odds, place,",
        "response = np.where(weight < 1.4 * self.odds, place,",
        ("tests/statistical/privacy/mechanisms/test_randomized_answers.py::test_the_law_that_is_drawn",),
    ),
    Mutant(
        "a true answer said though the prior left it out",
        "privacy/mechanisms/randomized_response.py",
        "np.where(own.any(axis=1), response, uniform)",
        "response",
        (f"{RESPONSES}::test_every_outcome_of_a_draw_lands_where_the_weights_say",),
    ),
    Mutant(
        "coins that show a record oftener than charged",
        "privacy/mechanisms/screening.py",
        "shown[still_open] = rest < shown_below",
        "shown[still_open] = rest <= shown_below",
        (f"{SCREENING}::test_a_coin_shows_exactly_the_probability_that_is_charged",),
    ),
    Mutant(
        "coins that may leave the rates they are charged at",
        "privacy/mechanisms/screening.py",
        "np.clip(probabilities, float(low), float(high))",
        "np.clip(probabilities, float(low), 1.0)",
        (f"{SCREENING}::test_no_coin_leaves_the_range_that_is_charged",),
    ),
    Mutant(
        "a lie that is never the class after the truth",
        "privacy/mechanisms/randomized_response.py",
        "other + (other >= place)",
        "other",
        (f"{RESPONSES}::test_every_outcome_of_a_draw_lands_where_the_weights_say",),
    ),
    Mutant(
        "seven tenths of the noise on the diagonal of second moments",
        "privacy/mechanisms/sums.py",
        "released_steps(products.diagonal(), unit, event.moment_sigma, rng)",
        "released_steps(products.diagonal(), unit, 0.7 * event.moment_sigma, rng)",
        ("tests/statistical/privacy/mechanisms/test_sums_audit.py::test_noise_variance[1.0-True]",),
    ),
    Mutant(
        "rows longer than declared",
        "privacy/mechanisms/shortening.py",
        "(squares <= steps**2).all()",
        "(squares <= 2 * steps**2).all()",
        (
            f"{SHORTENING}::test_shortening_never_lengthens_and_long_rows_are_refused",
            f"{SUMS}::test_records_beyond_what_is_declared_are_refused",
        ),
    ),
    Mutant(
        "a record with more classes than are paid for",
        "privacy/mechanisms/sums.py",
        "members.sum(axis=1) > event.labels_per_record",
        "members.sum(axis=1) > event.labels_per_record + 1",
        (f"{SUMS}::test_records_beyond_what_is_declared_are_refused",),
    ),
    Mutant(
        "blocks of sums whose noise does not add up",
        "client/src/dpal/recompute/sums.py",
        "self.class_variance + other.class_variance",
        "max(self.class_variance, other.class_variance)",
        (f"{SUMS}::test_blocks_add_up_with_their_noise",),
    ),
    Mutant(
        "seven tenths of the noise on counts by class",
        "privacy/mechanisms/shares.py",
        "DiscreteLaplace(event.scale)",
        "DiscreteLaplace(0.7 * event.scale)",
        ("tests/statistical/privacy/mechanisms/test_shares_audit.py::test_noise_of_counts[1.0-True]",),
    ),
    Mutant(
        "counts by class without noise",
        "privacy/mechanisms/shares.py",
        "noisy = DiscreteLaplace(event.scale).release(exact, rng=rng)",
        "noisy = exact",
        (f"{SHARES}::test_noise_of_the_operating_system_is_drawn_anew",),
    ),
    Mutant(
        "a record in more cells than are paid for",
        "privacy/mechanisms/shares.py",
        "cells.ndim != 2 or cells.shape[1] != event.counted",
        "cells.ndim != 2",
        (f"{SHARES}::test_records_beyond_what_is_paid_for_are_refused[cells0]",),
    ),
]
