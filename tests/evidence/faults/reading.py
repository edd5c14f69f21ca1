"""Faults in what is made of a release: models that would be worse, or surer of themselves, than they may be."""

from tests.evidence.planting import Mutant

SUMS = "tests/pure/learner/estimators/test_sums.py"
CHANNEL = "tests/pure/learner/estimators/test_channel.py"
SUM_MODELS_FILE = "client/src/dpal/recompute/sums.py"
CHANNEL_FILE = "client/src/dpal/recompute/channel.py"

READING = [
    Mutant(
        "noise that is split into two halves which are one",
        SUM_MODELS_FILE,
        "NoisySums(moments[1], sums.class_sums - beside, *variances)",
        "NoisySums(moments[1], sums.class_sums + beside, *variances)",
        (f"{SUMS}::test_split_noise_gives_two_independent_versions",),
    ),
    Mutant(
        "a covariance repaired with the noise left in",
        SUM_MODELS_FILE,
        "edge = 4 * (variance / 2) * d",
        "edge = 0.0",
        (f"{SUMS}::test_a_repaired_matrix_is_positive_and_nearer_to_the_truth",),
    ),
    Mutant(
        "responses believed as if they were true",
        CHANNEL_FILE,
        "np.log(chances),",
        "np.log(np.where(chances == chances.max(axis=1, keepdims=True), chances, 1e-9 * chances)),",
        (f"{CHANNEL}::test_knowing_the_channel_is_worth_more_than_believing_what_was_said",),
    ),
    Mutant(
        "responses to which the prior is counted twice",
        CHANNEL_FILE,
        "joint = logs + task.logs",
        "joint = 2 * logs + task.logs",
        (f"{CHANNEL}::test_responses_that_say_nothing_leave_the_prior",),
    ),
    Mutant(
        "a penalty judged by the responses it was fitted to",
        CHANNEL_FILE,
        "task.part(fold == held).log_likelihood(",
        "task.part(fold != held).log_likelihood(",
        (f"{CHANNEL}::test_the_penalty_with_the_likelier_held_out_responses_is_taken",),
    ),
    Mutant(
        "a channel that never answers for a class the prior left out",
        "privacy/mechanisms/randomized_response.py",
        "np.where(keeps, ODDS_UNIT / totals, 1 / sizes)",
        "np.where(keeps, ODDS_UNIT / totals, 0 / sizes)",
        ("tests/pure/privacy/mechanisms/test_randomized_response.py::test_the_channel_that_learners_use_is_the_law",),
    ),
]
