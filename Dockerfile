# The gateway as an image: built in one stage, run in another, as a user without rights.
# A release names its base by digest: docker build --build-arg BASE=python:3.12-slim@sha256:…
# `make image-check` runs these steps without Docker; it knows the instructions that stand here.
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
# image: what the gateway needs, the facilitator's settler, and uvicorn (GATEWAY_SERVER=uvicorn).
# image-ocr: reading scans as well. image-demo: `gateway demo` as well.
ARG LOCK=image
WORKDIR /src
# Of binutils the build needs `strip`; the slim base has none.
RUN command -v strip || { apt-get update && apt-get install --yes --no-install-recommends binutils; }
COPY deploy/image-build.txt deploy/${LOCK}.txt deploy/prune.py deploy/
# Compile bytecode now: otherwise every start takes a second longer. It has no timestamp of its
# source, so that two builds are identical; -f also recompiles what pip itself has imported.
# A fixed time lets a release with the same list have the same layer.
RUN python -m venv --without-pip /venv \
    && pip --python /venv/bin/python install --no-cache-dir --no-compile --require-hashes --no-deps -r deploy/${LOCK}.txt \
    && /venv/bin/python deploy/prune.py \
    && PYTHONHASHSEED=0 /venv/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /venv/lib \
    && find /venv -exec touch --no-dereference --date=@1580601600 {} + \
    && pip install --no-cache-dir --no-compile --require-hashes --no-deps -r deploy/image-build.txt
# Seconds since 1970 that stand for the time of the build, in the wheel and in files without one.
ARG SOURCE_DATE_EPOCH=1580601600
COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY providers providers
COPY plugins plugins
COPY static static
# Apart from the packages, so that an upgrade of the gateway alone is a small layer.
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && pip --python /venv/bin/python install --no-cache-dir --no-compile --no-index --no-deps --no-warn-script-location --root /gateway /wheels/*.whl \
    && PYTHONHASHSEED=0 /venv/bin/python -m compileall -q -f -s /gateway -p / --invalidation-mode unchecked-hash /gateway/venv/lib

FROM ${BASE}
ARG SOURCE_DATE_EPOCH=1580601600
RUN useradd --system --key SYS_UID_MAX=10001 --uid 10001 --home-dir /data gateway \
    && install --directory --owner gateway --group gateway /data
COPY --from=build /venv /venv
COPY --from=build /gateway/venv /venv
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
