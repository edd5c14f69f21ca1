"""How a broker is reached over TLS: its certificate is checked, and that it is for the host in the address."""

import ssl
from typing import Any
from urllib.parse import urlsplit


def broker_tls(url: str, ca_file: str = "") -> dict[str, Any]:
    """Return Celery's `broker_use_ssl`; empty for an address without TLS.

    By themselves the clients take any certificate that a known authority signed, whomever it is for, or ask for none.
    """
    address = urlsplit(url)
    if address.scheme == "amqps":
        # None stands for the host in the address; but kombu makes a number of this name, which no certificate is for.
        name = "localhost" if address.hostname == "localhost" else None
        return {"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": ca_file or None, "server_hostname": name}
    if address.scheme == "rediss":
        return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": ca_file or None, "ssl_check_hostname": True}
    return {}
