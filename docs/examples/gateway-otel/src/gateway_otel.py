"""Traces of the Generation Gateway by OpenTelemetry."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from gateway import hookimpl


@hookimpl
def register_spans(register: Callable[[object], None]) -> None:
    """Send spans to the collector; a thread of the SDK's does it, so no request waits."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("generation-gateway")

    @contextmanager
    def open_span(name: str, about: dict[str, str | int]) -> Iterator[None]:
        with tracer.start_as_current_span(name) as span:
            try:
                yield
            finally:
                # The status and the error's class are complete only now.
                for field, value in about.items():
                    span.set_attribute(f"gateway.{field}", value)
                if "error" in about:
                    span.set_status(trace.StatusCode.ERROR)

    register(open_span)
