"""The docling-serve that its adapter is tested against, complete except for the models.

Its HTTP layer, policy, queue, workers, export and docling's judgement of a file are real. Every
package that reads documents or images has a stand-in; a file's text is its Markdown, and a few
prefixes make its conversion fail (`ENDS`).
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import socket
import sys
from unittest.mock import MagicMock

_ITS_PACKAGES = {"docling", "docling_core", "docling_jobkit", "docling_serve"}
# Prefixes of a file that no reader opens, and of one that fails in the pipeline.
BROKEN, CRASH = b"broken", b"crash"


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds docling's imports that are not installed: torch, numpy, readers of files."""

    def __init__(self):
        self.packages = set()

    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package not in self.packages:
            if package in _ITS_PACKAGES or _importer() not in _ITS_PACKAGES:
                return None
            self.packages.add(package)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return MagicMock(
            name=spec.name, __path__=[], __spec__=spec, __name__=spec.name, __version__="0"
        )

    def exec_module(self, module):
        pass


def _importer():
    """Package of the importing module."""
    frame = sys._getframe(2)
    while "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame.f_globals.get("__name__", "").partition(".")[0]


def _name_versions():
    """Let the server name versions for packages that are not installed."""
    of = importlib.metadata.version

    def version(name):
        try:
            return of(name)
        except importlib.metadata.PackageNotFoundError:
            return "0"

    importlib.metadata.version = version


def _converter():
    """Docling's own converter, with one reader for all kinds of files."""
    from docling.backend.abstract_backend import DeclarativeDocumentBackend
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter, FormatOption
    from docling.exceptions import DocumentLoadError
    from docling.pipeline.simple_pipeline import SimplePipeline
    from docling_core.types.doc import DocItemLabel, DoclingDocument

    class Reader(DeclarativeDocumentBackend):
        def __init__(self, in_doc, path_or_stream, options=None):
            super().__init__(in_doc, path_or_stream, options)
            self.data = path_or_stream.getvalue()
            if self.data.startswith(BROKEN):
                raise DocumentLoadError("No reader can open it.")

        def is_valid(self):
            return True

        @classmethod
        def supports_pagination(cls):
            return False

        @classmethod
        def supported_formats(cls):
            return set(InputFormat)

        def convert(self):
            if self.data.startswith(CRASH):
                raise RuntimeError("The pipeline failed.")
            read = DoclingDocument(name="document")
            read.add_text(label=DocItemLabel.TEXT, text=self.data.decode())
            return read

    option = FormatOption(pipeline_cls=SimplePipeline, backend=Reader)
    return DocumentConverter(format_options=dict.fromkeys(InputFormat, option))


def main():
    """Serve on a free port, which is on the first line of the output."""
    sys.meta_path.append(StandIns())
    _name_versions()
    os.environ.update(
        DOCLING_SERVE_ENABLE_UI="false",
        DOCLING_SERVE_LOAD_MODELS_AT_BOOT="false",
        DOCLING_SERVE_OTEL_ENABLE_METRICS="false",
        DOCLING_SERVE_OTEL_ENABLE_TRACES="false",
        DOCLING_SERVE_OTEL_ENABLE_PROMETHEUS="false",
    )
    import uvicorn
    from docling_jobkit.convert.manager import DoclingConverterManager
    from docling_serve.app import create_app

    converter = _converter()
    DoclingConverterManager.get_converter = lambda self, options: converter
    DoclingConverterManager.get_pdf_pipeline_opts = lambda self, options: None
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(create_app(), log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
