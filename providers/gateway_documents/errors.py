"""What may go wrong with a document, on either side of the process border."""


class Unreadable(ValueError):
    """The file cannot be parsed, however often it is tried; the message is for its owner."""


class ParserLost(RuntimeError):
    """The parsing process ended for a reason that is not the document's: worth another try."""
