"""Faults in how a crowd's answers leave: through a response that is paid once, drawn once and blind to them."""

from tests.evidence.planting import Mutant

SERVICE = "tests/db/learner/answers/test_randomization.py"
CANARY = "tests/statistical/learner/canaries/test_responses.py"
SERVICE_FILE = "learner/rounds/services/randomization.py"
CLASSIFIER_FILE = "learner/estimators/randomized_answers.py"

ANSWERS = [
    Mutant(
        "in front of a crowd, disputed questions outlive the period of answers",
        "annotation/data/services/retention.py",
        "finished = (*FINISHED, QueryState.DISPUTED) if project.oracle == Oracle.CROWD else FINISHED",
        "finished = FINISHED if project.oracle == Oracle.CROWD else FINISHED",
        ("tests/web/annotation/questions/test_crowd_secrets.py::test_what_is_kept_of_old_answers_follows_no_answer",),
    ),
    Mutant(
        "a private start trained by what is proved for answers",
        "learner/pools/selectors.py",
        "    if answers.learns_from_questions(project):\n        raise UnsoundCombination(",
        "    if False:\n        raise UnsoundCombination(",
        (
            "tests/db/learner/starts/test_charged_training.py"
            "::test_a_start_that_waits_is_left_alone_once_models_are_made_of_questions",
        ),
    ),
    Mutant(
        "each of many responses at the price of all",
        "annotation/choices/randomizers.py",
        "math.nextafter(self.answers_epsilon / responses, 0.0)",
        "self.answers_epsilon",
        ("tests/pure/annotation/choices/test_consensus.py::test_all_responses_together_cost_what_is_declared",),
    ),
    Mutant(
        "an account said to hide a person, at the price of one answer",
        "learner/pools/configuration.py",
        "    if event.unit != unit or (unit == ANNOTATOR and (cap is None or event.questions_per_annotator < cap)):",
        "    if False:",
        (
            "tests/web/annotation/choices/test_new_randomizer.py"
            "::test_a_unit_that_its_event_does_not_pay_for_is_never_learned_from",
        ),
    ),
    Mutant(
        "a class that may be said because answers name it",
        SERVICE_FILE,
        "        said = answer_selectors.response_of(locked)",
        "        kept[np.arange(len(agreed)), agreed] = True\n        said = answer_selectors.response_of(locked)",
        (f"{SERVICE}::test_which_classes_may_be_said_does_not_follow_from_the_answers",),
    ),
    Mutant(
        "responses by coins that anybody can throw again",
        SERVICE_FILE,
        "        rng = SecureRandom()\n",
        "        from privacy.mechanisms.randomness import SimulationRandom  # noqa: PLC0415\n"
        "        rng = SimulationRandom(1)\n",
        (f"{SERVICE}::test_which_classes_may_be_said_does_not_follow_from_the_answers",),
    ),
    Mutant(
        "a model of what was answered and not of what was said",
        CLASSIFIER_FILE,
        "likelihoods = likelihoods * self.response.likelihoods(said, kept)",
        "likelihoods = likelihoods * self.response.likelihoods(truth, kept)",
        ("tests/pure/learner/estimators/test_randomized_answers.py::test_answers_that_are_said_alike_give_one_model",),
    ),
    Mutant(
        "a response of twice the loudness that is charged",
        "privacy/mechanisms/randomized_response.py",
        "return cls(n_classes, event.odds)",
        "return cls(n_classes, 2 * event.odds)",
        (f"{CANARY}::test_it_sings_for_the_sampler_and_not_for_one_twice_as_loud",),
    ),
    Mutant(
        "responses that are drawn by another mechanism than is paid for",
        "learner/pools/configuration.py",
        "if not isinstance(mechanism_of(event), choice.mechanism):",
        "if mechanism_of(event) is None:",
        (
            "tests/web/annotation/choices/test_new_response_mechanism.py"
            "::test_an_event_that_nothing_draws_by_is_never_charged",
        ),
    ),
]
