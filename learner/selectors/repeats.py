"""When a crowd project asks again instead of asking about new texts, and which questions it may ask again.

What is asked again, and when, shows: annotators are handed the questions, engineers see the rounds. So nothing here
reads an answer. The doubt is the last released model's, which has paid for what it knows of answers, and a question
counts by whether it is settled, not by what came of it.
"""

from django.db.models import QuerySet

from annotation.models import Membership, Oracle, Project, Query, QueryState, Role, Selection, WorkState
from annotation.models.questions import FURTHER_ANSWERS
from annotation.statement.label_budget import label_budget
from learner.models import ModelRelease, Round
from learner.selectors import answers as answer_selectors

# A question gets at most so many times the answers it was opened for.
MOST_TIMES = 3
SETTLED = (QueryState.CLOSED, QueryState.DISPUTED)


def asks_again(project: Project, model: ModelRelease | None) -> bool:
    """Say whether half of what passed the gate was asked, and `model` has not named what it doubts yet.

    Each release does so in one round, so that new texts are not kept waiting; None stands for the start's model.
    """
    if not project.repeat_votes or project.oracle != Oracle.CROWD:
        return False
    passed = Query.objects.filter(project=project, gate_run__isnull=False)
    asked = passed.exclude(state=QueryState.UNASKED).count()
    if not 0 < passed.count() <= 2 * asked:
        return False
    earlier = Round.objects.filter(project=project, strategy=Selection.REPEAT_VOTES, model=model)
    return not earlier.exclude(state=WorkState.FAILED).exists() and settled_questions(project).exists()


def settled_questions(project: Project) -> QuerySet[Query]:
    """Return the questions of the gate's output that enough annotators are left for, whatever was answered to them."""
    people = Membership.objects.filter(project=project, role=Role.ANNOTATOR).count()
    # Nobody answers a question twice.
    most = min(people, MOST_TIMES * project.overlap) - FURTHER_ANSWERS
    found = Query.objects.filter(project=project, state__in=SETTLED, gate_run__isnull=False, overlap__lte=most)
    return answer_selectors.with_responses_left(found, project)


def affordable_repeats(project: Project) -> int | None:
    """Return how many questions the label budget can ask again, None where there is no limit."""
    left = label_budget(project).left
    return None if left is None else left // FURTHER_ANSWERS
