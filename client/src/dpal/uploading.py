"""A file to a project, sent as it is read, so that its size does not matter here."""

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpal.errors import DpalError
from dpal.site import Site


class Form:
    """A multipart form with one file at its end, read in blocks by whoever sends it."""

    def __init__(self, fields: Mapping[str, str], file: Path, sent: Callable[[int], None]) -> None:
        self._mark = uuid.uuid4().hex
        head = "".join(
            f'--{self._mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        # What would end the quoted name or its line, as HTML's forms write it.
        name = file.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head += (
            f'--{self._mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        self._head, self._tail = head.encode(), f"\r\n--{self._mark}--\r\n".encode()
        self._file = file.open("rb")
        self._size = len(self._head) + file.stat().st_size + len(self._tail)
        self._sent = sent
        self.seek(0)

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self._mark}"

    def __len__(self) -> int:
        return self._size

    def tell(self) -> int:
        """Return the start, where a request that is sent again begins."""
        return 0

    def seek(self, place: int) -> None:
        """Go back to the start; there is no other `place`."""
        self._before, self._after = self._head, self._tail
        self._sent(-self._file.tell())
        self._file.seek(place)

    def read(self, size: int = -1) -> bytes:
        if self._before:
            block, self._before = self._before, b""
        elif block := self._file.read(size):
            self._sent(len(block))
        else:
            block, self._after = self._after, b""
        return block

    def close(self) -> None:
        self._file.close()


def upload(site: Site, path: str, file: Path, fields: Mapping[str, str], sent: Callable[[int], None]) -> Any:
    try:
        form = Form(fields, file, sent)
    except OSError as error:
        raise DpalError(f"{file} cannot be read: {error.strerror}.") from error
    try:
        return site.request("POST", path, headers={"Content-Type": form.content_type}, data=form)
    finally:
        form.close()
