# One image for every process of the site; docker-compose.yml starts it with different commands.
FROM python:3.11.17-slim-bookworm@sha256:2333bd330d12de02514770b3585cad313644316047cdee24a7acfdece6de6efb AS libraries
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# Set, the image has Java and the extra `spark` as well, 650 MB.
ARG SPARK=
# Set, it has the extra `multilingual`, 33 MB.
ARG MULTILINGUAL=
WORKDIR /build
COPY requirements.runtime.lock.txt requirements.spark.lock.txt requirements.multilingual.lock.txt ./
RUN python -m venv /opt/dpal \
    && /opt/dpal/bin/pip install --quiet --require-hashes --requirement requirements.runtime.lock.txt \
        ${SPARK:+--requirement requirements.spark.lock.txt} \
        ${MULTILINGUAL:+--requirement requirements.multilingual.lock.txt} \
    && /opt/dpal/bin/pip uninstall --quiet --yes pip setuptools \
    && find /opt/dpal -type d \( -name tests -o -name test \) -prune -exec rm -rf {} +

FROM python:3.11.17-slim-bookworm@sha256:2333bd330d12de02514770b3585cad313644316047cdee24a7acfdece6de6efb AS site
ENV PATH=/opt/dpal/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DPAL_VAR=/var/lib/dpal DPAL_STATIC=/srv/dpal/static LOG_FORMAT=json PYTHONPATH=/srv/dpal/client/src
ARG SPARK=
# Debian keeps no Java but the newest, so no version of it can be asked for.
# hadolint ignore=DL3008
RUN if [ -n "$SPARK" ]; then \
        mkdir -p /usr/share/man/man1 \
        && apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
        && rm -rf /var/lib/apt/lists/*; \
    fi
RUN groupadd --system --gid 10001 dpal \
    && useradd --system --uid 10001 --gid dpal --home-dir /var/lib/dpal --shell /usr/sbin/nologin dpal \
    && install -d -o dpal -g dpal -m 0700 /var/lib/dpal /var/lib/dpal-counter
WORKDIR /srv/dpal
COPY --from=libraries /opt/dpal /opt/dpal
COPY manage.py pyproject.toml ./
COPY dpal_site ./dpal_site
COPY addons ./addons
COPY learner ./learner
COPY annotation ./annotation
COPY privacy ./privacy
COPY client ./client
COPY locale ./locale
# No server and no secret is needed to collect static files; what stands here is forgotten with the layer's command.
RUN DPAL_NO_SERVERS=1 DPAL_VAR=/tmp/collect python manage.py collectstatic --no-input --verbosity 0 \
    && rm -rf /tmp/collect
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-m", "dpal_site.operations.healthcheck", "web"]
CMD ["python", "-m", "dpal_site.server", "--bind", "0.0.0.0:8000"]
