"""Possible answers of a project, hidden checks, flags and own answers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Count, F, Max, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext

from annotation import selectors
from annotation.choices.classes import counts_as
from annotation.choices.consensus import Agreement
from annotation.choices.label_types.base import LabelType, NamesSeveral, OwnWords, places_of_answer, refusal_of
from annotation.choices.label_types.catalogue import label_type_of
from annotation.choices.label_types.spans import NO_SPANS, MarkSpans
from annotation.errors import InvalidChoice
from annotation.intervals import wilson_interval
from annotation.models import (
    Assignment,
    AssignmentState,
    Label,
    Membership,
    Oracle,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
    SpanSet,
)
from annotation.models.configurations import MOST_KNOWN, settings_in
from annotation.models.quality import GoldQuery
from annotation.models.questions import UNREAD_BY_ANNOTATOR
from annotation.wording import class_name
from dpal.spans import text as marks
from dpal.spans.text import Span
from privacy.choices import Kind
from privacy.wording import Message, as_message, in_english


def label_type(project: Project) -> LabelType:
    return _label_type(project.question_kind, project.configuration_id)


@lru_cache(maxsize=MOST_KNOWN)
def _label_type(name: str, configuration_id: UUID) -> LabelType:
    # A configuration never changes, and no parameter of a type of label is a column of the project.
    return label_type_of(name, settings_in(configuration_id))


def answer_names(project: Project) -> list[str]:
    kind = label_type(project)
    return [gettext(word) for word in kind.words] if isinstance(kind, OwnWords) else list(project.classes)


def names_several(project: Project) -> bool:
    return isinstance(label_type(project), NamesSeveral)


def marks_spans(project: Project) -> bool:
    return isinstance(label_type(project), MarkSpans)


def spans_of(project: Project, numbers: Iterable[int]) -> dict[int, tuple[Span, ...]]:
    """Return the spans of answers by their numbers, under the types' present names; none where none are stored."""
    wanted = set(numbers)
    stored = SpanSet.objects.filter(project=project, number__in=wanted).values_list("number", "spans")
    now = project.renamed_classes
    named = {
        number: tuple(replace(span, type=now.get(span.type, span.type)) for span in marks.read(spans))
        for number, spans in stored
    }
    return dict.fromkeys(wanted, ()) | named


@dataclass(frozen=True, slots=True)
class Suggestion:
    choice: int
    name: str
    percent: int


def suggestion_of(assignment: Assignment, text: str | None = None) -> Suggestion | None:
    """Return what a model suggested; spans are named with the words they mark where the text is given."""
    query = assignment.query
    if query.suggested is None or query.suggested_percent is None or not query.suggestion_shown:
        return None
    project, choice = assignment.project, query.suggested
    if marks_spans(project):
        return Suggestion(choice, answer_name(project, choice, text), query.suggested_percent)
    if merged := project.merged_classes.get(project.classes[choice]):
        choice = project.classes.index(merged["into"])
    return Suggestion(choice, str(project.classes[choice]), query.suggested_percent)


def answer_name(project: Project, choice: int, text: str | None = None) -> str:
    """Return an answer in words; of spans their types, with the words they mark where the text is given."""
    if marks_spans(project):
        found = spans_of(project, [choice])[choice]
        said = [span.type if text is None else f"{span.type}: {text[span.start : span.end]}" for span in found]
        return "; ".join(said) or gettext("no spans")
    names = answer_names(project)
    return ", ".join(str(names[place]) for place in places_in(project, choice)) or gettext("None of them")


def counting_places(project: Project) -> tuple[int, ...]:
    return counts_as(project.classes, project.merged_classes)


def counted(project: Project, choice: int) -> int:
    places = counting_places(project)
    return places[choice] if places else choice


def counting_as(project: Project, choice: int) -> list[int]:
    return [choice, *(place for place, into in enumerate(counting_places(project)) if into == choice != place)]


def counts_equal(project: Project, answer: str, expected: str) -> Q:
    same = Q(**{answer: F(expected)})
    for into in {one for place, one in enumerate(counting_places(project)) if one != place}:
        group = counting_as(project, into)
        same |= Q(**{f"{answer}__in": group, f"{expected}__in": group})
    return same


def offered_answers(project: Project) -> list[tuple[int, str]]:
    places = counting_places(project)
    return [(n, class_name(name)) for n, name in enumerate(answer_names(project)) if not places or places[n] == n]


def agreed_on(project: Project, votes: Sequence[int]) -> Agreement | None:
    """Return what answers agree on after merges, stored as most of those who agree said it; None without a majority."""
    agreement = label_type(project).agreed([counted(project, vote) for vote in votes])
    if agreement is None or not counting_places(project):
        return agreement
    said = Counter(sorted(vote for vote in votes if counted(project, vote) == agreement.choice))
    return replace(agreement, choice=said.most_common(1)[0][0])


def possible_answers(project: Project) -> int:
    return label_type(project).possible(len(project.classes))


def refuse_no_answer(project: Project, choice: int) -> None:
    if refusal := refusal_of(label_type(project), choice, len(project.classes)):
        raise InvalidChoice(refusal)
    if marks_spans(project) and choice != NO_SPANS:
        # Locked, so that nobody erases it before the answer that refers to it is there.
        stored = SpanSet.objects.select_for_update(no_key=True).filter(project=project, number=choice)
        if stored.first() is None:
            raise InvalidChoice(in_english("Answer with `{field}`.", field="spans"))


def stored_choice(project: Project, choice: int | None, choices: Sequence[int] | None) -> int:
    """Return a program's answer as one number: a position, or a set of positions where several are allowed."""
    kind = label_type(project)
    if not isinstance(kind, NamesSeveral):
        if choice is None or choices is not None:
            raise InvalidChoice(in_english("Answer with `{field}`.", field="choice"))
        return choice
    if choice is not None or choices is None:
        raise InvalidChoice(in_english("Answer with `{field}`.", field="choices"))
    if len(set(choices)) != len(choices):
        raise InvalidChoice(in_english("A class is named once."))
    try:
        return kind.stored(choices)
    except ValueError:
        raise InvalidChoice("So many classes are not stored together.") from None


def places_in(project: Project, choice: int) -> tuple[int, ...]:
    if marks_spans(project):
        types = {span.type for span in spans_of(project, [choice])[choice]}
        return tuple(place for place, name in enumerate(project.classes) if name in types)
    return places_of_answer(label_type(project), choice)


def last_done(desk: Any) -> str | None:
    if desk.skipped_at and not (desk.answered_at and desk.answered_at > desk.skipped_at):
        flagged = desk.last_skip in (ReportKind.BROKEN, ReportKind.SENSITIVE)
        return gettext("flagged") if flagged else gettext("skipped")
    return None if desk.last_choice is None else answer_name(desk, desk.last_choice)


def counted_answers(project: Project, choices: Sequence[int]) -> list[tuple[str, int]]:
    numbers = {choice: choices.count(choice) for choice in sorted(set(choices))}
    return [(answer_name(project, choice), n) for choice, n in sorted(numbers.items(), key=lambda each: -each[1])]


@dataclass(frozen=True, slots=True)
class Checks:
    right: int
    answered: int

    @property
    def accuracy(self) -> float | None:
        return self.right / self.answered if self.answered else None

    @property
    def low(self) -> float:
        return wilson_interval(self.right, self.answered)[0]

    @property
    def high(self) -> float:
        return wilson_interval(self.right, self.answered)[1]

    @property
    def percent(self) -> int | None:
        return None if self.accuracy is None else round(100 * self.accuracy)

    @property
    def interval(self) -> str:
        return f"{100 * self.low:.0f}-{100 * self.high:.0f} %"


def checks_of(*, project: Project, user_id: int) -> Checks:
    """Return the checks of one person that count: none from before a manager let them go on."""
    return counted_checks(
        project, answered_checks(project).filter(annotator=user_id), judged_from(project).get(user_id)
    )


def counted_checks(project: Project, labels: QuerySet[Label], since: Any) -> Checks:
    rows = labels if since is None else labels.filter(created_at__gt=since)
    found = rows.aggregate(answered=Count("pk"), right=Count("pk", filter=answered_rightly(project)))
    return Checks(right=found["right"], answered=found["answered"])


def answered_rightly(project: Project) -> Q:
    return counts_equal(project, "choice", "query__gold__choice")


def answered_checks(project: Project) -> QuerySet[Label]:
    return Label.objects.filter(
        query__project=project, query__state=QueryState.GOLD, query__gold__retired_at=None, superseded_at=None
    )


def checks_in_use(project: Project) -> QuerySet[Any]:
    counted = Q(query__labels__superseded_at=None, query__labels__isnull=False)
    wrong = counted & ~counts_equal(project, "query__labels__choice", "choice")
    return (
        GoldQuery.objects.filter(query__project=project, retired_at=None)
        .annotate(answered=Count("query__labels", filter=counted), wrong=Count("query__labels", filter=wrong))
        .select_related("query__project", "query__record")
        .order_by("-wrong", "-answered", "pk")
    )


def judged_from(project: Project) -> dict[int, Any]:
    rows = Membership.objects.filter(project=project, role=Role.ANNOTATOR).exclude(judged_from=None)
    return dict(rows.values_list("user", "judged_from"))


SHOWN = 200
OTHERS_SHOWN = 20
FROM_ANNOTATORS = (ReportKind.BROKEN, ReportKind.SENSITIVE, ReportKind.COMMENT)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A question out of the queue: what it shows, if the manager may see that, and why nobody answered."""

    query: Query
    text: str | None
    reasons: Sequence[tuple[str, int]]
    reports: Sequence[Report]


def questions_set_aside(project: Project, user: AbstractBaseUser | AnonymousUser) -> list[SetAside]:
    queries = list(
        Query.objects.filter(project=project, state=QueryState.SET_ASIDE)
        .select_related("record")
        .order_by("pk")[:SHOWN]
    )
    ids = [query.pk for query in queries]
    skipped = (
        Assignment.objects.filter(query__in=ids, state=AssignmentState.SKIPPED)
        .values_list("query", "skip_reason")
        .annotate(people=Count("pk"))
        .order_by("-people")
    )
    reasons: dict[int, list[tuple[str, int]]] = {}
    for query_id, reason, people in skipped:
        reasons.setdefault(query_id, []).append((reason, people))
    said: dict[int, list[Report]] = {}
    for report in _open_reports(project).filter(query__in=ids):
        said.setdefault(report.query_id, []).append(report)
    readable = may_read_questions(project, user)
    return [
        SetAside(query, _text(query) if readable else None, reasons.get(query.pk, ()), said.get(query.pk, ()))
        for query in queries
    ]


def reports_on_others(project: Project) -> QuerySet[Report]:
    return _open_reports(project).exclude(query__state=QueryState.SET_ASIDE)[:SHOWN]


def count_for_managers(project: Project) -> int:
    reported = Q(reports__resolved_at=None, reports__kind__in=FROM_ANNOTATORS)
    return Query.objects.filter(Q(state=QueryState.SET_ASIDE) | reported, project=project).distinct().count()


def may_read_questions(project: Project, user: AbstractBaseUser | AnonymousUser) -> bool:
    """Say whether a manager may read questions: gate output, or records they are asked about themselves."""
    return (
        project.oracle == Oracle.CROWD
        or selectors.projects_of(user, roles=(Role.ANNOTATOR,)).filter(pk=project.pk).exists()
    )


def _text(query: Query) -> str | None:
    return query.text if query.record is None else query.record.text


def _open_reports(project: Project) -> QuerySet[Report]:
    said = Report.objects.filter(project=project, resolved_at=None, kind__in=FROM_ANNOTATORS)
    return said.select_related("annotator", "query").order_by("pk")


def reply_refusal(project: Project) -> Message | None:
    if project.oracle == Oracle.CROWD:
        return as_message("Not for crowds: annotators would learn that answers differ.")
    if project.settings.get(Kind.RANDOMIZER.key):
        return as_message("Randomised answers are given once.")
    return None


def reports_of(project: Project, query_id: int) -> QuerySet[Report]:
    said = Report.objects.filter(project=project, query=query_id)
    return said.select_related("annotator", "resolved_by").order_by("pk")


def own_flags(project: Project, user_id: int, query_ids: Iterable[int]) -> dict[int, list[Report]]:
    found: dict[int, list[Report]] = {}
    for one in _of(project, user_id).filter(query__in=list(query_ids)).order_by("pk"):
        found.setdefault(one.query_id, []).append(one)
    return found


def own_words(project: Project, user_id: int, *, unread: bool) -> list[tuple[UUID, Report]]:
    said = unread_by(project, user_id) if unread else _of(project, user_id)
    rows = list(said.order_by("-pk")[:SHOWN])
    turns = Assignment.objects.filter(annotator=user_id, query__in={one.query_id for one in rows})
    places = dict(turns.values_list("query", "pk"))
    return [(places[one.query_id], one) for one in rows if one.query_id in places]


def unread_by(project: Project, user_id: int) -> QuerySet[Report]:
    return _of(project, user_id).filter(UNREAD_BY_ANNOTATOR)


def about_other_questions(project: Project, user_id: int, *, unread: bool) -> list[int]:
    said = unread_by(project, user_id) if unread else _of(project, user_id).exclude(reply="", kind__in=FROM_ANNOTATORS)
    own = Query.objects.filter(labels__annotator=user_id, labels__superseded_at=None, labels__choice__isnull=False)
    said = said.exclude(query__in=own.exclude(state=QueryState.SET_ASIDE).values("pk"))
    rows = said.values("query").annotate(newest=Max("pk")).order_by("-newest")
    return [row["query"] for row in rows[:OTHERS_SHOWN]]


def _of(project: Project, user_id: int) -> QuerySet[Report]:
    return Report.objects.filter(project=project, annotator=user_id)


PAGE = 20
# Each answer that may be changed comes with the whole list of classes.
OPTIONS_A_PAGE = 2000


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    label: Label
    question: selectors.Question
    name: str
    places: Sequence[int]
    guess: str | None
    said: Sequence[Report]
    may_change: bool

    @property
    def query_id(self) -> int:
        return self.label.query_id

    @property
    def is_unread(self) -> bool:
        return _is_unread(self.said)


@dataclass(frozen=True, slots=True)
class OtherFlags:
    query_id: int
    question: selectors.Question | None
    said: Sequence[Report]

    @property
    def is_unread(self) -> bool:
        return _is_unread(self.said)


@dataclass(frozen=True, slots=True)
class OwnPage:
    answers: Sequence[OwnAnswer]
    others: Sequence[OtherFlags]
    before: int | None


def own_answers(project: Project, user: AbstractBaseUser, *, before: int | None, unread: bool) -> OwnPage:
    own = Label.objects.filter(annotator=user.pk, query__project=project, superseded_at=None, query__emptied=False)
    own = own.exclude(query__state=QueryState.SET_ASIDE).filter(choice__isnull=False)
    if unread:
        own = own.filter(query__in=unread_by(project, user.pk).values("query"))
    if before is not None:
        own = own.filter(Q(pk__lt=before))
    names = answer_names(project)
    most = max(1, min(PAGE, OPTIONS_A_PAGE // len(names)))
    labels = list(own.select_related("query", "assignment").order_by("-pk")[: most + 1])
    more, labels = len(labels) > most, labels[:most]
    others = _others(project, user, unread=unread) if before is None else []
    conversations = own_flags(
        project, user.pk, [*(label.query_id for label in labels), *(turn.query_id for turn in others)]
    )
    queries = [*(label.query for label in labels), *(turn.query for turn in others if _is_shown(turn.query))]
    records = selectors.asked_records(query.record_id for query in queries if query.record_id is not None)
    for query in queries:
        query.record = records.get(query.record_id) if query.record_id else None
    correctable = selectors.correctable_assignments(user.pk).filter(
        project=project, pk__in=[label.assignment_id for label in labels]
    )
    open_still = set(correctable.values_list("pk", flat=True))
    found = [
        OwnAnswer(
            label=label,
            question=_asked(project, label.query, label.assignment_id),
            name="" if label.choice is None else answer_name(project, label.choice, _text(label.query)),
            places=() if label.choice is None else places_in(project, label.choice),
            guess=None if label.query.guess is None else str(project.classes[label.query.guess]),
            said=conversations.get(label.query_id, ()),
            may_change=label.assignment_id in open_still,
        )
        for label in labels
    ]
    beside = [
        OtherFlags(
            query_id=turn.query_id,
            question=_asked(project, turn.query, turn.pk) if _is_shown(turn.query) else None,
            said=conversations.get(turn.query_id, ()),
        )
        for turn in others
    ]
    return OwnPage(found, beside, labels[-1].pk if more else None)


def _others(project: Project, user: AbstractBaseUser, *, unread: bool) -> list[Assignment]:
    ids = about_other_questions(project, user.pk, unread=unread)
    turns = Assignment.objects.filter(project=project, annotator=user.pk, query__in=ids).select_related("query")
    return sorted(turns, key=lambda turn: ids.index(turn.query_id))


def _is_shown(query: Query) -> bool:
    # What was found sensitive has left everybody's page.
    return query.state != QueryState.SET_ASIDE and not query.emptied


def _is_unread(said: Sequence[Report]) -> bool:
    return any(one.is_unread for one in said)


def _asked(project: Project, query: Query, turn_id: UUID) -> selectors.Question:
    image: Any = reverse("annotation:question_image", args=[turn_id])
    return selectors.shown_of(project, query, image_url=image)
