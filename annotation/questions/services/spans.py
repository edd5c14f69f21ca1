"""Storing sets of spans under numbers."""

from collections.abc import Iterable, Sequence

from django.db import connection
from django.db.models import Value
from django.db.models.functions import MD5
from django.db.models.lookups import Exact

from annotation.choices.label_types.spans import NO_SPANS
from annotation.errors import InvalidChoice
from annotation.models import Project, Query, SpanSet
from annotation.questions.selectors import marks_spans, stored_choice
from annotation.selectors import asked_records
from dpal.spans.text import MAX_TOKENS, Span, beyond_cut, canonical, written
from privacy.wording import as_message, in_english

NO_SPANS_OF_IT = in_english("Spans lie within the text, neither begin nor end with white space, and never overlap.")
# A number is given once: an answer must not come to mean another set after its own was erased.
STORE = """
INSERT INTO annotation_spanset (project_id, number, spans)
VALUES (%(project)s, nextval(pg_get_serial_sequence('annotation_spanset', 'id')), %(spans)s)
ON CONFLICT DO NOTHING
"""


def number_of_answer(project: Project, query_id: int, answer: int | tuple[Span, ...]) -> int:
    """Return the number of an answer to a question; spans are stored under one."""
    if isinstance(answer, int):
        return answer
    text, record_id = Query.objects.values_list("text", "record_id").get(pk=query_id)
    if record_id is not None:
        text = asked_records([record_id])[record_id].text
    return span_set_number(project, answer, text or "")


def number_of_program(
    project: Project,
    query_id: int,
    *,
    choice: int | None,
    choices: Sequence[int] | None,
    spans: Sequence[Span] | None,
) -> int:
    """Return the number of an answer that a program gives in the way its project asks for."""
    if not marks_spans(project):
        return stored_choice(project, choice if spans is None else None, choices)
    if spans is None or choice is not None or choices is not None:
        raise InvalidChoice(in_english("Answer with `{field}`.", field="spans"))
    return number_of_answer(project, query_id, tuple(spans))


def span_set_number(project: Project, spans: Iterable[Span], text: str) -> int:
    """Return the number of a set of spans of a text, storing it if it is new; equal sets have one number."""
    try:
        found = canonical(spans, text=text)
    except ValueError as error:
        raise InvalidChoice(as_message(NO_SPANS_OF_IT)) from error
    if any(span.type not in project.classes for span in found):
        raise InvalidChoice(in_english("The type of a span is one of the classes."))
    if beyond_cut(text, found) or len(found) > MAX_TOKENS:
        raise InvalidChoice(in_english("Spans lie within the first {most} words.", most=MAX_TOKENS))
    if not found:
        return NO_SPANS
    stored = written(found)
    same_digest = Exact(MD5("spans"), MD5(Value(stored)))
    sets = SpanSet.objects.filter(same_digest, project=project, spans=stored).values_list("number", flat=True)
    while (number := sets.first()) is None:
        with connection.cursor() as cursor:
            cursor.execute(STORE, {"project": project.pk, "spans": stored})
    return number
