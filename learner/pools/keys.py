"""Keys, purposes and task names of the learner's work."""

from typing import Final
from uuid import NAMESPACE_URL, UUID, uuid5

from learner.models import Round, SharesReport, Stream, TrainingRun
from learner.models.answers import AnswerSeries
from privacy.wording import as_message


def attempt_key(
    row: Round | TrainingRun | SharesReport | Stream | AnswerSeries, attempt: int, *, part: str = ""
) -> UUID:
    """Return the idempotency key of one attempt: the next one draws new noise, so it pays anew."""
    return uuid5(NAMESPACE_URL, f"dpal:{row._meta.model_name}:{row.pk}:{attempt}:{part}")


CHOOSE_QUESTIONS: Final = "choose the questions of a round"


CHOOSE_BLOCK: Final = "choose a block of questions in secret"


SUGGEST_CLASSES: Final = "suggest the classes that a version finds likely"


TRAIN_VERSION: Final = "train a version of the model"


TRAIN_ON_GATE_OUTPUT: Final = "train a version of the model on gate output"


RUN_ROUND_TASK: Final = "learner.tasks.run_round_task"


TRAIN_MODEL_TASK: Final = "learner.tasks.train_model_task"


CHECK_RELEASE_TASK: Final = "learner.tasks.check_release_task"


EVALUATE_RELEASE_TASK: Final = "learner.tasks.evaluate_release_task"


RUN_STREAM_TASK: Final = "learner.tasks.run_stream_task"


MEASURE_SHARES: Final = as_message("count classes for their shares")


MEASURE_SHARES_TASK: Final = "learner.tasks.measure_shares_task"
