"""Refusals of studies."""

from annotation.errors import Unprocessable


class StudyRefused(Unprocessable):
    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field
