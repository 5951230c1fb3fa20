# The gateway as an image: built in one stage, run in another, as a user without rights.
# A release names it by digest: docker build --build-arg BASE=python:3.12-slim@sha256:…
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
# image: what the gateway needs, the facilitator's settler, and uvicorn (GATEWAY_SERVER=uvicorn).
# image-ocr: reading scans as well.
ARG LOCK=image
WORKDIR /src
COPY deploy/image-build.txt deploy/${LOCK}.txt deploy/
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes --no-deps -r deploy/${LOCK}.txt \
    && pip install --no-cache-dir --require-hashes --no-deps -r deploy/image-build.txt
COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY providers providers
COPY plugins plugins
COPY static static
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /venv/bin/pip install --no-cache-dir --no-index --no-deps /wheels/*.whl
# Bytecode is compiled here: without it every start would take a second longer.
RUN /venv/bin/python -m compileall -q /venv/lib

FROM ${BASE}
RUN useradd --system --uid 10001 --home-dir /data gateway \
    && install --directory --owner gateway --group gateway /data
COPY --from=build /venv /venv
COPY --chmod=755 deploy/entrypoint.sh /usr/local/bin/entrypoint
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_ARENA_MAX=2 \
    GATEWAY_BIND=0.0.0.0:8080 \
    GATEWAY_DATA_DIR=/data
WORKDIR /data
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["entrypoint"]
CMD ["gateway", "serve"]
