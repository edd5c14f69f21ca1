"""A generated log of a voice assistant, as people talk to one: few sentences said by many, many said by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUESTION = "What does the speaker want?"
CLASSES = ("have something done", "find something out")

TIMES = ("six", "half past six", "seven", "seven thirty", "eight", "nine in the morning")
PEOPLE = ("anna", "my boss", "john", "my sister", "the dentist", "mister brown")
DISHES = ("pasta", "chicken soup", "pancakes", "apple pie", "rice", "lasagna")
ROOMS = ("kitchen", "bedroom", "hall", "office", "garage", "living room")
GOODS = ("milk", "eggs", "coffee", "batteries", "bread", "toilet paper")
MUSIC = ("jazz", "the beatles", "some rock", "my favorite song", "mozart", "my workout playlist")
PLACES = ("paris", "london", "the airport", "boston", "the office", "new york")
# By scenario: what can fill the gap, and what is said to have something done and to find something out; the last
# of each stands in the public test set alone.
SAYINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "alarm": (
        TIMES,
        ("wake me up at {}", "set an alarm for {}", "please cancel my alarm for {}", "olly change my alarm to {}",
         "get rid of the alarm at {}"),
        ("is there an alarm at {}", "did i set the alarm to {}", "which alarms ring before {}", "is my alarm at {} on",
         "have i already set one for {}"),
    ),
    "calendar": (
        PEOPLE,
        ("put lunch with {} in my calendar", "cancel my meeting with {}", "schedule a call with {} next week",
         "move my appointment with {} to friday", "make a new event with {} at noon"),
        ("when do i meet {}", "what time is my meeting with {}", "do i have an appointment with {} this week",
         "how long is the call with {}", "where is the lunch with {}"),
    ),
    "cooking": (
        DISHES,
        ("save this recipe for {}", "start a timer for {}", "order the things i need for {}",
         "read the {} recipe to me",
         "send the recipe for {} to my wife"),
        ("how do i cook {}", "how long does {} take", "what goes well with {}", "how much salt belongs into {}",
         "which oven heat is right for {}"),
    ),
    "email": (
        PEOPLE,
        ("write an email to {}", "answer the email from {}", "send {} an email that i am late", "forward this to {}",
         "delete all mails from {}"),
        ("do i have new emails from {}", "has {} written to me", "what did {} say in the last email",
         "how many mails came from {}", "is there anything unread from {}"),
    ),
    "lights": (
        ROOMS,
        ("turn on the lights in the {}", "switch off the {} light", "make the {} brighter", "make the {} lamp blue",
         "dim everything in the {}"),
        ("are the lights on in the {}", "is it dark in the {}", "did i leave the {} light on",
         "how bright is the lamp in the {}", "which color has the {} lamp now"),
    ),
    "lists": (
        GOODS,
        ("put {} on my shopping list", "add {} to the list", "remove {} from my list", "take {} off the grocery list",
         "write down that we need {}"),
        ("do i need to buy {}", "is {} on my grocery list", "did i already note {}", "how much {} is on the list",
         "have we run out of {}"),
    ),
    "music": (
        MUSIC,
        ("play {}", "i want to hear {}", "turn up {}", "start {} in the living room", "shuffle {} for me"),
        ("is {} playing right now", "when was {} recorded", "who sings on {}", "do i have {} in my library",
         "how long is the album by {}"),
    ),
    "transport": (
        PLACES,
        ("get me a taxi to {}", "book a ticket to {}", "start the navigation to {}", "share my way to {} with anna",
         "reserve a seat on the train to {}"),
        ("when is the next train to {}", "how is the traffic to {}", "how far is it to {}", "which bus goes to {}",
         "does the flight to {} leave in time"),
    ),
}  # fmt: skip
KEPT_FOR_THE_TEST = 1
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
    return _said(slice(None, -KEPT_FOR_THE_TEST))


def _said(which: slice) -> dict[str, int]:
    """Return some of the sayings of each scenario and class with every gap filled."""
    return {
        saying.format(gap): place
        for gaps, *by_class in SAYINGS.values()
        for place, sayings in enumerate(by_class)
        for saying in sayings[which]
        for gap in gaps
    }


def draw_voice_log(shared: Sequence[str], *, contributors: int, rng: np.random.Generator) -> VoiceLog:
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
    """Return sentences written for the test and their classes: other ways to say things, none taken from the log."""
    wished = ("{}", "{} please", "hey {}", "{} now", "olly {}")
    known = _said(slice(-KEPT_FOR_THE_TEST, None))
    chosen = rng.choice(list(known), size=size)
    polite = rng.choice(wished, size=size)
    return [form.format(text) for form, text in zip(polite, chosen, strict=True)], [known[text] for text in chosen]


def _private_sentences(count: int, rng: np.random.Generator) -> list[str]:
    forms = rng.choice(PRIVATE_ACTIONS + PRIVATE_ASKINGS, size=count)
    numbers = rng.choice(10**7, size=count, replace=False)
    return [form.format(n=number) for form, number in zip(forms, numbers, strict=True)]
