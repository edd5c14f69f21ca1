import datetime
import socket
import ssl
import threading
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kombu import Connection

from dpal_site.environment import broker_tls

HERE = x509.IPAddress(ip_address("127.0.0.1"))
BY_NAME = x509.DNSName("localhost")
ELSEWHERE = x509.DNSName("elsewhere.example.org")


def certificate(folder, alternative):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a broker")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "broker.pem"
    words = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(*words))
    return path


@pytest.mark.parametrize("scheme", ["rediss", "amqps"])
@pytest.mark.parametrize(
    ("alternative", "known", "trusted"),
    [(HERE, True, True), (BY_NAME, True, True), (ELSEWHERE, True, False), (HERE, False, False)],
)
def test_the_certificate_and_its_host_are_checked(tmp_path, scheme, alternative, known, trusted):
    path = certificate(tmp_path, alternative)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    heard = []

    def serve(listener):
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            plain.settimeout(60)
            try:
                with context.wrap_socket(plain, server_side=True) as spoken:
                    # A client that refuses says nothing more.
                    heard.append(bool(spoken.recv(1)))
            except OSError:
                heard.append(False)
                plain.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        url = f"{scheme}://{'localhost' if alternative is BY_NAME else '127.0.0.1'}:{listener.getsockname()[1]}/"
        tls = broker_tls(url, str(path) if known else "")
        # Nobody speaks the protocol here, so that every client gives up in the end.
        with Connection(url, ssl=tls, connect_timeout=30) as connection, pytest.raises(Exception):  # noqa: B017
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=120)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(120)
    assert set(heard) == {trusted}


def test_an_address_without_tls_needs_none():
    assert broker_tls("redis://127.0.0.1/0") == broker_tls("amqp://127.0.0.1//") == {}
