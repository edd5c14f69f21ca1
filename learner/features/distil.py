"""Public tables from WordNet: `python -m learner.features.distil FOLDER NPZ [--directions | --whitening]`."""

import argparse
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from dpal.features.normal import Words
from dpal.features.pieces import uncased_tokenizer
from dpal.features.sentences import BEGIN, END, SentenceNetwork, multilingual_network
from dpal.spans.text import tokens
from learner.features.encoder import network, vocabulary
from learner.features.static_encoder import read_table
from privacy.gate.normalizers import Normalizer, normalize_texts

Vectors = NDArray[np.float64]
EXAMPLES, DEFINITIONS = 42_000, 26_000
SHORTEST, LONGEST = 2, 20
# How many texts keep their punctuation; the others are in the form in which the encoder sees texts by default.
RAW_SHARE = 0.3
WIDTH = 256
# Pull of each piece towards its own sentence vector; decides only pieces the corpus hardly has.
RIDGE = 0.03
# Texts of which the encoder's directions are made.
TEXTS = 20_000
STEPS = 60


def corpus(folder: Path, rng: np.random.Generator) -> list[str]:
    examples, definitions = set(), set()
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("latin-1").splitlines():
            if line.startswith("  ") or "|" not in line:
                continue
            gloss = line.split("|", 1)[1].strip()
            examples.update(re.findall(r'"([^"]{8,})"', gloss))
            definitions.add(re.sub(r'"[^"]*"?', "", gloss).split(";")[0].strip(" ;"))
    chosen = [
        *_some(examples, EXAMPLES, rng),
        *_some({text for text in definitions if len(text) > 11}, DEFINITIONS, rng),
    ]
    plain = normalize_texts(pa.array(chosen, pa.large_string()), Normalizer.L1).to_pylist()
    return [
        raw if keep else text
        for raw, text, keep in zip(chosen, plain, rng.random(len(chosen)) < RAW_SHARE, strict=True)
    ]


def _some(texts: set[str], count: int, rng: np.random.Generator) -> list[str]:
    ordered = sorted(texts)
    return [ordered[place] for place in rng.permutation(len(ordered))[:count]]


def sentence_vectors(encoder: SentenceNetwork, pieces: list[list[int]], *, begin: int, end: int) -> Vectors:
    rows = encoder.rows_of_pieces([(begin, *found, end) for found in pieces])
    normal: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normal


def fitted_vectors(pieces: list[list[int]], targets: Vectors, start: Vectors) -> Vectors:
    r"""Return one vector a piece so that their sum over the root of a text's length comes near its sentence vector.

    Minimises :math:`\|AT - Y\|^2 + \lambda\|T - T_0\|^2` over all pieces by conjugate gradients, one column each.
    """
    lengths = np.array([len(found) for found in pieces])
    rows = np.repeat(np.arange(len(pieces)), lengths)
    columns = np.concatenate([np.array(found) for found in pieces])
    design = sparse.csr_array((lengths[rows] ** -0.5, (rows, columns)), shape=(len(pieces), len(start)))
    across = design.T.tocsr()
    # The stubs do not know that a sparse matrix times a dense one is dense.
    residual: Vectors = np.asarray(across @ (targets - design @ start))
    found, direction = np.zeros_like(residual), residual.copy()
    square = (residual**2).sum(axis=0)
    for _ in range(STEPS):
        pushed: Vectors = np.asarray(across @ (design @ direction)) + RIDGE * direction
        step = square / np.maximum((direction * pushed).sum(axis=0), 1e-30)
        found += step * direction
        residual -= step * pushed
        fresh = (residual**2).sum(axis=0)
        direction = residual + fresh / np.maximum(square, 1e-30) * direction
        square = fresh
    return start + found


def distil(encoder: SentenceNetwork, pieces: list[str], wordnet: Path) -> dict[str, NDArray[np.generic]]:
    tokenizer, rng = uncased_tokenizer(pieces), np.random.default_rng(1)
    cut = [tokenizer.encode(text, add_special_tokens=False).ids for text in corpus(wordnet, rng)]
    texts = [found for found in cut if SHORTEST <= len(found) <= LONGEST]
    marks = {"begin": pieces.index(BEGIN), "end": pieces.index(END)}
    sentences = sentence_vectors(encoder, texts, **marks)
    alone = sentence_vectors(encoder, [[number] for number in range(len(pieces))], **marks)
    centre = sentences.mean(axis=0)
    # Pieces are numbered by falling frequency behind a thousand reserved ones: common words start small.
    rank = np.maximum(np.arange(len(pieces)) - 999, 0)
    frequency = np.where(rank > 0, 1 / (rank + 2.7), 0.0)
    smooth = 1e-3 / (1e-3 + frequency / max(float(frequency.sum()), 1e-3))
    vectors = fitted_vectors(texts, sentences - centre, (alone - centre) * smooth[:, None])
    return _table(vectors, texts, pieces)


def _table(vectors: Vectors, texts: list[list[int]], pieces: list[str]) -> dict[str, NDArray[np.generic]]:
    rows = np.array([vectors[found].sum(axis=0) for found in texts])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    directions = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :WIDTH]
    turned = vectors @ directions
    seen = rows @ directions
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    scales = (np.abs(turned).max(axis=1) / 127).astype(np.float32)
    whole = np.rint(turned / np.maximum(scales, 1e-30)[:, None]).astype(np.int8)
    return {
        "vectors": whole,
        "scales": scales,
        "mean": seen.mean(axis=0).astype(np.float32),
        "moments": (seen.T @ seen / len(seen)).astype(np.float32),
        "vocabulary": np.frombuffer("\n".join(pieces).encode(), dtype=np.uint8),
    }


def principal_directions(encoder: SentenceNetwork, pieces: list[str], wordnet: Path) -> dict[str, NDArray[np.generic]]:
    """Return the mean of the sentence vectors of a public corpus, and the directions in which they differ most."""
    tokenizer, rng = uncased_tokenizer(pieces), np.random.default_rng(1)
    texts = corpus(wordnet, rng)
    cut = [
        tokenizer.encode(texts[place], add_special_tokens=False).ids for place in rng.permutation(len(texts))[:TEXTS]
    ]
    chosen = [found for found in cut if SHORTEST <= len(found) <= LONGEST]
    return _directions_of(sentence_vectors(encoder, chosen, begin=pieces.index(BEGIN), end=pieces.index(END)))


def multilingual_directions(wordnet: Path) -> dict[str, NDArray[np.generic]]:
    """Return the same of the encoder of many languages, for English texts."""
    rng = np.random.default_rng(1)
    texts = corpus(wordnet, rng)
    return _directions_of(multilingual_network().rows([texts[place] for place in rng.permutation(len(texts))[:TEXTS]]))


def _directions_of(rows: Vectors) -> dict[str, NDArray[np.generic]]:
    centre = rows.mean(axis=0)
    directions = np.linalg.eigh((rows - centre).T @ (rows - centre))[1][:, ::-1][:, :WIDTH]
    return {"mean": centre.astype(np.float32), "directions": directions.astype(np.float32)}


def span_whitening(wordnet: Path) -> dict[str, NDArray[np.generic]]:
    """Return the mean of the word vectors of a public corpus, and directions in which they differ, half whitened."""
    counts = Counter(
        text[start:end] for text in corpus(wordnet, np.random.default_rng(1)) for start, end in tokens(text)
    )
    table, words = read_table("minilm-static"), Words("L1")
    parts = [words.flat([word])[:-1] for word in counts]
    vectors = np.array([sum((table.vector(part, WIDTH) for part in found), np.zeros(WIDTH)) for found in parts])
    share = np.array(list(counts.values())) / counts.total()
    mean = share @ vectors
    moments, directions = np.linalg.eigh(((vectors - mean) * share[:, None]).T @ (vectors - mean))
    half = directions[:, ::-1] * moments[::-1] ** -0.25
    return {"mean": mean.astype(np.float32), "directions": half.astype(np.float32)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the table of the static encoder, or what goes with one.")
    for name in ("wordnet", "table"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--directions", action="store_true", help="of the encoder instead")
    parser.add_argument("--multilingual", action="store_true", help="directions of the encoder of many languages")
    parser.add_argument("--whitening", action="store_true", help="of the table's words for spans instead")
    given = parser.parse_args()
    if given.whitening or given.multilingual:
        found = (span_whitening if given.whitening else multilingual_directions)(given.wordnet)
        np.savez_compressed(given.table, **found)  # type: ignore[arg-type]
        return
    made = principal_directions if given.directions else distil
    np.savez_compressed(given.table, **made(network(), vocabulary().decode().split("\n"), given.wordnet))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
