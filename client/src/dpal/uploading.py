"""Files sent as they are read, so that their size does not matter here."""

import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from dpal.errors import DpalError
from dpal.site import Site


class Form:
    """A multipart form with its files at the end, read in blocks as it is sent."""

    def __init__(self, fields: Mapping[str, str], files: Mapping[str, Path], sent: Callable[[int], None]) -> None:
        self._mark = uuid.uuid4().hex
        self._sent = sent
        self._open = ExitStack()
        self._files: list[BinaryIO] = []
        self._parts: list[bytes | BinaryIO] = [
            f'--{self._mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        ]
        with ExitStack() as opened:
            for field, path in files.items():
                self._files.append(opened.enter_context(path.open("rb")))
                self._parts += [self._head_of(field, path.name), self._files[-1], b"\r\n"]
            self._open = opened.pop_all()
        self._parts.append(f"--{self._mark}--\r\n".encode())
        self._size = sum(len(part) for part in self._parts if isinstance(part, bytes))
        self._size += sum(path.stat().st_size for path in files.values())
        self.seek(0)

    def _head_of(self, field: str, name: str) -> bytes:
        # What would end the quoted name or its line, as HTML's forms write it.
        name = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        return (
            f'--{self._mark}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()

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
        self._left = list(self._parts)
        for file in self._files:
            self._sent(-file.tell())
            file.seek(place)

    def read(self, size: int = -1) -> bytes:
        while self._left:
            part = self._left[0]
            if isinstance(part, bytes):
                return self._left.pop(0)  # type: ignore[return-value]  # the part that was looked at
            if block := part.read(size):
                self._sent(len(block))
                return block
            self._left.pop(0)
        return b""

    def close(self) -> None:
        self._open.close()


def upload(
    site: Site, path: str, files: Mapping[str, Path], fields: Mapping[str, str], sent: Callable[[int], None]
) -> Any:
    try:
        form = Form(fields, files, sent)
    except OSError as error:
        raise DpalError(f"{error.filename} cannot be read: {error.strerror}.") from error
    try:
        return site.request("POST", path, headers={"Content-Type": form.content_type}, data=form)
    finally:
        form.close()
