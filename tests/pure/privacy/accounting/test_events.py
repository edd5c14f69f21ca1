import json
import math
from dataclasses import astuple, replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting import composition, gate, gate_events, screens, training
from privacy.accounting import events as ev
from privacy.accounting.cost import ADJACENCIES, NANO, Cost, NoProof, delta_to_atto, epsilon_to_nano, rho_to_nano
from privacy.accounting.event import REGISTRY, Event
from privacy.errors import UnsoundCombination

TILT = ev.ObjectivePerturbationEvent(
    epsilon_prime=0.9,
    regularization=10.0,
    extra_regularization=0.0,
    dimension=5,
    gradient_tolerance=1e-6,
    output_scale=0.01,
    n_models=3,
)
EXAMPLES = [
    ev.RandomChoiceEvent(5),
    ev.BernoulliScreenEvent(0.6, 0.2),
    ev.ExponentialScreenEvent(0.2, 1.0, 1.0),
    ev.ExposureCappedScreenEvent(0.6, 0.2, 3),
    ev.TopCEvent(1000, 20, 1.0),
    ev.TopCEvent(1000, 20, 1.0, "opened"),
    ev.TopCEvent(980, 20, 1.0, "continued"),
    ev.StreamEvent(0.6, 0.2, ev.MinibatchSgdEvent(2.0, 5), True, "flmb"),
    ev.StreamEvent(0.6, 0.2, ev.MinibatchSgdEvent(2.0, 5), False),
    ev.StreamEvent(0.6, 0.2, ev.MinibatchSgdEvent(9.0, 5, noise="gaussian", delta=1e-7), False),
    ev.KAnonymityGateEvent(20, 0.3, 0.5, normalizer="l1"),
    ev.KAnonymityGateEvent(60, 0.2, 0.1, "contributor", 5),
    ev.KAnonymityGateEvent(40, 0.2, 0.4, method="li2012"),
    ev.ThresholdGateEvent(1.0, 1e-6),
    ev.ThresholdGateEvent(1.0, 1e-6, noise="discrete_laplace", floor=7),
    ev.ThresholdGateEvent(1.0, 1e-6, noise="truncated_geometric", floor=5),
    ev.ThresholdGateEvent(1.0, 1e-6, "contributor", 10, "weighted_gaussian"),
    ev.ThresholdGateEvent(0.1, 1e-8, "contributor", 10, "laplace"),
    ev.GateWindowEvent(ev.KAnonymityGateEvent(20, 0.3, 0.5, normalizer="l1"), 7, 1),
    ev.GateWindowEvent(ev.ThresholdGateEvent(1.0, 1e-6), 3, 2, 9, (2, 4)),
    ev.ComposedCappedGateEvent(20, 0.3, 0.5, "contributor", 5),
    ev.ComposedGateWindowEvent(ev.KAnonymityGateEvent(20, 0.3, 0.5, normalizer="l1"), 7, 1),
    ev.GateOfSnapshotEvent(ev.KAnonymityGateEvent(20, 0.3, 0.5, normalizer="l1"), "0af1" * 16),
    ev.GateOfSnapshotEvent(ev.ThresholdGateEvent(1.0, 1e-6, "contributor", 10, "weighted_gaussian"), "0" * 64),
    ev.GaussianEvent(1.0, 2.0),
    ev.GaussianEvent(1.0, 2.0, "replace", 1e-6),
    ev.MinibatchSgdEvent(3.0, 4, noise="laplace", grid=0.01, updates_per_record=2),
    ev.OutputPerturbationEvent(10.0, 0.3, 5, 1e-6),
    ev.OutputPerturbationEvent(0.1, 0.3, 5, 1e-6, form="mean", n=100, noise="gaussian", delta=1e-6, n_models=4),
    TILT,
    ev.SecretSampleEvent(TILT, 0.2),
    ev.SecretSampleEvent(TILT, 0.2, 3.0),
    ev.SecretSampleEvent(ev.GaussianEvent(1.0, 5.0, delta=1e-6), 0.1),
    ev.MutualInformationOgdEvent(5, 1.0, 2.0),
    ev.BanditOgdEvent(5, 1.0, 0.1, 200.0, delta=1e-6),
    ev.ScreenRoundEvent(0.6, 0.2),
    ev.SecretChoiceEvent(0.3),
    ev.RandomizedAnswersEvent(2.0, 18),
    ev.RandomizedAnswersEvent(1.0, 1000, "uniform", "annotator", randomizations=3, questions_per_annotator=20),
    ev.SecretSeriesEvent((0.1, 0.3), (3.0, 2.0), (0.0, 0.0)),
    ev.SecretSeriesEvent((0.1, 0.3), (3.0, 2.0), (1e-6, 2e-6)),
    ev.SecretBlockEvent(ev.SecretSeriesEvent((0.1, 0.3), (9.0, 9.0), (1e-6, 2e-6)), TILT, 2, (1, 0)),
    ev.GradientStepsEvent(40, 129, 77, 1.05, 0.3, 4.0, 20.0, delta=1e-6),
    ev.GradientStepsEvent(1, 5, 3, 1.0, 0.5, 4.0, 20.0),
    ev.CenteredStepsEvent(40, 129, 77, 1.05, 0.3, 4.0, 20.0, delta=1e-6, center_sigma=15.0),
    ev.SpanStepsEvent(40, 851, 11, 1.0, 0.5, 4.0, 20.0, delta=1e-6),
    ev.SumsEvent(65, 77, 1.05, 12.0, 2.5, delta=1e-6),
    ev.SumsEvent(65, 77, 1.05, 0.0, 2.5, labels_per_record=3),
    ev.RunningSumsEvent(ev.SumsEvent(9, 3, 1.05, 40.0, 9.0, delta=1e-6), 64, (38640, 62685), (16181, 16672)),
    ev.StreamEvent(0.1, 0.05, ev.RunningSumsEvent(ev.SumsEvent(9, 3, 1.0, 0.0, 9.0, delta=1e-6), 8, (), ()), True),
    ev.LabelTrainingEvent(TILT, "logistic"),
    ev.LabelTrainingEvent(ev.OutputPerturbationEvent(10.0, 0.3, 5, 1e-6, n_models=3), "logistic"),
    ev.LabelTrainingEvent(ev.MinibatchSgdEvent(2.0, 5)),
    ev.LabelTrainingEvent(ev.PickedFitEvent(TILT, 5, 0.1, "exponential"), "logistic"),
    ev.PeopleEvent(ev.GaussianEvent(1.0, 9.0), "contributor", 3, "project:a:pool", 7),
    ev.PeopleEvent(ev.KAnonymityGateEvent(60, 0.2, 0.1, "contributor", 5), "contributor", 1, "project:a:pool", 2),
    ev.PickedFitEvent(ev.CenteredStepsEvent(40, 9, 7, 1.05, 0.3, 4.0, 20.0, center_sigma=15.0), 5, 12.0, delta=1e-6),
    ev.PickedFitEvent(ev.SumsEvent(65, 77, 1.05, 12.0, 2.5), 5, 30.0),
    ev.PickedFitEvent(TILT, 5, 0.1, "exponential"),
    ev.MeasuredFitEvent(ev.SpanStepsEvent(40, 851, 11, 1.0, 0.5, 4.0, 20.0), 8, 12.0, delta=1e-6),
    ev.MeasuredFitEvent(ev.PickedFitEvent(ev.SpanStepsEvent(20, 851, 11, 1.0, 0.5, 4.0, 20.0), 5, 9.0), 8, 40.0),
    ev.ClassCountsEvent(57, 2, 1.5),
    ev.PostProcessingEvent("ranking of released texts"),
]


def name(event):
    return event.kind


def test_every_kind_has_an_example():
    # Other tests of the same process may have registered a kind of their own.
    ours = {kind for kind, event in REGISTRY.items() if event.__module__.startswith("privacy.accounting")}
    assert {event.kind for event in EXAMPLES} == ours


@pytest.mark.parametrize("event", EXAMPLES, ids=name)
def test_stored_json_gives_the_same_event_and_the_same_cost(event):
    stored = json.dumps(event.to_json(), allow_nan=False)
    again = ev.event_from_json(json.loads(stored))
    assert again == event
    for adjacency in event.valid_for:
        assert price(again, adjacency) == price(event, adjacency)


def price(event, adjacency):
    try:
        return event.cost(adjacency=adjacency)
    except NoProof as refusal:
        return str(refusal)


@given(
    noise_scale=st.floats(1e-300, 1e300),
    norm_bound=st.floats(1e-10, 1e10),
    grid=st.floats(0, 1),
    d=st.integers(1, 2**62),
)
def test_floats_and_integers_survive_json_bit_by_bit(noise_scale, norm_bound, grid, d):
    event = ev.MinibatchSgdEvent(noise_scale, d, norm_bound, grid=grid)
    assert ev.event_from_json(json.loads(json.dumps(event.to_json()))) == event


@pytest.mark.parametrize("event", EXAMPLES, ids=name)
def test_adjacencies_without_a_proof_are_refused_by_name(event):
    for adjacency in ADJACENCIES:
        if adjacency not in event.valid_for:
            with pytest.raises(NoProof, match=f"{event.kind} has no proven cost under '{adjacency}' adjacency: "):
                event.cost(adjacency=adjacency)


@pytest.mark.parametrize("event", EXAMPLES[:-1], ids=name)
def test_an_unknown_adjacency_is_refused(event):
    with pytest.raises(ValueError, match="neighbour"):
        event.cost(adjacency="neighbour")


@pytest.mark.parametrize("event", EXAMPLES, ids=name)
def test_a_replacement_never_costs_less_than_a_removal(event):
    if not {"null", "replace"} <= event.valid_for:
        return
    if isinstance(event, ev.GaussianEvent) and event.stated_for == "replace":
        with pytest.raises(NoProof, match="proven for replace"):
            event.cost(adjacency="null")
        return
    null, replace = event.cost(adjacency="null"), event.cost(adjacency="replace")
    assert replace.epsilon >= null.epsilon
    assert replace.delta >= null.delta
    assert replace.rho >= null.rho


@pytest.mark.parametrize("event", EXAMPLES, ids=name)
def test_costs_can_enter_the_ledger(event):
    adjacency = event.stated_for if isinstance(event, ev.GaussianEvent) else "null"
    cost = event.cost(adjacency=adjacency)
    if math.isfinite(cost.rho):
        assert rho_to_nano(cost.rho) >= 0
    assert delta_to_atto(cost.delta) >= 0
    assert math.isfinite(cost.rho) or math.isfinite(cost.epsilon)
    if math.isfinite(cost.epsilon):
        assert Fraction(epsilon_to_nano(cost.epsilon), NANO) >= Fraction(cost.epsilon)
    assert 5 < len(event.summary()) < 160


def test_unknown_and_broken_json_is_refused_by_name():
    good = EXAMPLES[1].to_json()
    for broken, seen in [
        ({**good, "kind": "magic"}, "unknown event kind 'magic'"),
        ({**good, "kind": None}, "unknown event kind None"),
        ({**good, "version": 2}, "bernoulli_screen: unknown version 2"),
        ({**good, "rate": 1.0}, r"unknown fields \['rate'\]"),
        ({k: v for k, v in good.items() if k != "q_lo"}, r"missing fields \['q_lo'\]"),
        ({**good, "q_lo": "0.2"}, "field q_lo must be a finite number"),
        ({**good, "q_lo": True}, "field q_lo has the wrong type, got bool"),
        ({**good, "q_lo": math.inf}, "field q_lo must be a finite number"),
        ({**good, "q_lo": 0.7}, "q_hi=0.6, q_lo=0.7"),
        ({**EXAMPLES[0].to_json(), "picks": 1.5}, "field picks must be an integer"),
        ({**EXAMPLES[-1].to_json(), "operation": 3}, "field operation must be text, got int"),
        ({**EXAMPLES[7].to_json(), "update": good}, "bernoulli_screen is no update of a stream"),
        ({**EXAMPLES[7].to_json(), "selection_visible": 1}, "field selection_visible has the wrong type, got int"),
        ([], "an event must be an object, got list"),
    ]:
        with pytest.raises(ValueError, match=seen):
            ev.event_from_json(broken)


def test_integers_are_welcome_where_floats_are_stored():
    data = {**EXAMPLES[4].to_json(), "scale": 1}
    assert ev.event_from_json(data) == EXAMPLES[4]


def test_a_kind_cannot_be_claimed_twice():
    with pytest.raises(TypeError, match="event kind 'top_c' already belongs to TopCEvent"):

        class Impostor(Event):
            kind = "top_c"


def test_cost_fills_in_rho_and_checks_its_ranges():
    assert Cost(2.0).rho == 2.0
    assert Cost(2.0, rho=0.5).rho == 0.5
    assert Cost(math.inf).rho == math.inf
    for broken, seen in [((-1.0,), "epsilon must be >= 0, got -1.0"), ((1.0, 1.5), "delta must lie in .*got 1.5")]:
        with pytest.raises(ValueError, match=seen):
            Cost(*broken)
    with pytest.raises(ValueError, match="epsilon must be >= 0, got nan"):
        Cost(math.nan)


def test_cost_arithmetic():
    cost = Cost(0.5, 1e-6, 0.1, 0.2)
    assert astuple(cost.times(3)) == pytest.approx((1.5, 3e-6, 0.3, 0.6))
    assert cost.times(0) == Cost(0.0, 0.0, 0.0, 0.0)
    assert Cost(math.inf, rho=0.1).times(0).epsilon == 0.0
    assert cost.plus(Cost(1.0)).rho == pytest.approx(0.6)
    assert Cost(0.5, 0.4).times(3).delta == 1.0
    assert Cost(0.5).of_two_steps() == Cost(1.0, rho=0.5)
    twice = cost.of_two_steps()
    assert twice.delta == pytest.approx(1e-6 * (1 + math.exp(0.5)))
    assert twice.rho == pytest.approx(0.5)


def test_no_proof_is_both_a_refusal_and_a_value_error():
    assert issubclass(NoProof, UnsoundCombination)
    assert issubclass(NoProof, ValueError)


def test_selection_events_charge_the_functions_they_name():
    assert ev.RandomChoiceEvent(7).cost() == Cost(0.0)
    assert ev.BernoulliScreenEvent(0.6, 0.2).cost().epsilon == pytest.approx(math.log(3), rel=1e-12)
    assert ev.BernoulliScreenEvent(0.6, 0.2).cost().rho == pytest.approx(
        (math.log(3) + math.log(2)) ** 2 / 8, rel=1e-12
    )
    assert ev.ExponentialScreenEvent(0.2, 1.0, 1.0).cost().epsilon == pytest.approx(1.171112, rel=1e-6)
    assert ev.ExposureCappedScreenEvent(0.6, 0.2, 3).cost().epsilon == pytest.approx(2 * math.log(2) + math.log(3))
    assert ev.TopCEvent(1000, 20, 1.0).cost().epsilon == 1.0
    assert ev.TopCEvent(1000, 1, 1.0).cost().rho == pytest.approx(0.125, rel=1e-12)


def test_coarse_probabilities_cost_more_and_bound_what_the_sampler_can_use():
    fine, coarse = (ev.ExponentialScreenEvent(0.2, 1.0, 1.0, bits) for bits in (53, 10))
    assert fine.cost().epsilon < coarse.cost().epsilon
    q_hi, q_lo = screens.exponential_screen_rates(0.2, 1.0, 1.0)
    assert coarse.rates[0] >= math.ceil(q_hi * 2**10) / 2**10
    assert coarse.rates[1] <= math.floor(q_lo * 2**10) / 2**10


def test_a_series_of_rounds_pays_its_scale_once():
    shifts = [screens.top_c_shift(1000 - 20 * r, 20, 1.0) for r in range(5)]
    rounds = [ev.TopCEvent(1000 - 20 * r, 20, 1.0, "continued" if r else "opened") for r in range(5)]
    assert sum(event.cost().epsilon for event in rounds) == pytest.approx(1.0 + sum(shifts), rel=1e-9)
    alone = [ev.TopCEvent(1000 - 20 * r, 20, 1.0) for r in range(5)]
    assert sum(event.cost().epsilon for event in alone) == 5.0
    # In rho every round stands alone: no smaller charge for the same batch.
    assert [event.cost().rho for event in rounds] == [event.cost().rho for event in alone]


def test_only_a_series_can_be_continued():
    opened, single = ev.TopCEvent(100, 5, 1.0, "opened"), ev.TopCEvent(100, 5, 1.0)
    following = ev.TopCEvent(95, 5, 1.0, "continued")
    assert following.needs_parent
    assert not opened.needs_parent
    following.check_parent(opened)
    ev.TopCEvent(90, 5, 0.5, "continued").check_parent(following)
    opened.check_parent(None)
    for parent, seen in [
        (None, "must name the entry"),
        (single, "must descend from an opened"),
        (TILT, "must descend"),
    ]:
        with pytest.raises(ValueError, match=seen):
            following.check_parent(parent)
    with pytest.raises(ValueError, match=r"scale must be at most 1.0 of the round before, got 2.0"):
        ev.TopCEvent(95, 5, 2.0, "continued").check_parent(opened)


def test_a_screen_round_is_free_below_a_screen_that_covers_it_and_nowhere_else():
    opened, following = ev.ExposureCappedScreenEvent(0.6, 0.2, 3), ev.ScreenRoundEvent(0.6, 0.2)
    following.check_parent(opened)
    ev.ScreenRoundEvent(0.5, 0.3).check_parent(following)
    assert following.cost().epsilon == 0
    for parent, seen in [
        (None, "must name the entry"),
        (ev.BernoulliScreenEvent(0.6, 0.2), "must descend from the screen"),
        (ev.ExposureCappedScreenEvent(0.59, 0.2, 3), "rates must lie within"),
        (ev.ExposureCappedScreenEvent(0.6, 0.21, 3), "rates must lie within"),
    ]:
        with pytest.raises(ValueError, match=seen):
            following.check_parent(parent)


def test_a_secret_choice_is_free_and_needs_no_parent():
    assert ev.SecretChoiceEvent(0.3).cost().epsilon == 0
    assert not ev.SecretChoiceEvent(0.3).needs_parent
    with pytest.raises(ValueError, match="rate"):
        ev.SecretChoiceEvent(0.0)


def test_post_processing_is_free_and_needs_a_parent():
    event = ev.PostProcessingEvent("consensus")
    assert event.cost(adjacency="add_remove") == Cost(0.0)
    with pytest.raises(ValueError, match="post_processing must name the entry"):
        event.check_parent(None)
    event.check_parent(EXAMPLES[10])
    with pytest.raises(ValueError, match="operation must be named"):
        ev.PostProcessingEvent("  ")


def test_stream_charges_visible_and_hidden_selection():
    update = ev.MinibatchSgdEvent(2.0, 5)
    loss = update.cost().epsilon
    assert loss == 0.5
    visible = ev.StreamEvent(0.6, 0.2, update, True)
    assert visible.cost().epsilon == pytest.approx(math.log(3) + 0.5, rel=1e-9)
    assert visible.cost(adjacency="replace").epsilon == pytest.approx(math.log(3) + 1.0, rel=1e-9)
    hidden = ev.StreamEvent(0.6, 0.2, update, False)
    assert hidden.cost().epsilon == pytest.approx(math.log1p(0.6 * math.expm1(0.5)), rel=1e-9)
    replaced = screens.stream_epsilon(0.6, 0.2, 1.0, selection_visible=False)
    assert hidden.cost(adjacency="replace").epsilon == pytest.approx(replaced, rel=1e-9)


def test_gaussian_updates_in_a_stream():
    update = ev.MinibatchSgdEvent(9.0, 5, noise="gaussian", delta=1e-7)
    visible = ev.StreamEvent(0.6, 0.2, update, True).cost()
    assert visible.delta == 1e-7
    assert visible.epsilon > math.log(3)
    hidden = ev.StreamEvent(0.6, 0.2, update, False).cost()
    assert hidden.delta == pytest.approx(0.6e-7)
    unpriced = ev.MinibatchSgdEvent(9.0, 5, noise="gaussian")
    assert ev.StreamEvent(0.6, 0.2, unpriced, True).cost().epsilon == math.inf
    assert ev.StreamEvent(0.6, 0.2, unpriced, True).cost().rho < 1
    with pytest.raises(NoProof, match="hidden selection amplifies only"):
        ev.StreamEvent(0.6, 0.2, unpriced, False).cost()


def test_batches_of_fixed_length_cannot_hide_their_timing():
    with pytest.raises(NoProof, match="publish their timing"):
        ev.StreamEvent(0.6, 0.2, ev.MinibatchSgdEvent(2.0, 5), False, "flmb")


def test_gate_charges_every_text_of_a_contributor():
    one = ev.KAnonymityGateEvent(20, 0.3, 0.5)
    exact = gate.gate_delta(20, 0.3, 0.5)
    assert one.cost().epsilon == 0.5
    assert exact <= one.cost().delta <= exact * (1 + 2e-9)
    many = ev.KAnonymityGateEvent(20, 0.3, 0.5, "contributor", 4)
    assert many.cost().epsilon == 2.0
    assert many.cost().delta == pytest.approx(4 * exact, rel=1e-8)
    assert one.cost(adjacency="replace").delta == pytest.approx(2 * exact, rel=1e-8)
    assert one.cost(adjacency="add_remove") == one.cost(adjacency="null")
    with pytest.raises(ValueError, match="texts_per_contributor must be 1 for unit record, got 4"):
        ev.KAnonymityGateEvent(20, 0.3, 0.5, "record", 4)


@pytest.mark.parametrize("noise", ["laplace", "discrete_laplace", "truncated_geometric"])
def test_threshold_gate_charges_the_noise_it_stores(noise):
    asked = ev.ThresholdGateEvent(1.0, 1e-6, noise=noise)
    assert (asked.cost().epsilon, asked.cost().delta) == (1.0, 1e-6)
    lowered = ev.ThresholdGateEvent(
        1.0, 1e-6, noise=noise, noise_scale=asked.noise_scale, threshold=asked.threshold - 3
    )
    assert lowered.cost().delta > 1e-6 * 5
    quieter = ev.ThresholdGateEvent(1.0, 1e-6, noise=noise, noise_scale=0.5, threshold=asked.threshold)
    assert quieter.cost().epsilon >= 2.0


@pytest.mark.parametrize("noise", ["laplace", "discrete_laplace", "truncated_geometric"])
def test_a_threshold_gate_costs_no_less_than_the_decay_of_its_noise(noise):
    """The float nearest to 1/epsilon often lies below it, and noise of that scale decays faster than epsilon."""
    wanted = [number / 1000 for number in range(3, 400)]
    assert any(Fraction(1 / epsilon) * Fraction(epsilon) < 1 <= 1 / epsilon * epsilon for epsilon in wanted)
    for epsilon in wanted:
        event = ev.ThresholdGateEvent(epsilon, 1e-6, noise=noise)
        assert Fraction(event.noise_scale) * Fraction(epsilon) >= 1
        assert event.cost() == Cost(epsilon, 1e-6)
        stored = replace(event, noise_scale=1 / epsilon)
        assert Fraction(stored.cost().epsilon) * Fraction(stored.noise_scale) >= 1


def test_a_floor_on_an_unmoved_threshold_is_charged_for_what_it_is():
    sound = ev.ThresholdGateEvent(1.0, 1e-6, floor=10)
    assert sound.threshold == pytest.approx(gate_events.laplace_threshold(1.0, 1e-6) + 9)
    assert sound.cost().delta == 1e-6
    unmoved = ev.ThresholdGateEvent(
        1.0, 1e-6, floor=10, noise_scale=1.0, threshold=gate_events.laplace_threshold(1.0, 1e-6)
    )
    assert unmoved.cost().delta > 1e-3


def test_weighted_gaussian_gate_pays_once_for_all_texts():
    event = ev.ThresholdGateEvent(1.0, 1e-6, "contributor", 10, "weighted_gaussian")
    assert (event.cost().epsilon, event.cost().delta) == (1.0, 1e-6)
    assert event.cost().rho == pytest.approx(0.5 / event.noise_scale**2, rel=1e-9)
    per_text = ev.ThresholdGateEvent(1.0, 1e-6, "contributor", 10, "laplace")
    assert per_text.cost().epsilon == 10.0
    with pytest.raises(ValueError, match="noise_scale and threshold go together"):
        ev.ThresholdGateEvent(1.0, 1e-6, noise_scale=1.0)
    with pytest.raises(ValueError, match="threshold must be >= floor = 9"):
        ev.ThresholdGateEvent(1.0, 1e-6, noise="truncated_geometric", floor=9, noise_scale=1.0, threshold=3.0)


def test_gaussian_noise_charges_exact_rho_and_a_point_of_its_curve():
    assert ev.GaussianEvent(1.0, 2.0).cost() == Cost(math.inf, rho=0.125)
    assert ev.GaussianEvent(1.0, 2.0).cost(adjacency="replace").rho == 0.5
    assert ev.GaussianEvent(0.0, 2.0).cost() == Cost(0.0)
    priced = ev.GaussianEvent(1.0, 2.0, delta=1e-6).cost()
    assert composition.gaussian_delta(0.5, priced.epsilon) <= 1e-6
    assert priced.epsilon == pytest.approx(composition.gaussian_epsilon(0.5, 1e-6), rel=1e-9)


def test_minibatch_noise_scales_of_both_adjacencies():
    event = ev.MinibatchSgdEvent(2.0, 10, norm_bound=3.0)
    assert event.cost().epsilon == 1.5
    assert event.cost(adjacency="replace").epsilon == 3.0
    gridded = ev.MinibatchSgdEvent(2.0, 16, grid=0.25)
    assert gridded.cost().epsilon == pytest.approx((1 + 0.25 * 4) / 2)
    laplace = ev.MinibatchSgdEvent(2.0, 16, noise="laplace", grid=0.25)
    assert laplace.cost().epsilon == pytest.approx((4 + 0.25 * 16) / 2)
    assert ev.MinibatchSgdEvent(2.0, 1, updates_per_record=3).cost().epsilon == 1.5


def test_objective_perturbation_is_recomputed_from_its_noise():
    tilt = 0.9 + math.log1p(0.25 / 10)
    output = 2e-6 / 10 / 0.01
    assert TILT.cost().epsilon == pytest.approx(3 * (tilt + output), rel=1e-9)
    assert TILT.cost(adjacency="replace").epsilon == pytest.approx(3 * (0.9 + tilt + output), rel=1e-9)
    assert TILT.tilt_scale == pytest.approx(1 / 0.9)
    replaced = ev.ObjectivePerturbationEvent(0.9, 10.0, 0.0, 5, 1e-6, 0.01, adjacency="replace")
    assert replaced.tilt_scale == pytest.approx(2 / 0.9)
    assert replaced.cost(adjacency="replace").epsilon == pytest.approx(tilt + output, rel=1e-9)
    assert replaced.cost().epsilon == pytest.approx(tilt - 0.45 + output, rel=1e-9)
    with pytest.raises(ValueError, match="gradient_tolerance must be > 0"):
        ev.ObjectivePerturbationEvent(0.9, 10.0, 0.0, 5, 0.0, 0.01)


@given(
    epsilon=st.floats(0.05, 10),
    regularization=st.floats(0.01, 100),
    curvature=st.floats(0.05, 2),
    output_share=st.floats(0.01, 0.3),
    n_models=st.integers(1, 5),
)
def test_calibrated_objective_perturbation_stays_within_its_target(
    epsilon, regularization, curvature, output_share, n_models
):
    """What an estimator does: split its target, calibrate both parts, and be charged no more."""
    each = epsilon / n_models * (1 - 1e-12)
    prime, extra = training.objective_perturbation(
        each * (1 - output_share), 0, regularization, curvature, form="sum", jacobian="rank_one"
    )
    slack = training.solver_slack(1e-5, regularization + extra)
    event = ev.ObjectivePerturbationEvent(
        prime,
        regularization,
        extra,
        3,
        1e-5,
        slack / (each * output_share) * (1 + 1e-12),
        curvature=curvature,
        n_models=n_models,
    )
    assert event.cost().epsilon <= epsilon
    assert event.cost().epsilon >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("event", [event for event in EXAMPLES if hasattr(event, "n_models")], ids=name)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_every_model_of_a_one_vs_rest_is_charged(event, adjacency):
    """They are trained on the same records, so what they cost adds up."""
    one, seven = (price(replace(event, n_models=number), adjacency) for number in (1, 7))
    if isinstance(one, str):
        assert seven == one
        return
    assert seven.epsilon == pytest.approx(7 * one.epsilon)
    assert seven.delta >= 7 * one.delta * (1 - 1e-9)
    assert seven.rho >= 7 * one.rho * (1 - 1e-9)


def test_output_perturbation_charges_slack_and_grid():
    event = ev.OutputPerturbationEvent(10.0, 0.5, 4, 0.01, grid=0.125)
    assert event.sensitivity_l2() == pytest.approx(0.1 + 0.002)
    assert event.cost().epsilon == pytest.approx((0.102 + 0.125 * 2) / 0.5)
    assert event.cost(adjacency="add_remove") == event.cost(adjacency="null")
    mean = ev.OutputPerturbationEvent(0.1, 0.5, 4, 0.001, form="mean", n=100)
    assert mean.cost(adjacency="replace").epsilon == pytest.approx((0.2 + 0.02) / 0.5)
    with pytest.raises(NoProof, match="n must be public"):
        mean.cost(adjacency="add_remove")
    with pytest.raises(ValueError, match="delta must be 0 for K-norm noise"):
        ev.OutputPerturbationEvent(10.0, 0.5, 4, 0.01, delta=1e-6)


def test_secret_sample_amplifies_and_refuses_what_it_cannot():
    inner = ev.GaussianEvent(1.0, 5.0, delta=1e-6)
    cost = ev.SecretSampleEvent(inner, 0.1).cost()
    assert cost.epsilon == pytest.approx(math.log1p(0.1 * math.expm1(inner.cost().epsilon)), rel=1e-9)
    assert cost.delta == pytest.approx(1e-7)
    assert ev.SecretSampleEvent(TILT, 1.0).cost().epsilon == pytest.approx(TILT.cost().epsilon, rel=1e-9)
    with pytest.raises(NoProof, match="amplifies only what has a finite epsilon"):
        ev.SecretSampleEvent(ev.GaussianEvent(1.0, 5.0), 0.1).cost()
    for inner in (ev.SecretSampleEvent(TILT, 0.5), ev.PostProcessingEvent("rank")):
        with pytest.raises(ValueError, match="cannot be sampled"):
            ev.SecretSampleEvent(inner, 0.5)


def test_releases_from_the_same_coins_add_up_to_the_amplification_of_their_sum():
    inner = ev.MinibatchSgdEvent(1.0, 3)
    releases = [ev.SecretSampleEvent(inner, 0.1, float(before)) for before in range(4)]
    total = sum(event.cost().epsilon for event in releases)
    assert total == pytest.approx(math.log1p(0.1 * math.expm1(4.0)), rel=1e-9)
    assert total > 4 * releases[0].cost().epsilon * 2
    for former, event in pairwise(releases):
        assert event.needs_parent
        event.check_parent(former)
    assert not releases[0].needs_parent
    releases[0].check_parent(None)
    with pytest.raises(ValueError, match=r"released_before must be >= 2.0 of the releases before, got 1.0"):
        releases[1].check_parent(releases[1])
    with pytest.raises(ValueError, match=r"must descend from a secret sample of rate at most 0\.1"):
        releases[1].check_parent(ev.SecretSampleEvent(inner, 0.2))
    with pytest.raises(ValueError, match="must name the entry"):
        releases[1].check_parent(None)


def test_online_learning_is_charged_as_zcdp_and_shows_its_information():
    cost = ev.MutualInformationOgdEvent(5, 1.0, 2.0).cost()
    assert cost.rho == 0.5
    assert cost.epsilon == math.inf
    assert cost.mutual_information == pytest.approx(2.5 * math.log(1 + 1 / 20))
    bandit = ev.BanditOgdEvent(5, 1.0, 0.1, 200.0).cost()
    assert bandit.rho == pytest.approx(2 * 50.0**2 / 200.0**2)
    assert bandit.mutual_information == pytest.approx(2.5 * math.log(1 + 5 * 100 / 40_000))


@pytest.mark.parametrize("event", EXAMPLES, ids=name)
def test_only_gaussian_noise_has_a_gaussian_ratio(event):
    adjacency = event.stated_for if isinstance(event, ev.GaussianEvent) else "null"
    mu = event.gaussian_mu(adjacency=adjacency)
    if mu is not None:
        assert event.cost(adjacency=adjacency).rho == pytest.approx(mu * mu / 2)
    always = event.kind in (
        "gaussian",
        "sums",
        "running_sums",
        "gradient_steps",
        "centered_gradient_steps",
        "span_steps",
        "measured_fit",
        "mutual_information_ogd",
        "bandit_ogd",
    )
    assert (mu is not None) == (always or (event.kind == "picked_fit" and event.noise == "gaussian"))
