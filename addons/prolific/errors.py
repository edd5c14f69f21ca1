"""Refusals of studies."""

from annotation.errors import Unprocessable


class StudyRefused(Unprocessable):
    """A study on a crowd platform cannot be opened, moved, decided on or paid like this; `field` is what is wrong."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field
