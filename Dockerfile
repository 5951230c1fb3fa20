# The gateway as an image: built in one stage, run in another, as a user without rights.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY gateway gateway
COPY providers providers
COPY plugins plugins
COPY static static
# Bytecode is compiled here: without it every start would take a second longer.
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --constraint constraints.txt ".[facilitator]" \
    && /venv/bin/python -m compileall -q /venv/lib

FROM python:3.12-slim
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
