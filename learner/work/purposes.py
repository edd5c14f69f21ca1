"""What a ledger entry says that work of a round or a training is for; which of them it was stands in its subject."""

from typing import Final

from privacy.wording import as_message

CHOOSE_QUESTIONS: Final = as_message("choose the questions of a round")
CHOOSE_BLOCK: Final = as_message("choose a block of questions in secret")
SUGGEST_CLASSES: Final = as_message("suggest the classes that a version finds likely")
TRAIN_VERSION: Final = as_message("train a version of the model")
TRAIN_ON_GATE_OUTPUT: Final = as_message("train a version of the model on gate output")
