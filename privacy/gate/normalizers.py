"""Versioned rules that bring texts to the form in which they are counted and shown. A rule never changes once used."""

import re
import unicodedata
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy.wording import gettext_noop

_ASKING: Final = (
    "about after afternoon again all always another around back before between both cant current currently date dates "
    "day days different dont down during each early east evening every far few first hour hours how hows in last late "
    "later latest least left less long lot many midnight minute minutes month months more morning most much near "
    "nearby nearest never new next night no noon north not now off often old on once other out over recent right same "
    "second seconds since soon south third time times today tomorrow tonight under until up week weekend weeks west "
    "what whats when whens where wheres which while who whom whos whose why year years yes yesterday"
)
_DOING: Final = (
    "add adjust answer arrive ask book bring brush buy call cancel change charge check choose clean clear close come "
    "confirm connect continue convert cook count create cut decrease delete describe dim discuss drive drop eat edit "
    "email end enter explain fill find finish fix fly follow forget forward get give go going gone happen happening "
    "hear help hold increase install invite join keep know learn leave let like list listen live lock look lose lower "
    "make mark mean meet message move mute name need notify open order pause pay pick plan play playing post press "
    "print pull push put raise read ready record redo remind remove rename repeat replace reply report reschedule "
    "reserve reset resume return ring run save say schedule search see sell send set share show shuffle shut skip "
    "sleep slow snooze sort speak spell spend start stay stop store suggest switch take talk tell text think track "
    "transfer translate travel try turn tweet understand undo unmute update upload use view visit wait wake walk want "
    "wash watch wear work write"
)
_THINGS: Final = (
    "account address airport alarm alarms album amount app appointment appointments area article artist audiobook "
    "balance band bank bar bathroom battery beach bed bedroom bill bills birthday blue board boat books boss bottle "
    "box brand bread breakfast bright brightness brother building bus business cake calendar calls camera car card "
    "cards cat chair channel chapter chicken child children church city class clock cloud coffee cold color colour "
    "company computer concert contact contacts conversation cost country coupon cousin credit currency dad dark "
    "daughter dinner direction directions doctor document dog dollar dollars door drink driver emails euro event "
    "events exchange facebook family father fee file film fire flight flights floor food football forecast friend "
    "friends fruit fuel game games garage garden gas gate genre gift girl glass gold google grocery group hair hall "
    "hand headlines health heat heating high holiday home hospital hot hotel house humidity husband ice inbox "
    "information ingredients insurance interest internet item items job joke jokes journey key kids kitchen lamp "
    "language level library light lights limit line location loud low lunch machine mail man map market meal meaning "
    "meat meeting meetings menu messages milk mode mom money mother mountain movie movies mum music news newspaper "
    "note notes number office oil oven page paint paper parents park parking party passport password pasta payment "
    "people person phone photo picture pin pizza place places plane plans plant playlist podcast point police politics "
    "population pound power president price program project question radio rain rate recipe recipes red reminder "
    "reminders request reservation restaurant restaurants review reviews rewards rice road room round route routine "
    "salad sale sales school score sea seat security service shirt shoes shop shopping shower sink sister size sky "
    "snow social sofa son song songs sound soup speaker speed sport sports stairs station status stock stocks storm "
    "story street subway sugar summer sun sunny supermarket table task tasks tax taxi tea teacher team "
    "television temperature test theatre thing things ticket tickets timer timezone tip tire todo toilet tool town toy "
    "traffic train trains transaction trip tv twitter vacation vacuum vegetable video visa voice volume wall wallet "
    "war warm water weather website wedding white wife wifi wind window wine winter woman word words world zone"
)
_SAYING: Final = (
    "bad best better big black cheap common cool correct difficult double dry easy enough fast favorite favourite fine "
    "free full funny good great green half happy hard healthy heavy important interesting international large largest "
    "little local longest maximum minimum nice optimal own popular possible public quick quiet rainy real sad short "
    "silent simple small smart special strong sure sweet tall top total true weak wet whole wide worst wrong yellow "
    "young"
)

COMMON_WORDS: Final = frozenset(" ".join((_ASKING, _DOING, _THINGS, _SAYING)).split())


# A decimal digit of any script.
DIGIT: Final = re.compile(r"\d")
NUMBER: Final = "<number>"
WEEKDAY: Final = "<weekday>"
MONTH: Final = "<month>"
# Any word that is not on the public list.
OTHER: Final = "<word>"

# "second", "may" and "march" are left out: more often than not they mean something else.
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion"
)
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february april june july august september october november december"
_FUNCTION_WORDS = (
    "a an the this that these those i im ive ill me my mine we us our ours you youre your yours he him his she her "
    "hers it its they them their theirs is are am was were be been being do does did doing have has had having will "
    "would shall should can could might must to of for at by with from as and or but if so than then there here "
    "please thanks thank hey hi hello ok okay just some any"
)

MASKS: Final = {
    **dict.fromkeys(_NUMBERS.split(), NUMBER),
    **{word + plural: WEEKDAY for word in _WEEKDAYS.split() for plural in ("", "s")},
    **dict.fromkeys(_MONTHS.split(), MONTH),
}
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
SLOTS: Final = frozenset({NUMBER, WEEKDAY, MONTH, OTHER})


def masked(word: str) -> str:
    """Return the public slot a word stands in, or the word; every word with a digit in it is a number."""
    if DIGIT.search(word):
        return NUMBER
    return MASKS.get(word, word)


def content(word: str) -> str:
    return "" if word in FUNCTION_WORDS else masked(word)


def general(word: str) -> str:
    left = content(word)
    return left if not left or left in SLOTS or left in COMMON_WORDS else OTHER


def listed_steps(word: str) -> str:
    left = general(word)
    return "" if left == OTHER else left


class Normalizer(StrEnum):
    """The rules that exist, each grouping more texts than the one before.

    L0: Unicode NFC, white space collapsed, invisible characters removed.
    L1: L0 with compatibility forms unified (NFKC), case folded, apostrophes dropped and every
    other punctuation character read as a space.
    L2: L1 with numbers, weekdays and months replaced by the slot they stand in; numbers in a row are one.
    L3: the words of L2 that carry content, each once, in alphabetical order.
    L4: L3 with one slot for all words that are not on the public list `COMMON_WORDS`.
    L5: the words of that list and the slots of L2 alone, each once, in alphabetical order.
    """

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"
    L5 = "L5"

    @property
    def summary(self) -> str:
        return SUMMARIES[self]


SUMMARIES = {
    Normalizer.L0: gettext_noop("the text as typed"),
    Normalizer.L1: gettext_noop("lower case, no punctuation"),
    Normalizer.L2: gettext_noop("the same, numbers, weekdays and months masked"),
    Normalizer.L3: gettext_noop("content words in alphabetical order"),
    Normalizer.L4: gettext_noop("the same, words outside a public list masked"),
    Normalizer.L5: gettext_noop("only words of that list, in alphabetical order"),
}
WORD_RULES = {Normalizer.L2: masked, Normalizer.L3: content, Normalizer.L4: general, Normalizer.L5: listed_steps}
# Rules that leave each word once and in alphabetical order.
UNORDERED = frozenset({Normalizer.L3, Normalizer.L4, Normalizer.L5})
APOSTROPHES = "'’ʼ"
# What a lower case by characters leaves apart, and the marks beyond ASCII that people and programs put for others.
FOLDED = (("ß", "ss"), ("’", ""), ("‘", ""), ("“", ""), ("”", ""), ("„", ""), ("–", " "), ("—", " "), ("\u200b", ""))
# Casing and composing can each bring back something the other would change.
MAX_PASSES = 4


def normalize_text(text: str, normalizer: Normalizer) -> str:
    """Apply one rule to one text; the reference that `normalize_texts` must equal."""
    if normalizer in WORD_RULES:
        words = normalize_text(text, Normalizer.L1).split(" ")
        return " ".join(_ruled_words([WORD_RULES[normalizer](word) for word in words], normalizer))
    table = TRANSLATIONS[normalizer]
    for _ in range(MAX_PASSES):
        before = text
        if normalizer is Normalizer.L1:
            text = unicodedata.normalize("NFKC", text).casefold()
        text = unicodedata.normalize("NFC", text).translate(table)
        text = " ".join(text.split())
        if text == before:
            break
    return text


def _ruled_words(words: list[str], normalizer: Normalizer) -> list[str]:
    if normalizer in UNORDERED:
        return sorted(set(words) - {""})
    return [word for place, word in enumerate(words) if not (place and word == words[place - 1] == NUMBER)]


def normalize_texts(texts: pa.Array, normalizer: Normalizer) -> pa.Array:
    """Apply one rule to a whole array, as large_string; null stays null. Equal, text by text, to `normalize_text`."""
    texts = texts.cast(pa.large_string())
    if len(texts) == 0:
        return texts
    if normalizer in WORD_RULES:
        return _normalize_words(normalize_texts(texts, Normalizer.L1), normalizer)
    plain = pc.fill_null(pc.string_is_ascii(texts), True)
    if pc.all(plain).as_py():
        return _normalize_ascii(texts, normalizer)
    # Python's own tables decide about everything beyond ASCII, so no second Unicode database
    # can disagree with the reference.
    wide = [normalize_text(text, normalizer) for text in texts.filter(pc.invert(plain)).to_pylist()]
    easy = _normalize_ascii(pc.if_else(plain, texts, ""), normalizer)
    return pc.replace_with_mask(easy, pc.invert(plain), pa.array(wide, pa.large_string()))


def fold_texts(texts: pa.Array) -> pa.Array:
    """Bring texts to a form in which they are compared, and neither counted nor shown; null stays null.

    It leaves out what L1 leaves out (compatibility forms, case, apostrophes, punctuation, white space), by tables of
    Arrow, which beyond ASCII take less than half of the time. No ledger entry stands for it, so a better form may come.
    """
    texts = texts.cast(pa.large_string())
    if len(texts) and not pc.all(pc.fill_null(pc.string_is_ascii(texts), True)).as_py():
        texts = pc.utf8_lower(pc.utf8_normalize(texts, "NFKC"))
        for special, plain in FOLDED:
            # Looking takes a third of the time of replacing.
            if pc.any(pc.match_substring(texts, special)).as_py():
                texts = pc.replace_substring(texts, special, plain)
    return _normalize_ascii(texts, Normalizer.L1) if len(texts) else texts


class _Translation(dict[int, str | int | None]):
    """Character table of a rule for `str.translate`, filled as characters turn up."""

    def __init__(self, normalizer: Normalizer) -> None:
        self.words_only = normalizer is Normalizer.L1

    def __missing__(self, code: int) -> str | int | None:
        character = chr(code)
        category = unicodedata.category(character)
        kept: str | int | None = code
        if character.isspace():
            kept = " "
        elif category in {"Cc", "Cf"} or (self.words_only and character in APOSTROPHES):
            kept = None
        elif self.words_only and category.startswith("P"):
            kept = " "
        self[code] = kept
        return kept


TRANSLATIONS = {normalizer: _Translation(normalizer) for normalizer in (Normalizer.L0, Normalizer.L1)}


@cache
def _ascii_table(normalizer: Normalizer) -> NDArray[np.uint8]:
    table = np.arange(256, dtype=np.uint8)
    for code in range(128):
        folded = chr(code).casefold() if normalizer is Normalizer.L1 else chr(code)
        # A byte that goes becomes 0, which no rule keeps.
        table[code] = ord(folded.translate(TRANSLATIONS[normalizer]) or "\0")
    return table


def _normalize_ascii(texts: pa.Array, normalizer: Normalizer) -> pa.Array:
    if texts.offset:
        texts = pa.concat_arrays([texts.slice(0, 0), texts])
    validity, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64, count=len(texts) + 1)
    first, last = int(offsets[0]), int(offsets[-1])
    if data is None or first == last:
        return texts
    raw = np.frombuffer(data, dtype=np.uint8, count=last - first, offset=first)
    characters = _ascii_table(normalizer)[raw]
    starts = offsets - first
    characters, starts = _keep(characters, starts, characters != 0)
    if characters.size:
        space = characters == ord(" ")
        # A space goes if a space or the start of its text comes before it, ...
        after_space = np.empty_like(space)
        after_space[1:] = space[:-1]
        after_space[starts[:-1][starts[:-1] < characters.size]] = True
        characters, starts = _keep(characters, starts, ~(space & after_space))
    if characters.size:
        # ... and then at most one is left at the end of a text.
        ends = starts[1:][starts[1:] > starts[:-1]] - 1
        keep = np.ones(characters.size, dtype=np.bool_)
        keep[ends[characters[ends] == ord(" ")]] = False
        characters, starts = _keep(characters, starts, keep)
    buffers = [validity, pa.py_buffer(starts.tobytes()), pa.py_buffer(characters.tobytes())]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers, null_count=texts.null_count)


def _keep(
    characters: NDArray[np.uint8], starts: NDArray[np.int64], keep: NDArray[np.bool_]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    if keep.all():
        return characters, starts
    kept_before = np.zeros(keep.size + 1, dtype=np.int64)
    np.cumsum(keep, out=kept_before[1:])
    return characters[keep], kept_before[starts]


def _normalize_words(texts: pa.Array, normalizer: Normalizer) -> pa.Array:
    lists = pc.split_pattern(pc.fill_null(texts, ""), " ")
    rows = pc.list_parent_indices(lists).to_numpy()
    words = pc.list_flatten(lists).dictionary_encode()
    ruled = pa.array([WORD_RULES[normalizer](word) for word in words.dictionary.to_pylist()], pa.large_string())
    distinct = ruled.dictionary_encode()
    codes = distinct.indices.to_numpy()[words.indices.to_numpy()]
    if normalizer in UNORDERED:
        # Code points and UTF-8 bytes sort alike, so arrays and single texts have one order.
        ranks = np.empty(len(distinct.dictionary), dtype=np.int64)
        ranks[pc.sort_indices(distinct.dictionary).to_numpy()] = np.arange(len(ranks))
        order = np.lexsort((ranks[codes], rows))
        rows, codes = rows[order], codes[order]
    again = np.zeros(len(codes), dtype=np.bool_)
    again[1:] = (codes[1:] == codes[:-1]) & (rows[1:] == rows[:-1])
    if normalizer is Normalizer.L2:
        again &= codes == pc.index(distinct.dictionary, NUMBER).as_py()
    keep = ~again & (codes != pc.index(distinct.dictionary, "").as_py())
    offsets = np.zeros(len(texts) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows[keep], minlength=len(texts)), out=offsets[1:])
    kept = distinct.dictionary.take(pa.array(codes[keep]))
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), kept), pa.scalar(" ", pa.large_string()))
    return pc.if_else(texts.is_valid(), joined, None)
