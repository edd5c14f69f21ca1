"""What the demonstration opens: projects with their pools, their public test sets, and the truth annotators know."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from annotation.choices.planned_settings import planned_settings
from annotation.choices.presets import PRESETS
from dpal_site.demo import digits, voice_log
from dpal_site.demo.annotators import Browser, GivesAnswer, LabelPage
from learner.strategies.secret_blocks import SecretBlocks
from privacy.gate.normalizers import Normalizer, normalize_texts

RELEASES = 2
TRUSTED = "pool-experts"
SEED = 20_250_101
CONTRIBUTORS = 50_000
# The preset's own gate; what its limit leaves pays for runs that a crash has charged.
CROWD_GATE: dict[str, Any] = {"normalizer": "L1"}


@dataclass(frozen=True, slots=True)
class UploadFile:
    """A file as a manager would upload it."""

    name: str
    body: bytes
    mapping: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    """A project to open; `companion_settings` turn it into the one that asks at random for the same epsilon."""

    name: str
    preset: str
    data_kind: str
    question: str
    classes: tuple[str, ...]
    settings: Mapping[str, Any]
    companion_settings: Mapping[str, Any]
    pool: UploadFile
    test: UploadFile
    answer: GivesAnswer
    about: str

    def companion(self) -> "ProjectPlan":
        """Return the same project with random choice, the same labels and the same total epsilon."""
        return replace(self, name=f"{self.name}, random choice", settings={**self.settings, **self.companion_settings})


def default_plans() -> list[ProjectPlan]:
    """Return digits to experts and a voice log to a crowd."""
    return [digits_plan(), voice_plan()]


def digits_plan() -> ProjectPlan:
    """Return scikit-learn's zeros and nines in a trusted project, which is set as its preset ships."""
    split = digits.split_digits(rng=np.random.default_rng(SEED))
    known = {image.tobytes(): int(label) for image, label in zip(split.pool, split.pool_classes, strict=True)}
    return ProjectPlan(
        name="Digits",
        preset=TRUSTED,
        data_kind="image",
        question=digits.QUESTION,
        classes=digits.CLASSES,
        settings={"image_height": digits.SIDE, "image_width": digits.SIDE},
        companion_settings=random_choice(digits.CLASSES, pool_size=len(split.pool)),
        pool=UploadFile("digits.parquet", _parquet(pixels=_lists(split.pool)), {"pixels": "pixels"}),
        test=UploadFile(
            "digits-public-test.parquet",
            _parquet(pixels=_lists(split.test), label=[digits.CLASSES[label] for label in split.test_classes]),
            {"pixels": "pixels", "label": "label"},
        ),
        answer=ImageReader(known),
        about=f"{len(split.pool)} images as a private pool, {len(split.test)} as a public test set",
    )


def voice_plan(*, contributors: int = CONTRIBUTORS) -> ProjectPlan:
    """Return a generated voice log in a crowd project."""
    rng = np.random.default_rng(SEED)
    known = voice_log.known_sentences()
    log = voice_log.draw_voice_log(list(known), contributors=contributors, rng=rng)
    texts, labels = voice_log.public_test_set(size=400, rng=rng)
    return ProjectPlan(
        name="Voice queries",
        preset="voice-crowd",
        data_kind="text",
        question=voice_log.QUESTION,
        classes=voice_log.CLASSES,
        settings=CROWD_GATE | crowd_budget(),
        companion_settings={"selection": "random"},
        pool=log_file(log),
        test=labelled_texts(texts, [voice_log.CLASSES[label] for label in labels]),
        answer=TextReader(known),
        about=f"{len(log.texts):,} generated lines of {contributors:,} contributors, {len(set(log.texts)):,} distinct",
    )


def crowd_budget(*, labels: int = 40) -> dict[str, Any]:
    """Return how many questions each version of a crowd's project takes; all of them are paid for at once."""
    return {"round_size": labels, "labels_per_release": labels, "overlap": 3}


def random_choice(classes: Sequence[str], *, pool_size: int) -> dict[str, Any]:
    """Return what lets random choice in the open spend all of the preset's limit on as many labels and releases.

    Parameters
    ----------
    classes : sequence of str
        The declared classes.
    pool_size : int
        Number of private records, of which secret blocks ask about a public share on average.
    """
    preset = PRESETS[TRUSTED]
    labels = round(pool_size * sum(SecretBlocks(preset.defaults["selection_rate"]).block_rates[:RELEASES]) / RELEASES)
    settings: dict[str, Any] = {
        "selection": "random",
        "selection_epsilon": 0.0,
        "selection_rate": None,
        "block_hours": None,
        "round_size": labels,
        "labels_per_release": labels,
    }
    around = {"oracle": preset.oracle, "classes": list(classes), "maximum_releases": RELEASES}
    return settings | planned_settings({**preset.defaults, **around, **settings})


def log_file(log: voice_log.VoiceLog) -> UploadFile:
    """Return a log as a CSV file."""
    table = pa.table({"text": log.texts, "contributor": log.contributors})
    return UploadFile("log.csv", _csv(table), {"text": "text", "contributor": "contributor"})


def labelled_texts(texts: Sequence[str], labels: Sequence[str]) -> UploadFile:
    """Return a public test set as a CSV file."""
    table = pa.table({"text": list(texts), "label": list(labels)})
    return UploadFile("public-test.csv", _csv(table), {"text": "text", "label": "label"})


class TextReader:
    """What a careful person answers to a text, however the gate has normalised it."""

    def __init__(self, known: Mapping[str, int]) -> None:
        normal = normalize_texts(pa.array(list(known), pa.large_string()), Normalizer("L1")).to_pylist()
        self._known = {_words(text): label for text, label in known.items()}
        self._known |= {_words(text): label for text, label in zip(normal, known.values(), strict=True)}

    def __call__(self, page: LabelPage, browser: Browser) -> int:
        """Return the class of the text on the page; a sentence nobody shares is a coin a person would call 0."""
        return self._known.get(_words(page.question), 0)


class ImageReader:
    """What a careful person answers to an image, by looking at its pixels."""

    def __init__(self, known: Mapping[bytes, int]) -> None:
        self._known = known

    def __call__(self, page: LabelPage, browser: Browser) -> int:
        """Return the class of the image on the page."""
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
