"""Start, stop and look at the embedded servers: `python -m dpal_site.embedded start|stop|status|url`."""

import argparse

from dpal_site.embedded import servers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dpal_site.embedded", description=__doc__)
    parser.add_argument("action", choices=["start", "stop", "status", "url"])
    action = parser.parse_args().action
    if action in {"start", "url"}:
        addresses = {
            "DATABASE_OWNER_URL": servers.owner_database_url(),
            "DATABASE_URL": servers.database_url(),
            "CELERY_BROKER_URL": servers.broker_url(),
        }
        if action == "url":
            print(*(f"{name}={address}" for name, address in addresses.items()), sep="\n")
            return
    for name, server in (("postgres", servers.postgres()), ("valkey", servers.valkey())):
        if action == "stop":
            server.stop()
        where = f" at 127.0.0.1:{server.port}, process {server.pid}" if server.status == "ready" else ""
        print(f"{name}: {server.status}{where}")


if __name__ == "__main__":
    main()
