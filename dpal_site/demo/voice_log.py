"""A generated log of a voice assistant, as people talk to one: few sentences said by many, many said by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUESTION = "What is this request about?"

TIMES = ("six", "half past six", "seven", "seven thirty", "eight", "nine in the morning")
PEOPLE = ("anna", "my boss", "john", "my sister", "the dentist", "mister brown")
DISHES = ("pasta", "chicken soup", "pancakes", "apple pie", "rice", "lasagna")
ROOMS = ("kitchen", "bedroom", "hall", "office", "garage", "living room")
GOODS = ("milk", "eggs", "coffee", "batteries", "bread", "toilet paper")
MUSIC = ("jazz", "the beatles", "some rock", "my favorite song", "mozart", "my workout playlist")
PLACES = ("paris", "london", "the airport", "boston", "the office", "new york")
DAYS = ("today", "tomorrow", "on friday", "this weekend", "tonight", "next week")
SUBJECTS = ("politics", "the election", "football", "the stock market", "my town", "science")
SHOWS = ("the late show", "the match", "star trek", "that new series", "the documentary", "channel four")
THINGS = ("jupiter", "einstein", "the nile", "photosynthesis", "the eiffel tower", "a black hole")
# By topic: what can fill the gap, what people say, and what is said in the public test set alone.
SAYINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "alarm": (
        TIMES,
        ("wake me up at {}", "set an alarm for {}", "please cancel my alarm for {}", "olly change my alarm to {}",
         "is there an alarm at {}", "did i set the alarm to {}", "i have to get up at {}", "no sleep after {}"),
        ("get rid of the alarm at {}", "have i already set one for {}", "get me out of bed at {}"),
    ),
    "calendar": (
        PEOPLE,
        ("put lunch with {} in my calendar", "cancel my meeting with {}", "schedule a call with {} next week",
         "move my appointment with {} to friday", "when do i meet {}", "what time is my meeting with {}",
         "am i free before i see {}", "how long is the visit to {}"),
        ("make a new event with {} at noon", "where is the lunch with {}", "when do i see {} again"),
    ),
    "cooking": (
        DISHES,
        ("save this recipe for {}", "read the {} recipe to me", "how do i cook {}", "how long does {} take",
         "what goes well with {}", "how much salt belongs into {}", "what do i need for {}", "how hot for {}"),
        ("send the recipe for {} to my wife", "which oven heat is right for {}", "what else can i put into {}"),
    ),
    "email": (
        PEOPLE,
        ("write an email to {}", "answer the email from {}", "send {} a note that i am late", "forward this to {}",
         "do i have new emails from {}", "has {} written to me", "what did {} say in the last message",
         "tell {} that i agree"),
        ("delete all mails from {}", "is there anything unread from {}", "reply to {} that i will come"),
    ),
    "lights": (
        ROOMS,
        ("turn on the lights in the {}", "switch off the {} light", "make the {} brighter", "make the {} lamp blue",
         "are the lights on in the {}", "is it dark in the {}", "i cannot see a thing in the {}",
         "did i leave the {} on"),
        ("dim everything in the {}", "which color has the {} lamp now", "it is too bright in the {}"),
    ),
    "lists": (
        GOODS,
        ("put {} on my shopping list", "add {} to the list", "remove {} from my list", "take {} off the list",
         "do i need to buy {}", "did i already note {}", "we are out of {}", "remind me to get {}"),
        ("write down that we need {}", "have we run out of {}", "i have bought {}"),
    ),
    "music": (
        MUSIC,
        ("play {}", "i want to hear {}", "turn up {}", "start {} in the living room", "is {} playing right now",
         "when was {} recorded", "louder with {}", "skip {}"),
        ("shuffle {} for me", "how long is the album by {}", "put on {} and make it loud"),
    ),
    "news": (
        SUBJECTS,
        ("what is new in {}", "read me the headlines about {}", "what happened with {}", "any reports on {}",
         "tell me the latest on {}", "what do the papers say about {}", "keep me posted on {}", "anything on {}"),
        ("give me an update on {}", "did anything happen with {}", "what is going on with {}"),
    ),
    "questions": (
        THINGS,
        ("what is {}", "tell me about {}", "how old is {}", "why is {} important", "explain {} to me",
         "who discovered {}", "how big is {}", "give me a fact about {}"),
        ("what do you know about {}", "describe {}", "how would you define {}"),
    ),
    "television": (
        SHOWS,
        ("record {}", "when is {} on", "switch to {}", "who plays in {}", "pause {}", "where can i watch {}",
         "is there a new episode of {}", "did i miss {}"),
        ("go back to {}", "what time does {} start", "let me see {}"),
    ),
    "transport": (
        PLACES,
        ("get me a taxi to {}", "book a ticket to {}", "start the navigation to {}", "when is the next train to {}",
         "how is the traffic to {}", "how far is it to {}", "bring me to {}", "how do i get to {}"),
        ("reserve a seat on the train to {}", "does the flight to {} leave in time", "i have to be in {} by noon"),
    ),
    "weather": (
        DAYS,
        ("will it rain {}", "how warm does it get {}", "do i need an umbrella {}", "is it going to snow {}",
         "should i wear a coat {}", "will the sun come out {}", "how cold is it {}", "is it nice out {}"),
        ("what is the forecast {}", "can i go without a jacket {}", "will there be a storm {}"),
    ),
}  # fmt: skip
CLASSES = tuple(SAYINGS)
# What the owner of the project wrote about each topic, before anybody was asked.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "alarm": ("set the alarm clock", "wake me early", "is my alarm on"),
    "calendar": ("what is on my calendar", "new appointment on monday", "do i have a meeting"),
    "cooking": ("find a recipe", "how do i bake a cake", "how long to boil an egg"),
    "email": ("check my inbox", "send an email", "reply to the last mail"),
    "lights": ("lights on", "dim the lamp", "is the light off"),
    "lists": ("open my shopping list", "add something to the list", "what is on my list"),
    "music": ("play a song", "next track", "which band is this"),
    "news": ("what is in the news", "read the headlines", "breaking news please"),
    "questions": ("who was napoleon", "what does this word mean", "how many people live in india"),
    "television": ("turn on the television", "what is on tv", "change the channel"),
    "transport": ("call a taxi", "when does the bus come", "directions to the station"),
    "weather": ("weather report", "will it rain", "what is the temperature outside"),
}


# What only one person would say; the gate exists so that nobody else ever reads it.
PRIVATE_ACTIONS = ("remember that my door code is {n}", "call my doctor on {n}", "turn on heater number {n}")
PRIVATE_ASKINGS = ("what did i pay to account {n}", "who called me from {n}", "when does parcel {n} arrive")


@dataclass(frozen=True, slots=True)
class VoiceLog:
    texts: list[str]
    contributors: list[str]


def known_sentences(*, tested: bool = False) -> dict[str, int]:
    """Return every sentence that people share, or that tests the models, with the index of its class in `CLASSES`."""
    return {
        saying.format(gap): place
        for place, (gaps, *sayings) in enumerate(SAYINGS.values())
        for saying in sayings[tested]
        for gap in gaps
    }


def draw_voice_log(shared: Sequence[str], *, contributors: int, rng: np.random.Generator) -> VoiceLog:
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
    weights = np.power(np.arange(1.0, size + 1) + shift, -exponent)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def public_test_set(*, rng: np.random.Generator) -> tuple[list[str], list[int]]:
    known = known_sentences(tested=True)
    polite = rng.choice(("{}", "{} please", "hey {}", "{} now", "olly {}"), size=len(known))
    return [form.format(text) for form, text in zip(polite, known, strict=True)], list(known.values())


def _private_sentences(count: int, rng: np.random.Generator) -> list[str]:
    forms = rng.choice(PRIVATE_ACTIONS + PRIVATE_ASKINGS, size=count)
    numbers = rng.choice(10**7, size=count, replace=False)
    return [form.format(n=number) for form, number in zip(forms, numbers, strict=True)]
