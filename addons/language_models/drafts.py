"""Example texts of classes, drafted by a language model that is shown public words alone."""

import re
import time
from collections.abc import Collection, Mapping, Sequence

from addons.language_models.endpoint import Endpoint, EndpointFault, ask_model

MOST_EXAMPLES = 50
LONGEST_EXAMPLE = 300
TOKENS_PER_EXAMPLE = 60
# What lists put before an entry, and quotation marks around one.
LISTED = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.):])\s+")
MARKS = "\"'“”„«»` \t"


def draft_examples(
    endpoint: Endpoint,
    *,
    classes: Sequence[str],
    question: str,
    guidelines: str,
    examples: int,
    hosts: Collection[str],
    local: Collection[str],
    seconds: float,
    ends: float = float("inf"),
) -> list[tuple[str, str]]:
    """Return drafted pairs of a class and an example; no record, count or answer is an argument, so none is sent."""
    found = []
    for name in classes:
        if time.monotonic() > ends:
            raise EndpointFault("the language model took too long", again=False)
        messages = messages_for(name, classes=classes, question=question, guidelines=guidelines, examples=examples)
        tokens = TOKENS_PER_EXAMPLE * examples
        reply = ask_model(endpoint, messages, hosts=hosts, local=local, seconds=seconds, most_tokens=tokens)
        found += [(name, text) for text in examples_in(reply.content)[:examples]]
    return found


def messages_for(
    name: str, *, classes: Sequence[str], question: str, guidelines: str, examples: int
) -> list[Mapping[str, str]]:
    lines = [
        "You write example texts as different people might write them, short and long, plain and unusual.",
        f"They are sorted by this question: {question}",
        f"The classes are: {', '.join(classes)}.",
        *([f"Guidelines: {guidelines}"] if guidelines.strip() else []),
        "Write one example a line, without numbers, quotation marks or anything else.",
    ]
    wanted = f"Write {examples} examples of the class {name}."
    return [{"role": "system", "content": "\n".join(lines)}, {"role": "user", "content": wanted}]


def examples_in(reply: str) -> list[str]:
    """Return the distinct lines of a reply, without list marks and quotation marks."""
    plain = (" ".join(LISTED.sub("", line).strip(MARKS).split()) for line in reply.splitlines())
    return list(dict.fromkeys(line for line in plain if line and len(line) <= LONGEST_EXAMPLE))
