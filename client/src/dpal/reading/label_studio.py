"""Label Studio exports: a list of tasks with annotations, in full (JSON) or flat (JSON-MIN)."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import Any

from dpal.errors import Unreadable
from dpal.reading.cells import BadCell
from dpal.reading.foreign import is_prodigy, row_of_prodigy
from dpal.reading.json_lines import NO_FIELD, NOT_AN_OBJECT
from dpal.reading.json_values import json_rows
from dpal.reading.labels import SEVERAL, label_text
from dpal.reading.rows import BadRow, Layout, RawBatch
from dpal.reading.sources import TextSource
from dpal.wording import as_message

# Tasks looked at to learn which fields and which controls there are.
HEAD_TASKS = 100
# All of them are held, so fewer where they are long.
HEAD_PIECES = 16
# What a flat entry says about the task and the annotation, beside the task's data and the answers.
FLAT_FIELDS = frozenset({"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"})
NO_ANSWER = as_message("has no answer that counts")
TIE = as_message("has no majority among its answers")


@dataclass(frozen=True, slots=True)
class ControlAnswer:
    people: frozenset[str]
    is_truth: bool
    choices: tuple[str, ...]
    when: str = ""


@dataclass(frozen=True, slots=True)
class ExportedTask:
    """A task: its place in the list, from 1, and the entries about it (several in a flat export)."""

    number: int
    entries: tuple[Any, ...]

    @property
    def data(self) -> dict[str, Any] | None:
        first = self.entries[0]
        if not isinstance(first, dict):
            return None
        return first["data"] if is_full(first) else first

    @property
    def is_plain(self) -> bool:
        """Say whether the entry is a row of its own, without annotations."""
        first = self.entries[0]
        return isinstance(first, dict) and not is_full(first) and "annotation_id" not in first

    def controls(self) -> set[str]:
        named: set[str] = set()
        for entry in self.entries:
            if is_full(entry):
                named |= {str(item["from_name"]) for _, item in results_of(entry) if "from_name" in item}
            elif isinstance(entry, dict) and "annotation_id" in entry:
                named |= {name for name in entry if name not in FLAT_FIELDS}
        return named

    def people(self) -> set[str]:
        found: set[str] = set()
        for entry in self.entries:
            if is_full(entry):
                found = found.union(*(answering_people(annotation, item) for annotation, item in results_of(entry)))
            elif isinstance(entry, dict):
                found |= identities(entry.get("annotator"))
        return found

    def answers(self, control: str) -> Iterator[ControlAnswer]:
        for entry in self.entries:
            if not is_full(entry):
                if control in entry:
                    when = str(entry.get("updated_at") or entry.get("created_at") or "")
                    people = identities(entry.get("annotator"))
                    yield ControlAnswer(people, False, choices_of(entry[control]), when)
                continue
            for annotation, item in results_of(entry):
                if item.get("from_name") == control and item.get("type") == "choices":
                    truth = annotation.get("ground_truth") is True
                    when = str(annotation.get("updated_at") or annotation.get("created_at") or "")
                    people = answering_people(annotation, item)
                    yield ControlAnswer(people, truth, choices_of(item.get("value")), when)


def span_answers(task: ExportedTask, control: str) -> Iterator[ControlAnswer]:
    """Yield the spans of each annotation of a control that marks them, as JSON: `[[start, end, label], ...]`."""
    for annotation in chain.from_iterable(annotations_of(entry) for entry in task.entries if is_full(entry)):
        values = [item.get("value") for item in items_of(annotation) if item.get("from_name") == control]
        spans = [
            [value.get("start"), value.get("end"), label]
            for value in values
            if isinstance(value, dict)
            for label in value.get("labels") or ()
        ]
        written = json.dumps(sorted(spans, key=str), ensure_ascii=False)
        when = str(annotation.get("updated_at") or annotation.get("created_at") or "")
        people = identities(annotation.get("completed_by"))
        yield ControlAnswer(people, annotation.get("ground_truth") is True, (written,), when)


class LabelStudioReader:
    """Read tasks one after another, each a row by its place; a list that is broken somewhere is refused."""

    def __init__(self, source: TextSource, layout: Layout) -> None:
        if layout.kind == "image":
            raise Unreadable("file: tasks only name images; upload them as a zip")
        if layout.label and layout.label == layout.text:
            raise Unreadable("label: names the field that holds the text")
        self._source = source
        self._layout = layout
        tasks = self._tasks()
        self._head: list[ExportedTask] = []
        for task in islice(tasks, HEAD_TASKS):
            self._head.append(task)
            if source.chunks >= HEAD_PIECES:
                break
        self._later = tasks
        first = next((task.data for task in self._head if task.data is not None), None)
        if first is None:
            raise Unreadable("file: holds no rows")
        entries = chain.from_iterable(task.entries for task in self._head)
        results = chain.from_iterable(results_of(entry) for entry in entries if is_full(entry))
        self._span_controls = {str(item.get("from_name")) for _, item in results if item.get("type") == "labels"}
        controls = self.controls()
        # An unanswered beginning says nothing about the controls.
        labels = {layout.label} if layout.label and not controls else controls
        layout.require([*(name for name in first if name not in labels), *labels])

    def controls(self) -> tuple[str, ...]:
        return tuple(sorted(set().union(*(task.controls() for task in self._head))))

    def people(self) -> tuple[str, ...]:
        return tuple(sorted(set().union(*(task.people() for task in self._head))))

    def fields(self) -> tuple[str, ...]:
        hidden = FLAT_FIELDS | {"annotations"} if not is_full(self._head[0].entries[0]) else frozenset()
        return tuple(dict.fromkeys(name for task in self._head for name in task.data or {} if name not in hidden))

    def batches(self) -> Iterator[RawBatch]:
        names = [name for name in self._layout.columns() if name != self._layout.label]
        batch = RawBatch([], {name: [] for name in self._layout.columns()})
        piece = self._source.chunks
        for task in chain(self._head, self._later):
            if self._source.chunks != piece:
                piece = self._source.chunks
                yield batch
                batch = RawBatch([], {name: [] for name in self._layout.columns()})
            self._add(batch, task, names)
        yield batch

    def _add(self, batch: RawBatch, task: ExportedTask, names: Sequence[str]) -> None:
        data = task.data
        if data is None:
            batch.bad.append(BadRow(task.number, "", NOT_AN_OBJECT))
            return
        missing = next((name for name in names if name not in data and name not in self._layout.optional), None)
        if missing is not None:
            batch.bad.append(BadRow(task.number, missing, NO_FIELD))
            return
        label = self._layout.label
        if label:
            try:
                answers = span_answers if label in self._span_controls else ExportedTask.answers
                cell = data.get(label) if task.is_plain else settled(list(answers(task, label)), self._layout)
                batch.columns[label].append(cell)
            except BadCell as error:
                batch.bad.append(BadRow(task.number, label, str(error)))
                return
        batch.lines.append(task.number)
        for name in names:
            batch.columns[name].append(data.get(name))

    def _tasks(self) -> Iterator[ExportedTask]:
        for _, entries in groupby(enumerate(json_rows(self._source), start=1), key=lambda pair: task_key(*pair)):
            held = list(entries)
            entries_of_one = (row_of_prodigy(entry) if is_prodigy(entry) else entry for _, entry in held)
            yield ExportedTask(held[0][0], tuple(entries_of_one))


def is_full(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("data"), dict)


def task_key(number: int, entry: Any) -> tuple[str, Any]:
    if isinstance(entry, dict) and not is_full(entry) and "annotation_id" in entry and entry.get("id") is not None:
        return "id", json.dumps(entry["id"])
    return "number", number


def results_of(task: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield annotation and item of everything that was answered and not taken back."""
    return ((annotation, item) for annotation in annotations_of(task) for item in items_of(annotation))


def annotations_of(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    annotations = task.get("annotations", task.get("completions"))
    for annotation in annotations if isinstance(annotations, list) else ():
        if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
            yield annotation


def items_of(annotation: dict[str, Any]) -> list[dict[str, Any]]:
    result = annotation.get("result")
    return [item for item in result if isinstance(item, dict)] if isinstance(result, list) else []


def answering_people(annotation: dict[str, Any], item: dict[str, Any]) -> frozenset[str]:
    meta = item.get("meta")
    ours = meta.get("annotator") if isinstance(meta, dict) else None
    return identities(annotation.get("completed_by")) | identities(ours)


def identities(person: Any) -> frozenset[str]:
    if isinstance(person, dict):
        return frozenset(str(person[name]) for name in ("id", "email") if person.get(name) is not None)
    return frozenset() if person is None or isinstance(person, list) else frozenset({str(person)})


def choices_of(value: Any) -> tuple[str, ...]:
    """Return the chosen classes, which are a list in full exports and may be one word in flat ones."""
    if isinstance(value, dict):
        value = value.get("choices")
    chosen = value if isinstance(value, list) else [value]
    return tuple(text for text in map(label_text, chosen) if text)


def settled(answers: Sequence[ControlAnswer], layout: Layout) -> str | list[str]:
    """Return the class a task is known by, or the names of its set; `BadCell` says why there is none."""
    answers = newest(answers)
    if layout.annotator is not None:
        answers = [answer for answer in answers if layout.annotator in answer.people]
    if layout.answers == "ground_truth":
        answers = [answer for answer in answers if answer.is_truth]
    if layout.sets is not None:
        return settled_set(answers)
    answers = [answer for answer in answers if answer.choices]
    if not answers:
        raise BadCell(NO_ANSWER)
    if any(len(answer.choices) > 1 for answer in answers):
        raise BadCell(SEVERAL)
    (most, votes), *others = Counter(answer.choices[0] for answer in answers).most_common(2)
    if others and others[0][1] == votes:
        raise BadCell(TIE)
    return most


def newest(answers: Sequence[ControlAnswer]) -> list[ControlAnswer]:
    """Return the newest answer of each person, and all whose person is not known."""
    latest: dict[frozenset[str], ControlAnswer] = {}
    for answer in sorted(answers, key=lambda one: one.when):
        latest[answer.people] = answer
    return [answer for answer in answers if not answer.people or latest[answer.people] is answer]


def settled_set(answers: Sequence[ControlAnswer]) -> list[str]:
    if not answers:
        raise BadCell(NO_ANSWER)
    named = Counter(name for answer in answers for name in set(answer.choices))
    most = sorted(name for name, n in named.items() if 2 * n > len(answers))
    if not most and 2 * sum(not answer.choices for answer in answers) <= len(answers):
        raise BadCell(TIE)
    return most
