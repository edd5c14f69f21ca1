"""Entity F1 of simulated projects that mark spans, on public texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.data.readers.reading import Upload
from dpal.errors import Unreadable
from dpal.spans.features import SpanFeatures
from dpal.spans.formats import read_row, spans_in
from dpal.spans.model import SpanModel
from dpal.spans.scoring import counted, f1_of
from dpal.spans.text import Span
from learner.estimators.span_crf import PrivateSpanCrf
from learner.estimators.span_words import fit_public, span_version_zero
from learner.features.span_tables import span_features
from learner.linear_model import LinearModel
from learner.simulation.outcome import MeanAccuracy, Outcome, OutcomePoint, SimulatedAccount
from learner.simulation.reading import MAXIMUM_BYTES, FileColumns, read_descriptions
from learner.simulation.setup import Setup
from learner.simulation.task import held_out
from learner.simulation.trusted import TrustedSettings
from learner.strategies.blocks import draw_blocks
from privacy.accounting.events import SecretBlockEvent
from privacy.mechanisms.randomness import SimulationRandom

Places = NDArray[np.intp]
F1 = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PublicSpans:
    """Public texts with their spans, and the model of the words about types where somebody wrote examples."""

    texts: Sequence[str]
    spans: Sequence[tuple[Span, ...]]
    types: tuple[str, ...]
    version_0: LinearModel | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, places: Places) -> "PublicSpans":
        chosen = places.tolist()
        return replace(self, texts=[self.texts[at] for at in chosen], spans=[self.spans[at] for at in chosen])

    def f1_of(self, model: LinearModel) -> F1:
        """Return entity F1 of a model on these texts, and its mean over types."""
        found = SpanModel(self.types, model.coef, span_features()).predict(self.texts)
        named = [[Span(span.start, span.end, span.type) for span in spans] for spans in found]
        counts = counted(self.spans, named, self.types).sum(axis=0)
        by_type = [f1_of(*row) for row in counts.tolist() if any(row)]
        return f1_of(*counts.sum(axis=0).tolist()), float(np.mean(by_type or [0.0]))

    def learned(self, estimator: Any, before: LinearModel | None) -> LinearModel:
        estimator.set_params(types=self.types, features=span_features())
        if before is not None:
            estimator.set_params(before=before.coef)
        fitted: Any = estimator.fit(self.texts, self.spans)
        return self._model(fitted.coef_)

    def learned_openly(self) -> LinearModel:
        """Return the model of the same estimator without privacy."""
        prior = None if self.version_0 is None else self.version_0.coef
        return self._model(fit_public(self.texts, self.spans, self.types, span_features(), prior=prior))

    def _model(self, coef: NDArray[np.float64]) -> LinearModel:
        return LinearModel(coef, np.zeros(len(coef)), self.types, "spans")


def span_scores(
    setup: Setup, public: PublicSpans, values: Mapping[str, Any], *, seed: int, private: bool
) -> Iterator[tuple[int, float, float]]:
    """Yield the labels of each release and its entity F1 on a quarter of the texts; `values` are the settings."""
    rng = np.random.default_rng((20_261_121, seed))
    order = rng.permutation(len(public))
    held, rest = public.at(order[: len(order) // 4]), order[len(order) // 4 :]
    size, source = setup.simulated_records, SimulationRandom(rng)
    # A pool larger than the file is drawn with repetition; the texts that are measured on are not in it.
    pool = rest[:size] if size <= len(rest) else rng.choice(rest, size=size)
    if rates := setup.block_rates:
        drawn = draw_blocks(size, rates, source)
        blocks = [pool[drawn == block] for block in range(1, setup.releases + 1)]
        known = [np.concatenate(blocks[:end]) for end in range(1, len(blocks) + 1)]
    else:
        known = [pool[:count] for count in setup.label_counts if count <= size]
        blocks = []
    models: Iterator[LinearModel]
    if not private:
        models = (public.at(places).learned_openly() for places in known)
    elif blocks:
        models = _of_blocks(TrustedSettings(values, len(public.types), in_series=True), public, blocks, source)
    else:
        models = _of_rounds(setup, public, known, source)
    for places, model in zip(known, models, strict=True):
        yield (len(places), *held.f1_of(model))


def _of_blocks(
    settings: TrustedSettings, public: PublicSpans, blocks: Sequence[Places], source: SimulationRandom
) -> Iterator[LinearModel]:
    """Yield the release of each block, which goes on from the one before."""
    charge: SecretBlockEvent | None = None
    before = public.version_0
    for block, places in enumerate(blocks, start=1):
        estimator, charge = settings.of_block(
            charge, block=block, n_features=SpanFeatures.n_features, prior=before, random_state=source
        )
        before = public.at(places).learned(estimator, before)
        yield before


def _of_rounds(
    setup: Setup, public: PublicSpans, known: Sequence[Places], source: SimulationRandom
) -> Iterator[LinearModel]:
    """Yield releases that learn all labels so far from version 0, each picked against the one before."""
    before = public.version_0
    for places in known:
        estimator = PrivateSpanCrf(
            setup.training.epsilon,
            types=public.types,
            delta=setup.declared["training_delta"],
            prior=None if public.version_0 is None else public.version_0.coef,
            held_out_share=setup.declared.get("held_out_share", 0.0),
            random_state=source,
        )
        before = public.at(places).learned(estimator, before)
        yield before


def read_span_file(path: Path, columns: FileColumns) -> PublicSpans | None:
    """Return the texts of a file with their spans; None where its labels are no spans."""
    if path.suffix == ".npz":
        return None
    rows, layout = [], columns.layout()
    with path.open("rb") as file:
        for batch in Upload(file, path.name, layout, maximum_bytes=MAXIMUM_BYTES).cells():
            if batch.bad:
                return None
            for text, cell in zip(batch.columns[columns.text], batch.columns[columns.label], strict=True):
                try:
                    rows.append(read_row({"text": text, "spans": spans_in(cell)}))
                except (KeyError, TypeError, ValueError, Unreadable):
                    return None
    types = {span.type for row in rows for span in row.spans}
    return PublicSpans([row.text for row in rows], [row.spans for row in rows], tuple(sorted(types))) if types else None


def simulate_spans(
    public: PublicSpans,
    test: PublicSpans | None,
    *,
    describe: Path | None,
    settings: Mapping[str, str],
    label_counts: Sequence[int],
    seeds: int,
) -> Outcome:
    """Play a secret sample and one release that spends the whole limit for each number of labels.

    With a selection rate among the settings, play the series of secret blocks and a release of each.
    """
    if test is None:
        kept, out = held_out(len(public))
        public, test = public.at(kept), public.at(out)
    if unknown := sorted({span.type for spans in test.spans for span in spans} - set(public.types)):
        raise ValueError(f"types that only the test file has: {', '.join(unknown)}")
    words = {} if describe is None else read_descriptions(describe)
    coef = span_version_zero(public.types, words, span_features())
    zero = None if coef is None else LinearModel(coef, np.zeros(len(coef)), public.types, "spans")
    public, test = replace(public, version_0=zero), replace(test, types=public.types)
    trusted = TrustedSettings.of(settings, n_classes=len(public.types))
    trusted = replace(trusted, values={**trusted.values, "question_kind": "spans", "estimator": "span_crf"})
    points = []
    for labels in sorted(set(label_counts)):
        if not 0 < labels <= len(public):
            raise ValueError(f"labels must be within [1, {len(public)}], got {labels}")
        made: dict[str, list[F1]] = {"project": [], "random": [], "no_privacy": []}
        releases: list[list[F1]] = []
        for seed in range(seeds):
            rng, rate = SimulationRandom(1_000_003 * seed + labels), labels / len(public)
            if trusted.in_series:
                blocks = _drawn_blocks(trusted, len(public), labels, rng)
                secret = public.at(np.concatenate(blocks))
                releases.append([test.f1_of(model) for model in _of_blocks(trusted, public, blocks, rng)])
                made["project"].append(releases[-1][-1])
            else:
                secret = public.at(np.flatnonzero(rng.generator.random(len(public)) < rate))
                made["project"].append(test.f1_of(_at_once(trusted, secret, zero, rate, rng)))
            shown = public.at(rng.generator.permutation(len(public))[:labels])
            made["random"].append(test.f1_of(_at_once(trusted.one_of_several(), shown, zero, 1.0, rng)))
            made["no_privacy"].append(test.f1_of(secret.learned_openly()))
        project, random, clear = map(_mean, made.values())
        nothing = MeanAccuracy(0.0, 0.0, 0.0)
        first = nothing if zero is None else _mean([test.f1_of(zero)])
        each = tuple(map(_mean, zip(*releases, strict=True))) if len(trusted.rates) > 1 else ()
        points.append(OutcomePoint(labels, project, random, first, clear, nothing, each))
    note = "Entity F1 in place of accuracy; always one answer finds no span. No privacy is the same estimator."
    return Outcome((SimulatedAccount("pool", "record", *trusted.limit),), tuple(points), (note,))


def _drawn_blocks(settings: TrustedSettings, rows: int, labels: int, rng: SimulationRandom) -> list[Places]:
    """Return the texts of each block of a pool that gives so many labels on average."""
    size = round(labels / sum(settings.rates))
    if size > rows:
        raise ValueError(f"blocks with {labels} labels need a pool of {size} records, got {rows}")
    pool = rng.generator.permutation(rows)[:size]
    drawn = draw_blocks(size, settings.blocks.block_rates, rng)
    return [pool[drawn == block] for block in range(1, len(settings.rates) + 1)]


def _at_once(
    settings: TrustedSettings, chosen: PublicSpans, prior: LinearModel | None, rate: float, rng: SimulationRandom
) -> LinearModel:
    """Return the one release that spends the whole limit."""
    estimator = settings.training(rate, prior=prior, rng=rng)
    settings.event(estimator, rate=rate, n_features=SpanFeatures.n_features)
    return chosen.learned(estimator, prior)


def _mean(found: Sequence[F1]) -> MeanAccuracy:
    micro, macro = np.array(found).T
    error = float(micro.std(ddof=1) / np.sqrt(len(micro))) if len(micro) > 1 else 0.0
    return MeanAccuracy(float(micro.mean()), error, float(macro.mean()))
