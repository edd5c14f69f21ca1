"""Sending a webhook's message: to an address that was checked, whose answer nobody reads."""

import http.client
import socket
import ssl

from annotation.outgoing import Target

TIMEOUT_SECONDS = 5.0


class PinnedConnection(http.client.HTTPSConnection):
    """HTTPS to an address that was checked, with the certificate of the name it was resolved from."""

    def __init__(self, target: Target, address: str, context: ssl.SSLContext) -> None:
        super().__init__(target.host, target.port, timeout=TIMEOUT_SECONDS, context=context)
        self.address = address
        self.tls = context

    def connect(self) -> None:
        """Connect to the pinned address; the name is not looked up again."""
        plain = socket.create_connection((self.address, self.port), timeout=TIMEOUT_SECONDS)
        try:
            self.sock = self.tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def post(target: Target, *, address: str, body: bytes, headers: dict[str, str], ca_file: str = "") -> int:
    """Send a message and return the status of the answer, whose content nobody reads; redirects are not followed.

    Raises
    ------
    OSError, http.client.HTTPException
        If nobody answers as a web server with the right certificate does.
    """
    context = ssl.create_default_context(cafile=ca_file or None)
    connection = PinnedConnection(target, address, context)
    try:
        connection.request("POST", target.path, body=body, headers={"Content-Type": "application/json", **headers})
        return connection.getresponse().status
    finally:
        connection.close()
