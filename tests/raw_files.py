"""Made-up files of the kinds that people bring, as a private pool and a public labelled file."""

import csv
import io
import json
import random
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

TOPICS = ("card", "transfer", "cash", "exchange_rate", "top_up", "refund", "pin", "limit", "fee", "account", "loan")
STATES = ("arrival", "not_working", "pending", "declined", "charged_twice", "lost", "cancelled")
MANY = [f"{topic}_{state}" for topic in TOPICS for state in STATES]


@dataclass(frozen=True, slots=True)
class RawFiles:
    pool: bytes
    pool_name: str
    public: bytes
    public_name: str


def lines(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, mark: str = ",", encoding: str = "utf-8"
) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode(encoding)


def many_classes(rows: int = 300) -> RawFiles:
    """Bank messages of 77 classes; three texts are in both files."""
    rng = random.Random(1)

    def message(name: str, number: int) -> str:
        return (
            f"Hello, what about my {name.replace('_', ' ')} since {rng.choice(('Monday', 'May', 'noon'))}? ({number})"
        )

    public = [(message(name, n), name) for n in range(2) for name in MANY]
    pool = [(f"T-{n}", message(MANY[n % 77], 1000 + n), "kim") for n in range(rows)]
    pool += [(f"T-{rows + n}", public[n][0], "lou") for n in range(3)]
    return RawFiles(
        lines(("ticket", "body", "agent"), pool),
        "bank_messages.csv",
        lines(("body", "category"), public),
        "bank_public.csv",
    )


def examples(each: int = 5) -> bytes:
    """Two columns of example messages, as a manager writes them for `many_classes`."""
    asked = ("What about my {}?", "My {}, please", "I have a question on {}", "It is the {}", "Again: {}")
    rows = [(name, line.format(name.replace("_", " "))) for name in MANY for line in asked[:each]]
    return lines(("class", "example"), rows)


def user_names(people: int = 1500) -> RawFiles:
    """Reviews with user names: thirty sentences, each said by a hundred people, as strangers may be shown."""
    things = ("screen", "battery", "sound", "case", "cable", "camera", "price", "keyboard", "charger", "manual")
    said = [f"the {thing} is {word}" for thing in things for word in ("great", "fine", "bad")]
    pool = [(f"user{n}", said[(n + k) % len(said)]) for n in range(people) for k in range(2)]
    public = [(f"{text} since day {n}", "bad" if "bad" in text else "good") for n in range(2) for text in said]
    return RawFiles(
        lines(("user_name", "review"), pool),
        "reviews.csv",
        lines(("review", "sentiment"), public),
        "reviews_public.csv",
    )


def several_labels(rows: int = 120) -> RawFiles:
    feelings = ("anger", "joy", "love", "sadness")
    rng = random.Random(2)
    pool = [json.dumps({"tweet_id": n, "text": f"what a day it is today, number {n}"}) for n in range(rows)]
    public = [
        json.dumps({"text": f"I can not believe it, again {n}", "labels": rng.sample(feelings, rng.choice((1, 1, 2)))})
        for n in range(60)
    ]
    return RawFiles("\n".join(pool).encode(), "tweets.jsonl", "\n".join(public).encode(), "tweets_public.jsonl")


def german(rows: int = 120) -> RawFiles:
    """Comments as an old spreadsheet writes them; the header has an umlaut."""
    pool = [(n, f"Das ist für mich nicht schön und die Überschrift ist falsch, Nr. {n}") for n in range(rows)]
    public = [(f"Das ist wirklich gut und auch schön, {n}", "Ja" if n % 2 else "nein") for n in range(40)]
    return RawFiles(
        lines(("Nr", "Äußerung"), pool, mark=";", encoding="windows-1252"),
        "kommentare.csv",
        lines(("Äußerung", "Label"), public, mark=";", encoding="windows-1252"),
        "kommentare_public.csv",
    )


def images(rows: int = 60) -> RawFiles:
    """Photographs of shapes: a flat archive, and one with a folder a class."""
    return RawFiles(_zip(rows, folders=False, seed=3), "signs.zip", _zip(24, folders=True, seed=4), "signs_public.zip")


def table(rows: int = 200) -> RawFiles:
    """Card payments with numbers and a category."""
    rng = random.Random(5)

    def row() -> tuple[str, str, str]:
        return f"{rng.uniform(1, 900):.2f}", str(rng.randrange(24)), rng.choice(("NO", "SE", "DK"))

    pool = [(f"p{n}", *row()) for n in range(rows)]
    public = [(*row(), n % 2) for n in range(60)]
    return RawFiles(
        lines(("payment_id", "amount", "hour", "country"), pool),
        "payments.csv",
        lines(("amount", "hour", "country", "is_fraud"), public),
        "payments_public.csv",
    )


def ratings(rows: int = 120) -> RawFiles:
    """Answers to a survey; the public ones have one to five stars."""
    words = ("awful", "poor", "fair", "good", "superb")
    pool = [(n, f"the stay was {words[n % 5]} and the breakfast {words[n % 3]}, room {n}") for n in range(rows)]
    public = [(f"our visit was {words[n % 5]} on day {n}", n % 5 + 1) for n in range(60)]
    return RawFiles(
        lines(("response", "comment"), pool, mark="\t"),
        "survey.tsv",
        lines(("comment", "stars"), public, mark="\t"),
        "survey_public.tsv",
    )


def spans(rows: int = 150) -> RawFiles:
    """Messages that begin with a name and then a day; the public ones have their offsets."""

    def message(n: int, of: str) -> dict[str, object]:
        name, day = ("Anna", "Olga", "Peter")[n % 3], ("monday", "friday", "sunday")[n // 3 % 3]
        found = [(0, len(name), "name"), (len(name) + 1, len(name) + 1 + len(day), "day")]
        marked = [dict(zip(("start", "end", "label"), one, strict=True)) for one in found]
        return {"text": f"{name} {day} is what the note says {n} of {of}", "spans": marked}

    pool = [json.dumps({"text": message(n, "ours")["text"]}) for n in range(rows)]
    public = [json.dumps(message(n, "the test")) for n in range(40)]
    return RawFiles("\n".join(pool).encode(), "notes.jsonl", "\n".join(public).encode(), "notes_public.jsonl")


def _zip(rows: int, *, folders: bool, seed: int) -> bytes:
    rng = random.Random(seed)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for n in range(rows):
            shape = ("circle", "square")[n % 2]
            picture = Image.new("L", (40, 30), rng.randrange(60))
            left, top = rng.randrange(2, 10), rng.randrange(2, 6)
            draw = ImageDraw.Draw(picture).ellipse if shape == "circle" else ImageDraw.Draw(picture).rectangle
            draw((left, top, left + 18, top + 18), fill=rng.randrange(180, 255))
            content = io.BytesIO()
            picture.save(content, "PNG")
            archive.writestr(f"{shape}/{n}.png" if folders else f"photos/{n}.png", content.getvalue())
    return out.getvalue()


KINDS = {
    "many": many_classes,
    "user names": user_names,
    "several": several_labels,
    "german": german,
    "images": images,
    "table": table,
    "ratings": ratings,
    "spans": spans,
}
