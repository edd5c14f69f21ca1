"""When a crowd project asks again instead of asking about new texts, and about which questions."""

from django.db.models import Case, F, FloatField, Q, QuerySet, Value, When
from django.db.models.functions import Cast

from annotation.label_budget import label_budget
from annotation.models import Membership, Oracle, Project, Query, QueryState, Role
from annotation.services.repeats import FURTHER_ANSWERS

# A question gets at most so many times the answers it was opened for.
MOST_TIMES = 3


def asks_again(project: Project) -> bool:
    """Say whether half of what passed the gate was asked and some answer leaves a doubt that others could settle."""
    if not project.repeat_votes or project.oracle != Oracle.CROWD:
        return False
    passed = Query.objects.filter(project=project, gate_run__isnull=False)
    asked = passed.exclude(state=QueryState.CANDIDATE).count()
    return 0 < passed.count() <= 2 * asked and doubtful_questions(project).exists()


def doubtful_questions(project: Project) -> QuerySet[Query]:
    """Return answered questions without a majority, with a divided one, or of one voice, the most doubtful first.

    Only those that enough annotators have not answered yet; nobody answers a question twice.
    """
    people = Membership.objects.filter(project=project, role=Role.ANNOTATOR).count()
    most = min(people, MOST_TIMES * project.overlap) - FURTHER_ANSWERS
    divided = Q(state=QueryState.CLOSED) & (Q(consensus__agreeing__lt=F("consensus__votes")) | Q(consensus__votes=1))
    share = Cast(F("consensus__agreeing") + 1, FloatField()) / Cast(F("consensus__votes") + 2, FloatField())
    confidence = Case(When(state=QueryState.DISPUTED, then=Value(0.0)), default=share, output_field=FloatField())
    found = Query.objects.filter(Q(state=QueryState.DISPUTED) | divided, project=project, overlap__lte=most)
    return found.order_by(confidence, "pk")


def affordable_repeats(project: Project) -> int | None:
    """Return how many questions the label budget can ask again, None where there is no limit."""
    left = label_budget(project).left
    return None if left is None else left // FURTHER_ANSWERS
