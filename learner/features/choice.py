"""Base class of featuriser choices."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from annotation.choices.rules import FoundInPool
from learner.features.base import Featurizer
from privacy.accounting.event import Event
from privacy.choices import Choice, Kind, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _

# Part of the published featuriser, like the number of columns; nothing about it depends on data.
PROJECTION_SEED: Final = 0
READS_TEXTS_ALONE: Final = _("Sentence encoders read texts only.")


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Declared facts about a project's records; all public.

    `dimension` is the wished length of a vector, `normalizer` the rule by which texts that look alike count as one;
    `columns` are those of a table, height and width the pixels of an image.
    """

    data_kind: str
    dimension: int
    normalizer: str = "L1"
    columns: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    image_height: int = 1
    image_width: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a featuriser's one look at the pool, before any other use is made of its records.

    The pool is charged `event`, with a `purpose` for the statement; `no_pool` is said while there is none. `release`
    takes the pool's records, in batches as a featuriser takes them, and the source of noise. It returns what was found,
    as plain JSON values: the output of the event's mechanism, and public from then on.
    """

    event: Event
    purpose: str
    no_pool: str
    release: Callable[[Iterable[Any], RandomSource], list[Any]]


@dataclass(frozen=True)
class FeaturesChoice(Choice):
    kind: ClassVar[Kind] = Kind.FEATURES

    feature_dimension: int = parameter(
        64,
        at_least=2,
        at_most=4096,
        data_kinds=("text", "image"),
        label=_("Feature dimension"),
        help=_("Fewer mean less noise; more separate classes better."),
    )

    @abstractmethod
    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return the featuriser, fixed by the configuration alone; of what is to be found, at least its width."""

    def event(self, *, shape: RecordShape | None = None, **circumstances: Any) -> Event | None:
        if not isinstance(self, FoundInPool):
            return None
        finding: Finding = self.finding(shape)
        return finding.event
