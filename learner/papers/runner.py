"""Run the experiments of a paper: in processes, with progress, and from where an earlier run stopped."""

import importlib.metadata
import json
import multiprocessing
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from threadpoolctl import threadpool_limits

from learner.papers.catalogue import PAPERS, find_experiment, load_paper
from learner.papers.experiment import Data, Experiment, Json, Paper
from learner.papers.pages import write_index, write_page

LIBRARIES = ("numpy", "scipy", "scikit-learn")
# Parts of unfinished experiments; a dot keeps them out of the listing.
PARTS = ".parts"
# From so many seeds on, each half of them is judged alone too: a verdict that a half contradicts was noise.
SEEDS_TO_HALVE = 20
Say = Callable[[str], None]
Chunk = tuple[Experiment, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Reproduction:
    output: Path
    data: Data
    small: bool
    processes: int
    say: Say

    def reproduce(self, names: Iterable[str]) -> None:
        for name in names:
            self._reproduce_paper(load_paper(name, small=self.small))
        papers = [load_paper(name, small=self.small) for name in PAPERS if (self.output / name).is_dir()]
        write_index([(paper, self._kept_results(paper)) for paper in papers], self.output)

    def _reproduce_paper(self, paper: Paper) -> None:
        (self.output / paper.name).mkdir(parents=True, exist_ok=True)
        waiting: list[tuple[Experiment, int]] = []
        for experiment in paper.experiments:
            if (kept := self._kept(paper, experiment)) is not None:
                self._judge(paper, experiment, kept)
                self.say(f"{paper.name} {experiment.name}: kept from an earlier run")
            elif experiment.needs_data and self.data.folder is None:
                self.say(f"{paper.name} {experiment.name}: left out, it needs a data folder")
            else:
                waiting += [(experiment, seed) for seed in experiment.seeds]
        missing = [
            (experiment, seed) for experiment, seed in waiting if not self._part(paper, experiment, seed).exists()
        ]
        if len(missing) < len(waiting):
            self.say(f"{paper.name}: {len(waiting) - len(missing)} of {len(waiting)} chunks kept from an earlier run")
        self._run_chunks(paper, seeds_together(missing))
        for experiment in {entry.name: entry for entry, _ in waiting}.values():
            self._finish(paper, experiment)
        self.say(f"{paper.name}: wrote {write_page(paper, self._kept_results(paper), self.output).name}")

    def _run_chunks(self, paper: Paper, chunks: list[Chunk]) -> None:
        started = time.monotonic()
        for done, (experiment, seeds, parts) in enumerate(self._computed(paper, chunks), start=1):
            for seed, part in zip(seeds, parts, strict=True):
                _write_json(self._part(paper, experiment, seed), part)
            spent = time.monotonic() - started
            left = spent / done * (len(chunks) - done)
            self.say(
                f"{paper.name} {experiment.name}, seed {', '.join(map(str, seeds))}: "
                f"{sum(part['seconds'] for part in parts):.1f} s; chunk {done} of {len(chunks)}, "
                f"{spent:.0f} s gone, about {left:.0f} s left"
            )

    def _computed(self, paper: Paper, chunks: list[Chunk]) -> Iterator[tuple[Experiment, tuple[int, ...], list[Json]]]:
        if self.processes == 1 or len(chunks) < 2:
            for experiment, seeds in chunks:
                yield experiment, seeds, run_chunk(paper.name, experiment.name, seeds, self.data, small=self.small)
            return
        # A forked child would inherit the threads' locks of the numerical libraries.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(self.processes, len(chunks)), mp_context=context) as pool:
            pending: dict[Future[list[Json]], Chunk] = {
                pool.submit(run_chunk, paper.name, experiment.name, seeds, self.data, small=self.small): (
                    experiment,
                    seeds,
                )
                for experiment, seeds in chunks
            }
            with _cancelling(pool):
                for future in as_completed(pending):
                    yield *pending[future], future.result()

    def _finish(self, paper: Paper, experiment: Experiment) -> None:
        paths = [self._part(paper, experiment, seed) for seed in experiment.seeds]
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
        # Claims and pages see what a later reader of the file sees, the order of its keys included.
        found = [part["result"] for part in parts]
        middle = len(found) // 2
        result, *halves = (
            json.loads(json.dumps(experiment.combine(some), sort_keys=True))
            for some in ([found, found[:middle], found[middle:]] if len(found) >= SEEDS_TO_HALVE else [found])
        )
        kept = {
            "paper": paper.name,
            "experiment": experiment.name,
            "title": experiment.title,
            "version": experiment.version,
            "settings": experiment.settings,
            "settings_digest": experiment.digest,
            "seeds": list(experiment.seeds),
            "runs": experiment.runs,
            "date": datetime.now(UTC).date().isoformat(),
            "seconds": round(sum(part["seconds"] for part in parts), 1),
            "versions": {"python": platform.python_version()}
            | {name: importlib.metadata.version(name) for name in LIBRARIES},
            "result": result,
        } | ({"halves": halves} if halves else {})
        self._judge(paper, experiment, kept)
        for path in paths:
            path.unlink()

    def _judge(self, paper: Paper, experiment: Experiment, kept: Json) -> None:
        answers = {"claims": experiment.answers(kept), "costs": experiment.costs(kept["result"])}
        if answers != {name: kept.get(name) for name in answers}:
            _write_json(self._result(paper, experiment), kept | answers)

    def _kept(self, paper: Paper, experiment: Experiment) -> Json | None:
        path = self._result(paper, experiment)
        if not path.exists():
            return None
        kept: Json = json.loads(path.read_text(encoding="utf-8"))
        return kept if kept.get("settings_digest") == experiment.digest else None

    def _kept_results(self, paper: Paper) -> dict[str, Json]:
        found = {experiment.name: self._kept(paper, experiment) for experiment in paper.experiments}
        return {name: kept for name, kept in found.items() if kept is not None}

    def _result(self, paper: Paper, experiment: Experiment) -> Path:
        return self.output / paper.name / f"{experiment.name}.json"

    def _part(self, paper: Paper, experiment: Experiment, seed: int) -> Path:
        return self.output / PARTS / paper.name / f"{experiment.name}-{experiment.digest}-{seed}.json"


def seeds_together(missing: Sequence[tuple[Experiment, int]]) -> list[Chunk]:
    seeds: dict[str, list[int]] = {}
    for experiment, seed in missing:
        seeds.setdefault(experiment.name, []).append(seed)
    return [
        (experiment, tuple(seeds[name][start : start + experiment.together]))
        for name, experiment in {experiment.name: experiment for experiment, _ in missing}.items()
        for start in range(0, len(seeds[name]), experiment.together)
    ]


def run_chunk(paper: str, experiment: str, seeds: Sequence[int], data: Data, *, small: bool) -> list[Json]:
    started = time.process_time()
    with threadpool_limits(limits=1, user_api="blas"):
        results = find_experiment(paper, experiment, small=small).run_together(seeds, data)
    return [{"result": result, "seconds": (time.process_time() - started) / len(results)} for result in results]


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _cancelling(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Drop what has not started when something goes wrong, so that an interruption ends soon."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _write_json(path: Path, content: Json) -> None:
    """Write a file that is either whole or not there, with short rows on one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    # No string holds a bare line break, so this moves nothing but the innermost lists onto one line each.
    text = re.sub(r"\[\n\s*([^\[\]{}]*?)\n\s*\]", lambda row: "[" + re.sub(r"\n\s*", " ", row.group(1)) + "]", text)
    scratch.write_text(text + "\n", encoding="utf-8")
    scratch.replace(path)
