"""Projects of the demonstration with their pools, public test sets and the truth that annotators know."""

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from dpal_site.demo import voice_log
from dpal_site.demo.annotators import MISTAKE_RATE, Browser, GivesAnswer, LabelPage
from learner.estimators.descriptions import described_by
from learner.simulation.task import SimulationTask
from learner.strategies.secret_blocks import SecretBlocks
from privacy.gate.normalizers import Normalizer, normalize_texts

DIGITS_QUESTION = "Which digit is this?"
DIGITS = tuple("0123456789")
SIDE = 8
TESTED = 360


@dataclass(frozen=True, slots=True)
class DigitSplit:
    pool: NDArray[np.uint8]
    pool_classes: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_classes: NDArray[np.int64]


def split_digits(*, rng: np.random.Generator) -> DigitSplit:
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    # Sixteen grey levels in the source, 0 to 240 in a byte.
    images = np.minimum(digits.images[order] * 15, 255).astype(np.uint8)
    classes = digits.target[order].astype(np.int64)
    return DigitSplit(images[TESTED:], classes[TESTED:], images[:TESTED], classes[:TESTED])


TRUSTED, CROWD = "pool-experts", "voice-crowd"
# The first seed of benchmarks/demo.py.
SEED = 0
CONTRIBUTORS = 30_000
# Questions of each release of a crowd; all of them are paid for at once.
CROWD_LABELS, CROWD_RELEASES = 40, 3
CROWD_SETTINGS: dict[str, Any] = {"labels_per_release": CROWD_LABELS}
# 10 and 30 % of the digits: fewer answers, and secrecy about who is asked pays more.
DIGIT_BLOCKS = SecretBlocks(0.1, block_growth=3)


@dataclass(frozen=True, slots=True)
class UploadFile:
    name: str
    body: bytes
    mapping: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    name: str
    preset: str
    data_kind: str
    question: str
    classes: tuple[str, ...]
    settings: Mapping[str, Any]
    releases: int
    pool: UploadFile
    test: UploadFile
    answer: GivesAnswer
    about: str
    task: SimulationTask

    @property
    def title(self) -> str:
        return textwrap.fill(f"{self.name}: {self.about}.", 100)


def default_plans(*, seed: int = SEED) -> list[ProjectPlan]:
    return [digits_plan(seed=seed), voice_plan(seed=seed)]


def digits_plan(*, seed: int = SEED) -> ProjectPlan:
    rng = np.random.default_rng(seed)
    split = split_digits(rng=rng)
    known = {image.tobytes(): int(label) for image, label in zip(split.pool, split.pool_classes, strict=True)}
    return ProjectPlan(
        name="Digits",
        preset=TRUSTED,
        data_kind="image",
        question=DIGITS_QUESTION,
        classes=DIGITS,
        settings={"image_height": SIDE, "image_width": SIDE, "block_growth": DIGIT_BLOCKS.block_growth},
        releases=len(DIGIT_BLOCKS.block_rates),
        pool=UploadFile("digits.parquet", _parquet(pixels=_lists(split.pool)), {"pixels": "pixels"}),
        test=UploadFile(
            "digits-public-test.parquet",
            _parquet(pixels=_lists(split.test), label=[DIGITS[label] for label in split.test_classes]),
            {"pixels": "pixels", "label": "label"},
        ),
        answer=ImageReader(known),
        about=f"experts label {len(split.pool):,} private images, {len(split.test)} public ones test the models",
        task=SimulationTask(
            texts=(),
            labels=with_mistakes(split.pool_classes, len(DIGITS), rng),
            test_texts=(),
            test_labels=split.test_classes,
            classes=DIGITS,
            rows=split.pool,
            test_rows=split.test,
            settings=blocks_of_experts(DIGIT_BLOCKS),
            label_counts=(labels_of_blocks(len(split.pool), DIGIT_BLOCKS),),
            first_seed=seed,
        ),
    )


def voice_plan(*, contributors: int = CONTRIBUTORS, seed: int = SEED) -> ProjectPlan:
    rng = np.random.default_rng(seed)
    known = voice_log.known_sentences()
    log = voice_log.draw_voice_log(list(known), contributors=contributors, rng=rng)
    texts, labels = voice_log.public_test_set(rng=rng)
    words = tuple(f"{topic}: {example}" for topic, said in voice_log.SAYINGS.items() for example in said["examples"])
    truth = np.array([known.get(text, 0) for text in log.texts], dtype=np.int64)
    return ProjectPlan(
        name="Voice requests",
        preset=CROWD,
        data_kind="text",
        question=voice_log.QUESTION,
        classes=voice_log.CLASSES,
        settings=CROWD_SETTINGS | {"class_descriptions": words},
        releases=CROWD_RELEASES,
        pool=log_file(log),
        test=labelled_texts(texts, [voice_log.CLASSES[label] for label in labels]),
        answer=TextReader(known),
        about=(
            f"a crowd labels what passes the gate of {len(log.texts):,} generated lines by {contributors:,} people, "
            f"{len(texts)} public requests test the models"
        ),
        task=SimulationTask(
            texts=tuple(log.texts),
            labels=with_mistakes(truth, len(voice_log.CLASSES), rng),
            test_texts=tuple(texts),
            test_labels=np.array(labels, dtype=np.int64),
            classes=voice_log.CLASSES,
            contributors=tuple(log.contributors),
            descriptions=described_by(words, voice_log.CLASSES),
            label_counts=crowd_counts(),
            first_seed=seed,
        ),
    )


def blocks_of_experts(blocks: SecretBlocks) -> dict[str, str]:
    return {"selection_rate": str(blocks.selection_rate), "block_growth": str(blocks.block_growth)}


def labels_of_blocks(pool_size: int, blocks: SecretBlocks) -> int:
    return int(pool_size * sum(blocks.block_rates))


def crowd_counts() -> tuple[int, ...]:
    return tuple(CROWD_LABELS * release for release in range(1, CROWD_RELEASES + 1))


def with_mistakes(truth: NDArray[np.int64], n_classes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    wrong = (truth + rng.integers(1, n_classes, size=len(truth))) % n_classes
    return np.where(rng.random(len(truth)) < MISTAKE_RATE, wrong, truth)


def log_file(log: voice_log.VoiceLog) -> UploadFile:
    table = pa.table({"text": log.texts, "contributor": log.contributors})
    return UploadFile("log.csv", _csv(table), {"text": "text", "contributor": "contributor"})


def labelled_texts(texts: Sequence[str], labels: Sequence[str]) -> UploadFile:
    table = pa.table({"text": list(texts), "label": list(labels)})
    return UploadFile("public-test.csv", _csv(table), {"text": "text", "label": "label"})


class TextReader:
    def __init__(self, known: Mapping[str, int]) -> None:
        normal = normalize_texts(pa.array(list(known), pa.large_string()), Normalizer("L1")).to_pylist()
        self._known = {_words(text): label for text, label in known.items()}
        self._known |= {_words(text): label for text, label in zip(normal, known.values(), strict=True)}

    def __call__(self, page: LabelPage, browser: Browser) -> int:
        return self._known.get(_words(page.question), 0)


class ImageReader:
    def __init__(self, known: Mapping[bytes, int]) -> None:
        self._known = known

    def __call__(self, page: LabelPage, browser: Browser) -> int:
        _, body = browser.fetch(page.image_url)
        pixels = np.asarray(Image.open(io.BytesIO(body)), dtype=np.uint8)
        return self._known[pixels.tobytes()]


def _words(text: str) -> str:
    return " ".join(text.split())


def _lists(images: NDArray[np.uint8]) -> pa.Array:
    return pa.array(list(images.reshape(len(images), -1)), pa.list_(pa.uint8()))


def _parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa_csv.write_csv(table, sink)
    return sink.getvalue()
