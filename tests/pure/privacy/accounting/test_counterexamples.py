import itertools
import math

import numpy as np
import pytest

from privacy.accounting import screens, training
from privacy.accounting.gate import gate_delta


def test_exponential_screen_breaks_lemma_2():
    """Source 000: a record on the separator and one at the edge of the ball, told apart by a skip."""
    b, norm_bound, epsilon = 0.2, 1.0, 1.0
    rate = epsilon / (norm_bound - b)
    near, far = math.exp(-max(b, 0.0) * rate), math.exp(-norm_bound * rate)
    assert math.log(near / far) == pytest.approx(epsilon)
    skip = math.log((1 - far) / (1 - near))
    assert skip == pytest.approx(screens.exponential_screen_epsilon(b, norm_bound, epsilon), rel=1e-12)
    assert skip > epsilon


def test_retraining_on_all_labels_costs_every_release():
    """Source 002, Theorem 1 keeps one factor of its product: T noisy releases of one sum, seen together."""
    epsilon, releases = 0.5, 8
    seen = np.zeros(releases)
    # Laplace noise of scale 1 / epsilon on a sum of one against zero; all releases show the smaller value.
    loss = float(np.sum(np.abs(seen - 1) - np.abs(seen)) * epsilon)
    assert loss == pytest.approx(releases * epsilon)
    assert loss > epsilon * 2


def test_training_again_on_the_same_secret_sample_is_amplified_less():
    """Answers about one record, all computed from the same coin: amplifying each release alone is too little."""
    rate, epsilon, releases = 0.1, 1.0, 6
    ratio = math.exp(epsilon)
    # All answers point to the record: the coin's posterior grows with each.
    joint = math.log(1 - rate + rate * ratio**releases)
    apiece = releases * screens.hidden_selection_epsilon(rate, epsilon)
    assert joint > 2 * apiece
    charged = sum(
        screens.hidden_selection_epsilon(screens.rate_after_release(rate, before * epsilon), epsilon)
        for before in range(releases)
    )
    assert charged == pytest.approx(joint, rel=1e-9)


def test_discarding_unselected_uninformative_records_tells_everything():
    """Source 002's pool rule: an informative record comes back, an uninformative one never does."""
    p = 0.6

    def selected_in_round_two(*, informative):
        selected_first = p if informative else 1 - p
        returns = 1.0 if informative else 0.0
        return (1 - selected_first) * returns * p

    assert selected_in_round_two(informative=True) > 0.2
    assert selected_in_round_two(informative=False) == 0.0
    # Returning records whatever they are keeps every ratio finite, and the exposure cap bounds it.
    kept = p * (1 - p) / (p * (1 - p))
    assert abs(math.log(kept)) <= screens.exposure_epsilon(p, 1 - p, 2)


def test_sampling_distinct_texts_lets_a_text_out_with_the_coin():
    """Source 003 counts on the full data: the k-th record makes the text appear with probability beta."""
    k, rate = 20, 0.3

    def shown(count):
        return rate if count >= k else 0.0

    event_mass_with, event_mass_without = shown(k), shown(k - 1)
    delta = event_mass_with - math.exp(5.0) * event_mass_without
    assert delta == rate
    assert gate_delta(k, rate, 5.0) < 1e-9


def test_an_overestimating_sketch_lets_a_unique_text_out_with_the_coin():
    """A count inflated by k - 1 turns the gate into one with k = 1."""
    assert gate_delta(1, 0.3, 1.0) == pytest.approx(0.3)


def test_objective_perturbation_of_2008_needs_the_jacobian():
    """Source 004: the loss at w = 0 of one record against an empty one, on the line."""
    epsilon, n_lambda = 0.1, 0.1
    tilt = -epsilon / 2 * 0.5
    change_of_variables = math.log1p(0.25 / n_lambda)
    assert tilt + change_of_variables > 12 * epsilon
    prime, extra = training.objective_perturbation(epsilon, 1, n_lambda)
    assert prime == pytest.approx(epsilon / 2)
    assert math.log1p(0.25 / (n_lambda + extra)) <= epsilon / 2


def test_unscaled_svm_constant_has_no_decay_in_n():
    """Source 002, equation 5 with LIBSVM's C: one margin point among n - 1 zeros moves w by 2C for every n."""
    cost = 0.5

    def solve(label):
        # Zero records have constant loss, so w minimises w^2 / 2 + C max(0, 1 - label w).
        return cost * label

    moved = abs(solve(1) - solve(-1))
    # The objective is C times the sum form with Lambda = 1 / C, and the bound does not know n.
    bound = training.erm_sensitivity(0, 1 / cost, form="sum")
    assert moved == pytest.approx(bound)
    for n in (10, 1000, 100_000):
        claimed = 4 * cost / n
        assert moved > 2 * claimed


def test_rank_coin_flips_are_not_private_at_their_claimed_loss():
    """Source 002, section V: one record enters at the top and pushes another down a rank."""
    claimed = 0.1
    p = math.exp(claimed) / (1 + math.exp(claimed))
    top, second = p, p * (1 - p)
    assert math.log(top / second) > 5 * claimed


def test_minibatch_noise_is_not_laplace_per_coordinate():
    """Source 000, equation 8: coordinates of scale 2M / epsilon give a loss that grows with the dimension."""
    d, norm_bound, epsilon = 100, 1.0, 1.0
    difference = np.full(d, 2 * norm_bound / math.sqrt(d))
    assert np.linalg.norm(difference) == pytest.approx(2 * norm_bound)
    per_coordinate = float(np.abs(difference).sum()) * epsilon / (2 * norm_bound)
    k_norm = float(np.linalg.norm(difference)) * epsilon / (2 * norm_bound)
    assert k_norm == pytest.approx(epsilon)
    assert per_coordinate == pytest.approx(math.sqrt(d) * epsilon)


def test_exponential_norm_with_uniform_direction_has_no_bound():
    """A norm drawn Exp instead of Gamma has density |z|^(1-d) e^(-|z|): infinite at the true gradient."""
    d, scale = 5, 2.0

    def log_density(norm):
        return -norm / scale - (d - 1) * math.log(norm)

    losses = [log_density(r) - log_density(1.0) for r in (1e-2, 1e-4, 1e-8)]
    assert losses == sorted(losses)
    assert losses[-1] > 70


def test_the_slides_loss_rewards_wrong_labels():
    """Source 004 prints log(1 + exp(y w x)): its minimiser points away from the labels."""
    w = np.linspace(-3, 3, 601)
    printed = np.log1p(np.exp(w)) + 0.05 * w**2
    assert w[np.argmin(printed)] < 0


def test_unregularised_intercept_has_no_bound():
    """Same labels except one: the best constant runs off to infinity when the one record changes side."""
    gradient_at = lambda b, positives, negatives: negatives / (1 + math.exp(-b)) - positives / (1 + math.exp(b))  # noqa: E731
    for b in (1.0, 10.0, 30.0):
        assert gradient_at(b, 5, 0) < 0
    assert gradient_at(1.0, 4, 1) < 0 < gradient_at(1.5, 4, 1)


def test_all_orders_of_exposures_stay_within_the_cap_and_one_more_does_not():
    q_hi, q_lo, cap = 0.7, 0.3, 3
    bound = screens.exposure_epsilon(q_hi, q_lo, cap)
    worst = 0.0
    for rounds in (cap, cap + 1):
        for course in itertools.product((True, False), repeat=rounds):
            loss = sum(math.log((1 - q_lo) / (1 - q_hi)) if up else -math.log((1 - q_lo) / (1 - q_hi)) for up in course)
            worst = max(worst, loss)
        assert (worst <= bound + 1e-12) == (rounds == cap)
