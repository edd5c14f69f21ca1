"""What the demonstration opens: projects with their pools, their public test sets, and the truth annotators know."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from dpal_site.demo import digits, voice_log
from dpal_site.demo.annotators import Answer, Browser, LabelPage
from privacy.accounting.events import TopCEvent
from privacy.normalizers import Normalizer, normalize_texts

RELEASES = 3
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
    answer: Answer
    about: str

    def companion(self) -> "ProjectPlan":
        """Return the same project with random choice, the same labels and the same total epsilon."""
        return replace(self, name=f"{self.name}, random choice", settings={**self.settings, **self.companion_settings})


def default_plans() -> list[ProjectPlan]:
    """Return digits to experts and a voice log to a crowd."""
    return [digits_plan(), voice_plan()]


def digits_plan() -> ProjectPlan:
    """Return scikit-learn's zeros and nines in a trusted project."""
    split = digits.split_digits(rng=np.random.default_rng(SEED))
    settings: dict[str, Any] = {
        "image_height": digits.SIDE,
        "image_width": digits.SIDE,
        "feature_dimension": 9,
        "regularization": 3.0,
        "round_size": 40,
        "labels_per_release": 40,
        **trusted_budget(pool_size=len(split.pool), round_size=40, training_epsilon=1.25, selection_epsilon=0.25),
    }
    known = {image.tobytes(): int(label) for image, label in zip(split.pool, split.pool_classes, strict=True)}
    return ProjectPlan(
        name="Digits",
        preset="pool-experts",
        data_kind="image",
        question=digits.QUESTION,
        classes=digits.CLASSES,
        settings=settings,
        companion_settings=random_choice(settings, pool_size=len(split.pool)),
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


def trusted_budget(
    *, pool_size: int, round_size: int, training_epsilon: float, selection_epsilon: float
) -> dict[str, Any]:
    """Return a limit that pays for every round and training, and for some attempts that a crash has charged."""
    planned = RELEASES * training_epsilon + selection_cost(pool_size, round_size, selection_epsilon)
    return {
        "selection": "top_c",
        "selection_epsilon": selection_epsilon,
        # Over so few features a Gaussian tilt is no shorter, and this one has no delta.
        "estimator": "logistic",
        "training_delta": 0.0,
        "pool_delta": 0.0,
        "training_epsilon": training_epsilon,
        "pool_epsilon": math.ceil(planned + 2 * training_epsilon),
    }


def crowd_budget(*, labels: int = 60) -> dict[str, Any]:
    """Return how many questions each version of a crowd's project takes; all of them are paid for at once."""
    return {"round_size": labels, "labels_per_release": labels, "overlap": 3}


def random_choice(settings: Mapping[str, Any], *, pool_size: int) -> dict[str, Any]:
    """Return what makes random choice spend on training what top-c spends on selection and training together."""
    selection = selection_cost(pool_size, settings["round_size"], settings["selection_epsilon"])
    return {
        "selection": "random",
        "selection_epsilon": 0.0,
        "training_epsilon": settings["training_epsilon"] + selection / RELEASES,
    }


def selection_cost(pool_size: int, round_size: int, scale: float) -> float:
    """Return the epsilon of all top-c rounds up to the last release; the first round is random and free."""
    left = pool_size - round_size
    costs = []
    for place in range(1, RELEASES):
        event = TopCEvent(pool_size=left, picks=round_size, scale=scale, series="opened" if place == 1 else "continued")
        costs.append(event.cost().epsilon)
        left -= round_size
    return sum(costs)


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
