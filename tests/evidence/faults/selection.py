"""Faults in who is asked: secret samples, their rates and blocks, and who may see a choice."""

from tests.evidence.planting import Mutant

STRATEGIES = "tests/pure/learner/strategies/test_strategies.py"
RUNNING = "tests/db/learner/trainings/test_every_estimator.py"
ROUND_PRICES = "tests/db/learner/pools/selectors/test_round_prices.py"
SECRET_ROUNDS = "tests/db/learner/rounds/test_secret_blocks.py"
RESERVING = "tests/db/learner/rounds/test_scoring.py"

SELECTION = [
    Mutant(
        "a secret sample before a crowd, who would see it",
        "learner/strategies/secret_sample.py",
        'oracles = frozenset({"trusted"})',
        'oracles = frozenset({"trusted", "crowd"})',
        (f"{STRATEGIES}::test_each_strategy_stands_before_the_annotators_it_is_proved_for",),
    ),
    Mutant(
        "exact uncertainty before experts, who see records",
        "learner/strategies/uncertainty.py",
        'oracles = frozenset({"crowd"})',
        'oracles = frozenset({"trusted", "crowd"})',
        (f"{STRATEGIES}::test_each_strategy_stands_before_the_annotators_it_is_proved_for",),
    ),
    Mutant(
        "a training made dearer since at the price of the series",
        "privacy/accounting/series.py",
        "                return None\n        else:",
        "                training = before.inner\n        else:",
        (f"{RUNNING}::test_a_training_made_dearer_since_is_no_part_of_the_series",),
    ),
    Mutant(
        "a series that is opened with every block",
        "learner/pools/records.py",
        "before = None if anew else _standing(project)",
        "before = None",
        (
            f"{RUNNING}::test_a_step_of_the_series_is_paid_by_one_release",
            f"{SECRET_ROUNDS}::test_each_release_is_charged_what_it_adds_to_the_series",
        ),
    ),
    Mutant(
        "running sums whose blocks are added whatever their shape",
        "learner/rounds/services/training.py",
        "return stored.filter(shape__in=wanted)",
        "return stored",
        (f"{RUNNING}::test_sums_of_another_shape_begin_anew",),
    ),
    Mutant(
        "running sums that forget all but the newest block",
        "learner/rounds/services/training.py",
        "estimator.set_params(earlier=earlier.sums, own_weight=earlier.own_weight, prior=start)",
        "estimator.set_params(prior=start)",
        (f"{RUNNING}::test_each_release_is_made_of_all_blocks_so_far",),
    ),
    Mutant(
        "every block charged at the rate of the first",
        "learner/pools/configuration.py",
        "SecretSample(blocks_choice_of(project).block_rates[block - 1])",
        "SecretSample(blocks_choice_of(project).block_rates[0])",
        (f"{SECRET_ROUNDS}::test_each_release_is_charged_what_it_adds_to_the_series",),
    ),
    Mutant(
        "coins of a larger rate than is charged",
        "learner/rounds/services/selection.py",
        "draw_blocks(min(PART_ROWS, dataset.row_count - start), rates, rng)",
        "draw_blocks(min(PART_ROWS, dataset.row_count - start), [1.5 * rate for rate in rates], rng)",
        (f"{SECRET_ROUNDS}::test_coins_fall_at_the_rates_that_are_charged",),
    ),
    Mutant(
        "top-c told at the price among records that were asked already",
        "learner/pools/prices.py",
        "records.records_left(project))",
        "records.pool_size(project))",
        (f"{ROUND_PRICES}::test_the_price_is_what_the_round_reserves[top-c, continued]",),
    ),
    Mutant(
        "a price before an upload that a pool no larger than a round exceeds",
        "learner/pools/prices.py",
        "coming.requested if before_upload else 1",
        "1",
        (f"{ROUND_PRICES}::test_no_upload_makes_a_round_dearer_than_was_told_before_it",),
    ),
    Mutant(
        "a round that is opened though choosing leaves too little for its model",
        "learner/rounds/next_step.py",
        "if step == Step.ASK and project.oracle == Oracle.TRUSTED:",
        "if step == Step.ASK and project.oracle == Oracle.TRUSTED and not secret_selectors.labels_in_secret(project):",
        (f"{ROUND_PRICES}::TestNothingLeftForTheModel::test_it_is_said_before_anybody_is_asked",),
    ),
    Mutant(
        "a round chosen once more though nothing is left for its model",
        "learner/rounds/services/selection.py",
        "if not can_pay(account, wanted):",
        "if not can_pay(account, [event]):",
        (
            f"{ROUND_PRICES}::TestNothingLeftForTheModel::test_a_manager_who_starts_it_anew_pays_for_nothing_either",
            f"{RESERVING}::test_where_the_model_is_out_of_reach_no_second_attempt_is_charged",
        ),
    ),
    Mutant(
        "a visible choice at the price of a secret one",
        "learner/rounds/services/training.py",
        "return charged_event(run.project, estimator.event_for(featurizer.dimension))",
        "from privacy.accounting.events import SecretSampleEvent  # noqa: PLC0415\n"
        "        return SecretSampleEvent(estimator.event_for(featurizer.dimension), 0.1)",
        ("tests/db/learner/trainings/test_fitting.py::test_a_release_holds_what_was_paid_for",),
    ),
    Mutant(
        "blocks whose coins overlap",
        "learner/strategies/blocks.py",
        'side="right")',
        'side="left")',
        ("tests/pure/learner/strategies/test_blocks.py::test_a_coin_at_an_edge_belongs_to_the_next_block",),
    ),
    *(
        Mutant(
            f"{choice} before a crowd, who would see it",
            f"learner/strategies/{file}.py",
            'oracles = frozenset({"trusted"})',
            'oracles = frozenset({"trusted", "crowd"})',
            (f"{STRATEGIES}::test_each_strategy_stands_before_the_annotators_it_is_proved_for",),
        )
        for choice, file in (("a screen", "bernoulli_screen"), ("a noisy top-c choice", "top_c"))
    ),
    Mutant(
        "clusters of records before experts, who see records",
        "learner/strategies/clustered_uncertainty.py",
        'oracles = frozenset({"crowd"})',
        'oracles = frozenset({"trusted", "crowd"})',
        (f"{STRATEGIES}::test_each_strategy_stands_before_the_annotators_it_is_proved_for",),
    ),
    Mutant(
        "every round of a top-c choice charged as a further one",
        "learner/strategies/top_c.py",
        "scale=self.scale, series=series)",
        'scale=self.scale, series="continued")',
        (f"{STRATEGIES}::test_top_c_is_charged_for_its_place_in_the_series",),
    ),
    Mutant(
        "records that were asked about and stay candidates",
        "learner/strategies/rows.py",
        "np.unique(taken)",
        "np.unique(taken[:0])",
        ("tests/pure/learner/strategies/test_strategies.py::test_open_rows_are_the_list_of_them",),
    ),
    Mutant(
        "top-c that draws among its first block alone",
        "learner/strategies/top_c.py",
        "return rows.at(select_top_c(scores, picks=picks, scale=self.scale, rng=rng))",
        "return rows.at(select_top_c([next(scores)], picks=picks, scale=self.scale, rng=rng))",
        (f"{STRATEGIES}::test_blocks_of_top_c_choose_what_all_scores_at_once_choose",),
    ),
]
