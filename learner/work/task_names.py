"""Names of the learner's tasks, by which services send what they cannot import."""

from typing import Final

RUN_ROUND_TASK: Final = "learner.tasks.run_round_task"
TRAIN_MODEL_TASK: Final = "learner.tasks.train_model_task"
CHECK_RELEASE_TASK: Final = "learner.tasks.check_release_task"
EVALUATE_RELEASE_TASK: Final = "learner.tasks.evaluate_release_task"
SEND_WEBHOOK_TASK: Final = "learner.tasks.send_webhook_task"
RUN_STREAM_TASK: Final = "learner.tasks.run_stream_task"
ANSWER_BY_MACHINE_TASK: Final = "learner.tasks.answer_by_machine_task"
