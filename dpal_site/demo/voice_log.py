"""A generated log of a voice assistant, as people talk to one: few sentences said by many, many said by one."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

QUESTION = "What is this request about?"

# By topic: what fills the `gaps`, what people `said`, what is `tested`, and `examples` by the owner of the project.
SAYINGS: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("sayings.toml").read_text("utf-8"))
CLASSES = tuple(SAYINGS)
# What only one person would say; the gate exists so that nobody else ever reads it.
PRIVATE_ACTIONS = ("remember that my door code is {n}", "call my doctor on {n}", "turn on heater number {n}")
PRIVATE_ASKINGS = ("what did i pay to account {n}", "who called me from {n}", "when does parcel {n} arrive")


@dataclass(frozen=True, slots=True)
class VoiceLog:
    texts: list[str]
    contributors: list[str]


def known_sentences(*, tested: bool = False) -> dict[str, int]:
    return {
        saying.format(gap): place
        for place, topic in enumerate(SAYINGS.values())
        for saying in topic["tested" if tested else "said"]
        for gap in topic["gaps"]
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
