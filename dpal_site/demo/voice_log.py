"""A generated log of a voice assistant: few sentences said by many people, many said by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUESTION = "What does the speaker want?"
CLASSES = ("change something at home", "find something out")

ROOMS = (
    "kitchen", "bedroom", "hall", "office", "bathroom", "garden", "garage", "cellar", "attic", "nursery",
    "lounge", "dining", "guest", "laundry", "porch", "balcony", "studio", "library", "terrace", "basement",
)  # fmt: skip
ACTIONS = (
    "turn on the {room} light", "turn off the {room} light", "turn up the {room} heating",
    "turn down the {room} heating", "turn on the {room} radio", "turn off the {room} radio", "open the {room} blinds",
    "close the {room} blinds", "open the {room} door", "lock the {room} door", "set the {room} light to red",
    "set the {room} heating to twenty",
)  # fmt: skip
PLACES = (
    "paris", "london", "berlin", "rome", "madrid", "lisbon", "vienna", "oslo", "athens", "dublin",
    "prague", "warsaw", "zurich", "milan", "bruges", "tokyo", "cairo", "lima", "boston", "sydney",
)  # fmt: skip
ASKINGS = (
    "what is the weather in {place}", "is it raining in {place}", "what time is it in {place}",
    "how far is it to {place}", "how many people live in {place}", "what is the news from {place}",
    "when is the next train to {place}", "when is the next flight to {place}", "who is the mayor of {place}",
    "how cold is it in {place}", "what is there to see in {place}", "how do i get to {place}",
)  # fmt: skip
# What only one person would say; the gate exists so that nobody else ever reads it.
PRIVATE_ACTIONS = ("remember that my door code is {n}", "call my doctor on {n}", "turn on heater number {n}")
PRIVATE_ASKINGS = ("what did i pay to account {n}", "who called me from {n}", "when does parcel {n} arrive")


@dataclass(frozen=True, slots=True)
class VoiceLog:
    """One line of the log is `texts[i]` said by `contributors[i]`, both of length n_lines."""

    texts: list[str]
    contributors: list[str]


def known_sentences() -> dict[str, int]:
    """Return every sentence that people share, with the index of its class in `CLASSES`."""
    actions = {action.format(room=room): 0 for action in ACTIONS for room in ROOMS}
    askings = {asking.format(place=place): 1 for asking in ASKINGS for place in PLACES}
    return actions | askings


def draw_log(shared: Sequence[str], *, contributors: int, rng: np.random.Generator) -> VoiceLog:
    """Draw what each of `contributors` people said in a week.

    How often a shared sentence is said falls with its rank by a Zipf-Mandelbrot law, and a third of the lines are
    sentences of one person alone, as in the query logs the gate was written for.

    Parameters
    ----------
    shared : sequence of str
        Sentences that many people say, at least one.
    contributors : int
        Number of people, >= 1.
    rng : numpy.random.Generator
        A seeded generator: the log is made up and protects nobody.

    References
    ----------
    .. [1] Feyisetan et al., "Privacy-Preserving Active Learning on Sensitive Data for User Intent Classification",
       2019, figure 1.
    """
    lines_each = np.minimum(rng.zipf(2.2, size=contributors) + 1, 40)
    speakers = np.repeat(np.arange(contributors), lines_each)
    rng.shuffle(speakers)
    said = rng.choice(rng.permutation(len(shared)), size=len(speakers), p=zipf_mandelbrot(len(shared)))
    alone = rng.random(len(speakers)) < 1 / 3
    private = _private_sentences(int(alone.sum()), rng)
    texts = [shared[index] for index in said]
    for line, text in zip(np.flatnonzero(alone), private, strict=True):
        texts[line] = text
    return VoiceLog(texts=texts, contributors=[f"device-{speaker:06d}" for speaker in speakers])


def zipf_mandelbrot(size: int, *, exponent: float = 1.0, shift: float = 60.0) -> NDArray[np.float64]:
    """Return probabilities proportional to (rank + shift)^-exponent, shape (size,)."""
    weights = np.power(np.arange(1.0, size + 1) + shift, -exponent)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def public_test_set(*, size: int, rng: np.random.Generator) -> tuple[list[str], list[int]]:
    """Return sentences written for the test and their classes; none is taken from the log."""
    wished = ("{} please", "hey {}", "{} now", "could you {}", "{}")
    known = known_sentences()
    chosen = rng.choice(list(known), size=size)
    polite = rng.choice(wished, size=size)
    return [form.format(text) for form, text in zip(polite, chosen, strict=True)], [known[text] for text in chosen]


def _private_sentences(count: int, rng: np.random.Generator) -> list[str]:
    forms = rng.choice(PRIVATE_ACTIONS + PRIVATE_ASKINGS, size=count)
    numbers = rng.choice(10**7, size=count, replace=False)
    return [form.format(n=number) for form, number in zip(forms, numbers, strict=True)]
