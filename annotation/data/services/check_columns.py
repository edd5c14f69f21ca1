"""Check of the owner's columns, which must not tell hidden checks from questions of the pool."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.models import Dataset, DatasetRole, DatasetState, Project
from annotation.models.quality import GoldQuery, GoldSource
from privacy.wording import Message, as_message


@dataclass(frozen=True, slots=True)
class Beside:
    """Columns of the owner's that an upload keeps for people: whether an id, and which others, in their order."""

    has_id: bool = False
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Self:
        return cls("id" in mapping, tuple(mapping.get("metadata", ())))

    def difference_from(self, pool: Self) -> Message | None:
        if pool.has_id and not self.has_id:
            return as_message("it lacks the id that the pool's records have")
        if lacking := [name for name in pool.columns if name not in self.columns]:
            return as_message("it lacks the column {column!r} of the pool", column=lacking[0])
        if self.has_id and not pool.has_id:
            return as_message("it has an id, and the pool's records have none")
        if further := [name for name in self.columns if name not in pool.columns]:
            return as_message("it has the column {column!r}, which the pool does not have", column=further[0])
        if self.columns != pool.columns:
            return as_message(
                "its columns must stand in the order of the pool's: {columns}", columns=", ".join(pool.columns)
            )
        return None


def refuse_telling_checks(*, project: Project, dataset: Dataset) -> None:
    """Refuse to make checks of a file that keeps other columns than each upload to the pool; a stream has none."""
    pools = [Beside.of(mapping) for mapping in _pools(project)]
    if (reason := _difference(Beside.of(dataset.mapping), pools)) is not None:
        raise InvalidConfiguration(
            as_message(
                "Annotators could recognise checks from this file: {reason}. Upload it with the same id and "
                "columns as the pool.",
                reason=reason,
            )
        )


def refuse_telling_pool(*, project: Project, mapping: Mapping[str, Any]) -> None:
    checks = GoldQuery.objects.filter(query__project=project, source=GoldSource.PUBLIC, retired_at=None)
    files = Dataset.objects.filter(pk__in=checks.exclude(query__record=None).values("query__record__dataset"))
    pools = [Beside.of(mapping), *(Beside.of(one) for one in _pools(project))]
    for used in files.order_by("pk").values_list("mapping", flat=True):
        if (reason := _difference(Beside.of(used), pools)) is not None:
            raise InvalidUpload(
                as_message(
                    "metadata: annotators could recognise hidden checks: {reason}. Give both files the same "
                    "columns, or retire these checks first",
                    reason=reason,
                )
            )


def _pools(project: Project) -> Iterable[dict[str, Any]]:
    uploads = Dataset.objects.filter(project=project, role=DatasetRole.POOL).exclude(state=DatasetState.REFUSED)
    return uploads.order_by("-pk").values_list("mapping", flat=True)


def _difference(checks: Beside, pools: list[Beside]) -> Message | None:
    if not pools or checks in pools:
        return None
    return checks.difference_from(pools[0])
