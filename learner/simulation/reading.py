"""Reading of files that a simulation is given."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from annotation.choices.catalogue import CATALOGUE, KEYS, declaration_of
from annotation.data.readers.reading import Upload
from dpal.reading.cells import BadCell, check_storable
from dpal.reading.labels import SEVERAL, LabelNames, label_text, labels_in, name_key
from dpal.reading.rows import Layout
from learner.estimators.descriptions import ClassDescription
from learner.simulation.task import SimulationTask, held_out
from privacy.accounting.cost import LEAST_EPSILON_LIMIT, MOST_DELTA_LIMIT, MOST_EPSILON_LIMIT
from privacy.choices import Choice, Kind

# Settings that no choice declares, with their types.
PLAIN: Final[Mapping[str, type]] = {"privacy_unit": str, "pool_epsilon": float, "pool_delta": float}
LIMITS: Final = {"pool_epsilon": (LEAST_EPSILON_LIMIT, MOST_EPSILON_LIMIT), "pool_delta": (0.0, MOST_DELTA_LIMIT)}
TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}


def names_of(*kinds: Kind, playing: type = Choice) -> set[str]:
    """Name what is chosen of each kind, and the parameters of all that there is to choose and can be played."""
    found = {kind.key for kind in kinds if kind.key}
    for choice in (each for kind in kinds for each in CATALOGUE.of_kind(kind)):
        found |= {each.name for each in choice.parameters() if issubclass(choice, playing)}
    return found


def with_given(values: Mapping[str, Any], given: Mapping[str, str], names: Collection[str]) -> dict[str, Any]:
    """Return values with those `given` in their place; what is given as nothing is left out."""
    if unknown := sorted(set(given) - set(names)):
        raise ValueError(f"unknown settings {', '.join(unknown)}; there are {', '.join(sorted(names))}")
    if unchosen := [name for name in KEYS if name in values and given.get(name) == ""]:
        raise ValueError(f"{', '.join(unchosen)} must be chosen")
    read = {name: _read(name, text) for name, text in given.items() if text}
    found = {name: value for name, value in values.items() if given.get(name) != ""} | read
    for choice in CATALOGUE.chosen(found):
        for each in choice.parameters():
            if each.name in read and (rule := each.broken(read[each.name])):
                raise ValueError(f"{each.name}: {rule}")
    return found


def _read(name: str, text: str) -> Any:
    for kind in Kind:
        if kind.key == name and CATALOGUE.find(kind, text) is None:
            known = ", ".join(choice.name for choice in CATALOGUE.of_kind(kind))
            raise ValueError(f"{name} must be one of {known}, got {text!r}")
    declared = declaration_of(name)
    wanted = PLAIN.get(name, str) if declared is None else declared.type
    try:
        value = TRUTHS[text.lower()] if wanted is bool else wanted(text)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must be of type {wanted.__name__}, got {text!r}") from error
    low, high = LIMITS.get(name, (value, value))
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}], got {text}")
    return value


MAXIMUM_BYTES = 2 * 1024**3
# Names of arrays in an `.npz` file: all records, or a pool and what is held out.
ARRAYS = (("X_train", "y_train"), ("X", "y"))
TEST_ARRAYS = ("X_test", "y_test")


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Columns of a file and how it is written; without a header columns are called 1, 2, ..."""

    text: str = "text"
    label: str = "label"
    contributor: str | None = None
    has_header: bool = True
    quoting: bool = True
    skip_rows: int = 0

    def layout(self) -> Layout:
        """Return how a file of texts with these columns is read."""
        return Layout(
            kind="text",
            text=self.text,
            label=self.label,
            contributor=self.contributor,
            has_header=self.has_header,
            quoting=self.quoting,
            skip_rows=self.skip_rows,
        )


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one file as they stand there."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    contributors: tuple[str, ...] | None = None
    rows: NDArray[np.generic] | None = None

    def at(self, places: NDArray[np.intp]) -> "Records":
        people = None if self.contributors is None else tuple(self.contributors[place] for place in places)
        return Records(
            tuple(self.texts[place] for place in places) if self.texts else (),
            tuple(self.labels[place] for place in places),
            people,
            None if self.rows is None else self.rows[places],
        )


def read_task(
    data: Path,
    *,
    test: Path | None = None,
    columns: FileColumns | None = None,
    describe: Path | None = None,
    settings: Mapping[str, str],
    label_counts: Sequence[int],
    seeds: int,
) -> SimulationTask:
    """Return the task of a file; without a test file a random fifth is held out, the same in every run."""
    columns = columns or FileColumns()
    pool, rest = read_records(data, columns=columns)
    if test is not None:
        # Contributors matter where a gate reads the pool; nobody is asked about a test set.
        rest = read_records(test, columns=replace(columns, contributor=None))[0]
    if rest is None:
        kept, out = held_out(len(pool.labels))
        pool, rest = pool.at(kept), pool.at(out)
    classes = tuple(sorted(set(commonest_spellings([*pool.labels, *rest.labels]).values())))
    names = LabelNames(classes)
    described = read_descriptions(describe) if describe is not None else {}
    if len({*map(names.place, described)} - {None}) == len(described):
        described = {classes[names.read(name)]: words for name, words in described.items()}
    return SimulationTask(
        texts=pool.texts,
        labels=np.array([names.read(name) for name in pool.labels], dtype=np.int64),
        test_texts=rest.texts,
        test_labels=np.array([names.read(name) for name in rest.labels], dtype=np.int64),
        classes=classes,
        contributors=pool.contributors,
        rows=pool.rows,
        test_rows=rest.rows,
        descriptions=described,
        settings=settings,
        label_counts=tuple(sorted(set(label_counts))),
        seeds=seeds,
    )


def read_records(path: Path, *, columns: FileColumns) -> tuple[Records, Records | None]:
    """Return the records of a file, and those it holds out itself, which only `.npz` files can."""
    if path.suffix == ".npz":
        return _arrays(path)
    layout = columns.layout()
    found: dict[str, list[Any]] = {name: [] for name in layout.columns()}
    texts: list[str] = []
    with path.open("rb") as file:
        for batch in Upload(file, path.name, layout, maximum_bytes=MAXIMUM_BYTES).cells():
            if batch.bad:
                raise ValueError(f"{path.name}: line {batch.bad[0].line} {batch.bad[0].reason}")
            for line, cell in zip(batch.lines, batch.columns[columns.text], strict=True):
                texts.append(_text(cell, f"{path.name}: line {line}"))
            for name, cells in batch.columns.items():
                found[name] += cells
    labels = [_label(cell, path) for cell in found[columns.label]]
    kept = [place for place, (text, label) in enumerate(zip(texts, labels, strict=True)) if text and label]
    if len(kept) < 2:
        raise ValueError(f"{path.name}: fewer than two rows have a text and a label")
    people = None
    if columns.contributor:
        people = tuple(_cell(found[columns.contributor][place]) for place in kept)
    return Records(tuple(texts[place] for place in kept), tuple(labels[place] for place in kept), people), None


def read_descriptions(path: Path) -> dict[str, ClassDescription]:
    """Return what an owner wrote about classes.

    A JSON object names a class and gives a sentence, a list of examples, or an object with any of `name`, `sentence`
    and `examples`; `slots` beside `classes` fills ``{slot}``. Any other file has columns `class` and `example`, or
    `label` and `text`, an example a row.
    """
    if path.suffix != ".json":
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            named = {"class", "example"} <= set(re.split(r"[,;\t]", file.readline().strip()))
        records, _ = read_records(path, columns=FileColumns(text="example", label="class") if named else FileColumns())
        examples: dict[str, list[str]] = {}
        for text, label in zip(records.texts, records.labels, strict=True):
            examples.setdefault(label, []).append(text)
        return {label: ClassDescription(_spoken(label), examples=tuple(said)) for label, said in examples.items()}
    body = json.loads(path.read_text("utf-8"))
    if not isinstance(body, dict):
        raise ValueError(f"{path.name}: must be an object by class")
    slots = body["slots"] if isinstance(body.get("slots"), dict) and "classes" in body else {}
    by_class = body.get("classes", body)
    return {str(label): _described(str(label), said, slots) for label, said in by_class.items()}


def _described(label: str, said: Any, slots: Mapping[str, Sequence[str]]) -> ClassDescription:
    if isinstance(said, str):
        return ClassDescription(_spoken(label), said)
    if isinstance(said, list):
        return ClassDescription(_spoken(label), "", tuple(map(str, said)), slots)
    if isinstance(said, dict) and set(said) <= {"name", "sentence", "description", "examples"}:
        sentence = str(said.get("sentence", said.get("description", "")))
        return ClassDescription(
            str(said.get("name") or _spoken(label)), sentence, tuple(map(str, said.get("examples", ()))), slots
        )
    raise ValueError(f"{label}: must be a sentence, a list of examples, or an object of name, sentence and examples")


def _spoken(label: str) -> str:
    return label.replace("_", " ")


def commonest_spellings(labels: Sequence[str]) -> dict[str, str]:
    """Return of each label the commonest spelling of its class."""
    commonest: dict[str, str] = {}
    for label, _count in Counter(labels).most_common():
        commonest.setdefault(name_key(label), label)
    return {label: commonest[name_key(label)] for label in set(labels)}


def _label(cell: Any, path: Path) -> str:
    try:
        named = labels_in(cell)
    except BadCell as error:
        raise ValueError(f"{path.name}: a label {error}") from None
    if len(named) > 1:
        raise ValueError(f"{path.name}: a label {SEVERAL}")
    return named[0] if named else ""


def _text(cell: Any, place: str) -> str:
    text = _cell(cell)
    try:
        check_storable(text)
    except BadCell as error:
        raise ValueError(f"{place} {error}") from None
    return text


def _cell(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _arrays(path: Path) -> tuple[Records, Records | None]:
    with np.load(path, allow_pickle=False) as held:
        named = next((pair for pair in ARRAYS if set(pair) <= set(held.files)), None)
        if named is None:
            raise ValueError(f"{path.name}: must hold {' or '.join(' and '.join(pair) for pair in ARRAYS)}")
        pool = _from_arrays(held[named[0]], held[named[1]])
        test = _from_arrays(*(held[name] for name in TEST_ARRAYS)) if set(TEST_ARRAYS) <= set(held.files) else None
    return pool, test


def _from_arrays(rows: NDArray[np.generic], labels: NDArray[np.generic]) -> Records:
    return Records((), tuple(map(label_text, labels.tolist())), None, rows)
