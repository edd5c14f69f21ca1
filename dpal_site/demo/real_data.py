"""A file of labelled texts as a trusted project, and as a crowd project whose frequencies and people are drawn."""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from dpal_site.demo import voice_log
from dpal_site.demo.plans import (
    BLOCKS,
    CROWD,
    CROWD_RELEASES,
    CROWD_SETTINGS,
    SEED,
    TRUSTED,
    ProjectPlan,
    TextReader,
    UploadFile,
    blocks_of_experts,
    crowd_counts,
    labelled_texts,
    labels_of_blocks,
    log_file,
    with_mistakes,
)
from learner.simulation.task import SimulationTask
from privacy.gate.normalizers import fold_texts

TEST_SHARE = 1 / 3
LARGEST_TEST = 1500
LARGEST_POOL = 1500
MOST_CLASSES = 20
SHARED_TEXTS = 500
CONTRIBUTORS = 30_000
QUESTION = "Which class is this?"


class DataProblem(ValueError):
    """The file cannot be used; the message says what to change."""


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    texts: list[str]
    labels: list[str]


def read_plans(path: Path, *, text_column: str, label_column: str) -> list[ProjectPlan]:
    found = read_labelled_texts(path, text_column=text_column, label_column=label_column)
    kept, note = kept_classes(distinct_texts(found))
    order = np.random.default_rng(SEED).permutation(len(kept.texts))
    tested = min(round(TEST_SHARE * len(order)), LARGEST_TEST)
    test = _part(kept, order[:tested])
    pool = _part(kept, order[tested:][:LARGEST_POOL])
    if len(pool.texts) < 60:
        raise DataProblem(f"{path.name} has only {len(pool.texts)} texts left for a pool; 60 are needed")
    classes = tuple(sorted(set(kept.labels)))
    return [_trusted_plan(path.stem, pool, test, classes, note), _crowd_plan(path.stem, pool, test, classes)]


def read_labelled_texts(path: Path, *, text_column: str, label_column: str) -> LabelledTexts:
    if not path.is_file():
        raise DataProblem(f"there is no file {path}")
    tabs = path.suffix.lower() in (".tsv", ".tab")
    numbered = text_column.isdecimal() and label_column.isdecimal()
    with path.open(newline="", encoding="utf-8") as file:
        # Tab separated text is rarely quoted, and a lone quote mark would swallow lines.
        rows = csv.reader(file, delimiter="\t" if tabs else ",", quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL)
        header = [] if numbered else next(rows, [])
        places = [_place(name, header, numbered=numbered, path=path) for name in (text_column, label_column)]
        pairs = [tuple(row[place].strip() for place in places) for row in rows if len(row) > max(places)]
    pairs = [pair for pair in pairs if all(pair)]
    return LabelledTexts([text for text, _ in pairs], [label for _, label in pairs])


def distinct_texts(found: LabelledTexts) -> LabelledTexts:
    """Return each text once: one that an upload takes for another may not be private and in the public test set."""
    forms = fold_texts(pa.array(found.texts, pa.large_string())).to_pylist()
    first = {form: row for row, form in reversed([*enumerate(forms)]) if form}
    return _part(found, np.array(sorted(first.values()), dtype=np.int64))


def _place(name: str, header: list[str], *, numbered: bool, path: Path) -> int:
    if numbered:
        if int(name) < 1:
            raise DataProblem("columns are numbered from 1")
        return int(name) - 1
    if name not in header:
        raise DataProblem(f"{path.name} has no column {name!r}; name it with --text-column and --label-column")
    return header.index(name)


def kept_classes(found: LabelledTexts) -> tuple[LabelledTexts, str]:
    """Return as many examples of each of a few classes, and a sentence about what was left out."""
    counts = Counter(found.labels)
    if len(counts) < 2:
        raise DataProblem("the label column must name at least two classes")
    chosen = sorted(counts)
    if len(counts) > MOST_CLASSES:
        usual = [label for label, count in counts.items() if count <= 3 * median(counts.values())]
        chosen = sorted(usual, key=lambda label: (-counts[label], label))[:MOST_CLASSES]
    smallest = min(counts[label] for label in chosen)
    rng = np.random.default_rng(SEED)
    labels = np.array(found.labels)
    rows = [rng.permutation(np.flatnonzero(labels == label))[:smallest] for label in chosen]
    left_out = f" of {len(counts)}" if len(chosen) < len(counts) else ""
    note = f"; classes {', '.join(chosen)}{left_out}, {smallest} examples of each"
    return _part(found, np.concatenate(rows)), note


def _part(whole: LabelledTexts, rows: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> LabelledTexts:
    return LabelledTexts([whole.texts[row] for row in rows], [whole.labels[row] for row in rows])


def _places(part: LabelledTexts, classes: tuple[str, ...]) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    return np.array([classes.index(label) for label in part.labels], dtype=np.int64)


def _trusted_plan(
    name: str, pool: LabelledTexts, test: LabelledTexts, classes: tuple[str, ...], note: str
) -> ProjectPlan:
    truth = _places(pool, classes)
    return ProjectPlan(
        name=f"{name}, experts",
        preset=TRUSTED,
        data_kind="text",
        question=QUESTION,
        classes=classes,
        settings={},
        releases=len(BLOCKS.block_rates),
        pool=UploadFile("pool.csv", labelled_texts(pool.texts, pool.labels).body, {"text": "text"}),
        test=labelled_texts(test.texts, test.labels),
        answer=TextReader(dict(zip(pool.texts, truth.tolist(), strict=True))),
        about=f"experts label {len(pool.texts):,} private texts, {len(test.texts):,} public ones test the models{note}",
        task=SimulationTask(
            texts=tuple(pool.texts),
            labels=with_mistakes(truth, len(classes), np.random.default_rng(SEED)),
            test_texts=tuple(test.texts),
            test_labels=_places(test, classes),
            classes=classes,
            settings=blocks_of_experts(BLOCKS),
            label_counts=(labels_of_blocks(len(truth), BLOCKS),),
        ),
    )


def _crowd_plan(name: str, pool: LabelledTexts, test: LabelledTexts, classes: tuple[str, ...]) -> ProjectPlan:
    """Draw who said what how often: a file of distinct texts has nothing that a gate may let through."""
    shared = list(dict.fromkeys(pool.texts))[:SHARED_TEXTS]
    rng = np.random.default_rng(SEED)
    log = voice_log.draw_voice_log(shared, contributors=CONTRIBUTORS, rng=rng)
    known = dict(zip(pool.texts, _places(pool, classes).tolist(), strict=True))
    truth = np.array([known.get(text, 0) for text in log.texts], dtype=np.int64)
    return ProjectPlan(
        name=f"{name}, crowd",
        preset=CROWD,
        data_kind="text",
        question=QUESTION,
        classes=classes,
        settings=CROWD_SETTINGS,
        releases=CROWD_RELEASES,
        pool=log_file(log),
        test=labelled_texts(test.texts, test.labels),
        answer=TextReader(known),
        about=(
            f"a crowd labels {len(shared):,} of the file's texts in {len(log.texts):,} lines; how often each is said, "
            f"the {CONTRIBUTORS:,} contributors and the sentences of one person alone are drawn"
        ),
        task=SimulationTask(
            texts=tuple(log.texts),
            labels=with_mistakes(truth, len(classes), rng),
            test_texts=tuple(test.texts),
            test_labels=_places(test, classes),
            classes=classes,
            contributors=tuple(log.contributors),
            label_counts=crowd_counts(),
        ),
    )
