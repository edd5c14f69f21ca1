"""TLS settings of the broker: certificate and host are checked."""

import ssl
from typing import Any
from urllib.parse import urlsplit


def broker_tls(url: str, ca_file: str = "") -> dict[str, Any]:
    """Return Celery's `broker_use_ssl`; empty for an address without TLS."""
    address = urlsplit(url)
    if address.scheme == "amqps":
        # None stands for the host in the address; but kombu makes a number of this name, which no certificate is for.
        name = "localhost" if address.hostname == "localhost" else None
        return {"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": ca_file or None, "server_hostname": name}
    if address.scheme == "rediss":
        return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": ca_file or None, "ssl_check_hostname": True}
    return {}
