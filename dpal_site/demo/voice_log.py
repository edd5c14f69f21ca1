"""A generated log of a voice assistant: few sentences said by many people, many said by one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUESTION = "What does the speaker want?"
CLASSES = ("change something at home", "find something out")

ROOMS = (
    "kitchen", "bedroom", "hall", "office", "bathroom", "garden", "garage", "cellar", "attic", "nursery",
)  # fmt: skip
ACTIONS = (
    "turn on the {room} light", "turn off the {room} light", "dim the {room} lamp", "open the {room} blinds",
    "close the {room} blinds", "lock the {room} door", "unlock the {room} door", "turn up the {room} heating",
    "turn down the {room} heating", "start the fan in the {room}", "stop the fan in the {room}",
    "play some music in the {room}", "stop the music in the {room}", "set the {room} lamp to red",
    "clean the {room} floor", "make the {room} warmer", "make the {room} brighter", "please switch off the {room}",
    "set the {room} alarm", "close the window in the {room}",
)  # fmt: skip
PLACES = (
    "paris", "london", "berlin", "rome", "madrid", "lisbon", "vienna", "oslo", "athens", "dublin",
)  # fmt: skip
ASKINGS = (
    "what is the weather in {place}", "will it rain in {place} tomorrow", "what time is it in {place}",
    "how far is {place} from here", "how many people live in {place}", "what is the news from {place}",
    "when is the next train to {place}", "how long does the flight to {place} take", "who is the mayor of {place}",
    "is it cold in {place} today", "what language do they speak in {place}", "which museums are open in {place}",
    "where can i eat in {place}", "how much is a hotel in {place}", "what is {place} famous for",
    "who won the match in {place}", "tell me about {place}", "what is the best park in {place}",
    "are the shops open in {place}", "how do i get to {place}",
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


def draw_log(*, contributors: int, rng: np.random.Generator) -> VoiceLog:
    """Draw what each of `contributors` people said in a week.

    How often a sentence is said falls with its rank by a Zipf-Mandelbrot law, and a third of the lines are
    sentences of one person alone, as in the query logs the gate was written for.

    Parameters
    ----------
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
    shared = list(known_sentences())
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
