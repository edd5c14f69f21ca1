"""Rounds that ask again: two more answers to what the released model is least sure of among settled questions."""

from django.conf import settings
from django.db import transaction

from annotation.questions.services import repeats
from annotation.work.services.attempts import finish_work
from annotation.work.services.sending import send_on_commit
from learner.configuration.pool import featurizer_of, strategy_of
from learner.errors import NothingToAsk
from learner.models import Round
from learner.pools import selectors as pool_selectors
from learner.pools.services import features
from learner.rounds.services import scoring
from learner.selectors import repeats as repeat_selectors
from learner.strategies.rows import ListedRows
from learner.strategies.uncertainty import Uncertainty
from learner.work.purposes import CHOOSE_QUESTIONS
from learner.work.services import attempts
from learner.work.services.progress import QUESTIONS, SCORES, Progress
from privacy.services.faults import fault_point
from privacy.wording import as_message


def repeat_doubted(chosen: Round, progress: Progress) -> None:
    """Open the questions the model doubts; what was answered to them is looked at by nobody."""
    project = chosen.project
    settled = repeat_selectors.settled_questions(project)
    examples = pool_selectors.gate_examples(project, settled)
    chooser, model = strategy_of(project, chosen.strategy), scoring.scoring_model(chosen)
    if model is None or not len(examples.ids):
        raise NothingToAsk("There is nothing left to ask again.")
    assert isinstance(chooser, Uncertainty)
    progress.begin(SCORES)
    X = features.stacked_features(examples.datasets, dimension=featurizer_of(project).dimension)
    rows = scoring.watched(ListedRows(examples.rows), X, progress)
    ids = examples.ids[chooser.most_uncertain(X, rows, model, chosen.requested)]
    progress.begin(QUESTIONS)
    fault_point("round_chosen")
    with transaction.atomic():
        repeats.open_for_more_answers(project=project, round_number=chosen.number, query_ids=ids.tolist())
        entries = attempts.record_free_use(
            chosen,
            gates=pool_selectors.gate_entries(examples.datasets),
            operation=as_message("choice of questions to ask again"),
            purpose=CHOOSE_QUESTIONS,
            output_digest=attempts.asked_digest(chosen, ids),
        )
        finish_work(row=chosen, committed_entry=entries[-1], selected=len(ids))
        send_on_commit(settings.PROJECT_CHANGED_TASK, project_id=project.pk)
        fault_point("round_finished")
