"""What was wrong with the rows of a file: all counted, the first ones kept."""

from dataclasses import dataclass, field

from annotation.data.readers.rows import BadRow
from privacy.wording import as_plural_message

BAD_ROWS_KEPT = 1000


@dataclass(slots=True)
class BadRowReport:
    """All bad rows counted, the first ones kept."""

    count: int = 0
    kept: list[BadRow] = field(default_factory=list)

    def add(self, rows: list[BadRow], *, count: int | None = None) -> None:
        """Count the bad rows of one batch, or of one part, of which only the first ones were kept."""
        self.count += len(rows) if count is None else count
        self.kept += rows[: BAD_ROWS_KEPT - len(self.kept)]

    def sentence(self) -> str:
        """Say how many there are and where the first one is."""
        first = self.kept[0]
        at = {"n": self.count, "line": first.line, "column": first.column, "reason": first.reason}
        if first.column:
            return as_plural_message(
                "{n} bad row; it is line {line}, column {column}: {reason}",
                "{n:,} bad rows; the first is line {line}, column {column}: {reason}",
                **at,
            )
        return as_plural_message(
            "{n} bad row; it is line {line}: {reason}", "{n:,} bad rows; the first is line {line}: {reason}", **at
        )
