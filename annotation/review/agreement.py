"""Agreement beyond chance, and models of annotators."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from annotation.choices.consensus import most_said
from annotation.choices.label_types.base import LabelType, NamesSeveral

AgreementMethod = Literal["majority", "dawid_skene", "mace"]
MACE_RESTARTS = 5
# The answer of a model is a function of the answers alone, so that a report can be made again.
MACE_SEED = 20_130_609


@dataclass(frozen=True, slots=True)
class Answer:
    task: int
    person: int
    choice: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a model over all answers.

    `opinions` has the class of each task with its probability, `skills` the share of each person's answers equal to the
    model's, `alpha` Krippendorff's alpha by the type of label: None where no task has two answers.
    """

    opinions: Mapping[int, tuple[int, float]]
    skills: Mapping[int, float]
    alpha: float | None


def compare_answers(answers: Sequence[Answer], *, method: AgreementMethod, kind: LabelType) -> Comparison:
    """Weigh answers against each other, at most one for each person and task.

    `majority` takes the most frequent answer (the smaller one at a tie), of sets class by class; `dawid_skene` (1979)
    and `mace` (Hovy et al., NAACL 2013) weigh one class against another.
    """
    if not answers:
        raise ValueError("answers must hold at least one answer, got none")
    by_task = _by_task(answers)
    if method == "majority":
        opinion = kind.opinion if isinstance(kind, NamesSeveral) else most_said
        opinions = {task: opinion(votes) for task, votes in by_task.items()}
    else:
        opinions = _modelled(answers, method)
    given: Counter[int] = Counter(answer.person for answer in answers)
    equal: Counter[int] = Counter(answer.person for answer in answers if opinions[answer.task][0] == answer.choice)
    skills = {person: equal[person] / number for person, number in given.items()}
    return Comparison(opinions=opinions, skills=skills, alpha=kind.coefficient.of(list(by_task.values())))


def _modelled(answers: Sequence[Answer], method: AgreementMethod) -> dict[int, tuple[int, float]]:
    from crowdkit.aggregation import MACE, DawidSkene  # noqa: PLC0415  # slow import

    mace = MACE(n_restarts=MACE_RESTARTS, random_state=MACE_SEED)
    model = DawidSkene(n_iter=100) if method == "dawid_skene" else mace
    with warnings.catch_warnings():
        # Rare classes leave empty cells, which the library divides by and mends; and it calls pandas by older names.
        warnings.simplefilter("ignore")
        probabilities = model.fit_predict_proba(_frame(answers))
    best, sure = probabilities.idxmax(axis=1), probabilities.max(axis=1)
    return {
        int(task): (int(choice), min(1.0, float(probability)))
        for task, choice, probability in zip(probabilities.index, best, sure, strict=True)
    }


def _by_task(answers: Sequence[Answer]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for answer in answers:
        found.setdefault(answer.task, []).append(answer.choice)
    return found


def _frame(answers: Sequence[Answer]) -> Any:
    import pandas as pd  # noqa: PLC0415  # slow import

    rows = [(answer.task, answer.person, answer.choice) for answer in answers]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])
