"""A receiver of webhooks on this machine, with a certificate of its own: it answers as told, drips, or is silent."""

import contextlib
import datetime
import ipaddress
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DRIPS, SILENT = "/drips", "/silent"


class Receiver(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, certificate: Path, context: ssl.SSLContext) -> None:
        self.certificate = certificate
        self.statuses: list[int] = []
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.paths: list[str] = []
        self.location = "https://127.0.0.1/elsewhere"
        self.drips = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.taken.append((dict(self.headers), body))
                receiver.paths.append(self.path)
                if self.path == SILENT:
                    time.sleep(60)
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
                self.send_header("Location", receiver.location)
                self.end_headers()
                with contextlib.suppress(OSError):
                    for _ in range(40 if receiver.drips or self.path == DRIPS else 0):
                        self.wfile.write(b".")
                        time.sleep(0.25)

            def log_message(self, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a sender that went away."""


@contextlib.contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    with Receiver(folder / "certificate.pem", context) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        yield server
        server.shutdown()
        serving.join()
