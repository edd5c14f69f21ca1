"""Faults in the gates: the count behind the sketch, the threshold, the cap, the sample and the noise."""

from tests.evidence.planting import Mutant

GATE = "tests/pure/privacy/test_gate.py"
RUNS = "tests/db/annotation/budget/test_gate_runs.py"
MECHANISM = "tests/web/annotation/choices/test_new_gate_mechanism.py"
COMPOSED = "tests/pure/privacy/accounting/test_composed_runs.py"
EVENTS = "tests/pure/privacy/accounting"

GATES = [
    Mutant(
        "no exact count behind the sketch",
        "privacy/gate/recount.py",
        'yield share.filter(pc.greater_equal(share["sample_count"], minimum))',
        "yield share if rows.spill is not None else share.filter(pc.greater_equal(share['sample_count'], minimum))",
        (
            "tests/pure/privacy/gate/test_recount.py::test_exact_counts_decide_where_the_sketch_lets_everything_through",
            "tests/pure/privacy/gate/test_recount.py::test_rare_texts_stay_inside_when_they_collide_with_frequent_ones",
        ),
    ),
    Mutant(
        "k - 1 in place of k",
        "privacy/gate/kanonymity.py",
        "return self.k\n",
        "return self.k - 1\n",
        (f"{GATE}::test_record_gate_equals_the_naive_one", f"{GATE}::test_contributor_gate_equals_the_naive_one"),
    ),
    Mutant(
        "a floor below the declared one",
        "privacy/gate/threshold.py",
        "return self.floor\n",
        "return max(1, self.floor - 1)\n",
        ("tests/pure/privacy/test_threshold_gate.py::test_nothing_under_the_floor",),
    ),
    Mutant(
        "a threshold one lower",
        "privacy/gate/threshold.py",
        "release(counts, math.ceil(event.threshold), rng=rng)",
        "release(counts, math.ceil(event.threshold) - 1, rng=rng)",
        ("tests/statistical/privacy/test_threshold_gate.py::test_a_text_of_one_record_comes_out_with_chance_delta",),
    ),
    Mutant(
        "one text more than the cap",
        "privacy/gate/capping.py",
        "places_within(codes[first]) < cap",
        "places_within(codes[first]) <= cap",
        (f"{GATE}::test_cap_limits_the_total_of_a_contributor",),
    ),
    Mutant(
        "a larger sample than is charged",
        "privacy/gate/hashing.py",
        "count=count) < np.uint32(threshold)",
        "count=count) < np.uint32(min(2**32 - 1, threshold * 5 // 4))",
        ("tests/statistical/privacy/test_gate.py::test_sampling_rate[1.0-True]",),
    ),
    Mutant(
        "seven tenths of the noise on frequent texts",
        "privacy/gate/threshold.py",
        "sampler = DiscreteLaplace(self.scale)\n        noise =",
        "sampler = DiscreteLaplace(0.7 * self.scale)\n        noise =",
        (
            "tests/statistical/privacy/test_gate_audits.py::test_threshold_gate",
            "tests/statistical/privacy/test_threshold_gate.py::test_noise_of_what_passes",
        ),
    ),
    Mutant(
        "seven tenths of the noise on what is lifted over the threshold",
        "privacy/gate/threshold.py",
        "sampler = DiscreteLaplace(self.scale)\n        excess =",
        "sampler = DiscreteLaplace(0.7 * self.scale)\n        excess =",
        ("tests/statistical/privacy/test_threshold_gate.py::test_noise_of_what_passes",),
    ),
    Mutant(
        "too many rare texts lifted over the threshold",
        "privacy/gate/threshold.py",
        "chance = (q**distance - beyond)",
        "chance = (q ** (distance - 1) - beyond)",
        ("tests/statistical/privacy/test_threshold_gate.py::test_chance_to_pass",),
    ),
    Mutant(
        "seven tenths of the Gaussian noise on weights",
        "privacy/gate/threshold.py",
        "noisy = DiscreteGaussian(self.scale)",
        "noisy = DiscreteGaussian(0.7 * self.scale)",
        ("tests/statistical/privacy/test_threshold_gate.py::test_gaussian_chance_to_pass[1.0-True]",),
    ),
    Mutant(
        "contributors whose weights are not shared among their texts",
        "privacy/gate/threshold.py",
        "STEPS / np.sqrt(texts) *",
        "STEPS / np.sqrt(np.sqrt(texts)) *",
        ("tests/pure/privacy/test_threshold_gate.py::test_weights_of_a_contributor_have_a_norm_of_at_most_one",),
    ),
    Mutant(
        "weights of a contributor that are rounded up",
        "privacy/gate/threshold.py",
        "np.floor(STEPS / np.sqrt(texts) * (1 - 2.0**-50))",
        "np.ceil(STEPS / np.sqrt(texts))",
        ("tests/pure/privacy/test_threshold_gate.py::test_weights_of_a_contributor_have_a_norm_of_at_most_one",),
    ),
    Mutant(
        "a contributor who counts for every record",
        "privacy/gate/capping.py",
        "ordered[1:] != ordered[:-1]]]] = True",
        "ordered[1:] == ordered[1:]]]] = True",
        (f"{GATE}::test_one_contributor_alone_never_passes",),
    ),
    Mutant(
        "a gate charged for a larger k",
        "privacy/gate/kanonymity.py",
        "            k=self.k,\n            sampling_rate=self.exact_sampling_rate,",
        "            k=self.k + 1,\n            sampling_rate=self.exact_sampling_rate,",
        (f"{GATE}::test_event_is_priced_for_what_happens",),
    ),
    Mutant(
        "a gate charged for a smaller sample",
        "privacy/gate/kanonymity.py",
        "sampling_rate=self.exact_sampling_rate,",
        "sampling_rate=0.9 * self.exact_sampling_rate,",
        (f"{GATE}::test_event_is_priced_for_what_happens",),
    ),
    Mutant(
        "a grid of Gaussian counts nobody pays for",
        "privacy/gate/threshold.py",
        "delta=self.delta * (1 - _GRID_SHARE) if weighted else self.delta,",
        "delta=self.delta,",
        ("tests/pure/privacy/test_threshold_gate.py::test_grid_of_the_gaussian_is_paid_for",),
    ),
    Mutant(
        "coins that the next batch of records throws again",
        "privacy/gate/reading.py",
        "        position += len(texts)\n        # Sampling first",
        "        # Sampling first",
        (f"{GATE}::test_record_gate_equals_the_naive_one",),
    ),
    Mutant(
        "a gate without a proof over a table that stays where it is",
        "privacy/accounting/gate_events.py",
        "if not self.inner.proved_over_snapshots:",
        "if False:",
        (f"{EVENTS}/test_events_snapshot.py::test_a_gate_that_declares_no_proof_is_over_no_snapshot",),
    ),
    Mutant(
        "a gate without a proof over uploads that are counted together",
        "privacy/accounting/gate_events.py",
        "if not self.inner.proved_in_windows:",
        "if False:",
        (f"{EVENTS}/test_events_window.py::test_a_gate_that_declares_no_proof_is_in_no_series",),
    ),
    Mutant(
        "every gate proved for what is more than a run, whatever it declares",
        "privacy/accounting/gate_events.py",
        "    proved_in_windows: ClassVar[bool] = False\n",
        "    proved_in_windows: ClassVar[bool] = True\n",
        (f"{EVENTS}/test_events_window.py::test_a_gate_that_declares_no_proof_is_in_no_series",),
    ),
    Mutant(
        "a product of one run less than there are",
        "privacy/accounting/composition.py",
        "sides = [_power(side, runs, most / step)",
        "sides = [_power(side, runs - 1, most / step)",
        (f"{COMPOSED}::test_another_convolution_of_curves_by_brute_force_gives_the_same",),
    ),
    Mutant(
        "a window composed as if its uploads were one",
        "privacy/accounting/gate_events.py",
        "return self.inner.composed(self.window, adjacency=adjacency)",
        "return self.inner.composed(1, adjacency=adjacency)",
        (f"{COMPOSED}::test_no_sizes_of_a_text_in_so_many_runs_exceed_the_charge",),
    ),
    Mutant(
        "a gate that is charged for hiding others than it hides",
        "annotation/choices/gates.py",
        "if not isinstance(event, self.charged_as) or not event.unit == gate.unit == unit:",
        "if not isinstance(event, self.charged_as):",
        (f"{MECHANISM}::test_an_event_that_is_none_of_a_gate_or_hides_others_is_never_charged_and_nothing_is_read",),
    ),
    Mutant(
        "any code that a job for executors names",
        "privacy/gate/counting.py",
        "if not (isinstance(kind, type) and issubclass(kind, CountingGate)):",
        "if kind is None:",
        (f"{MECHANISM}::test_a_job_names_gates_and_no_other_code",),
    ),
    Mutant(
        "an upload that enters a series of runs anew with every attempt",
        "annotation/budget/charges.py",
        "epoch = None if earlier is None else _run(earlier).epoch",
        "epoch = None",
        (f"{RUNS}::test_a_killed_run_is_paid_for_and_repeated_as_its_epoch",),
    ),
]
