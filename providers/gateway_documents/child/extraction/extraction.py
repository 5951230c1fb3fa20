"""Extracts JSON from a document's Markdown by fixed rules, without an AI model."""

import json

import attrs

from gateway_documents.child.extraction.facts import find_facts
from gateway_documents.child.extraction.filling import Filler, words_of

_METHOD = "fixed rules, not an AI model"
# Shorter words, such as "is" and "to", are ignored.
_MIN_WORD_CHARS = 3


def extract(prompt: str, markdown: str) -> str:
    """Return JSON for a JSON Schema or for a question in words.

    For a schema, each property gets the value of a similar label, or null. For a question, returns
    all facts, starting with the values whose labels occur in the question.
    """
    facts = find_facts(markdown)
    if prompt.lstrip().startswith("{"):
        found = Filler(json.loads(prompt), facts).fill()
    else:
        asked = {word for word in words_of(prompt) if len(word) >= _MIN_WORD_CHARS}
        matches = {
            label: value
            for label, value in facts.values.items()
            if asked.intersection(words_of(label))
        }
        found = {"method": _METHOD, "matches": matches, **attrs.asdict(facts)}
    return json.dumps(found, ensure_ascii=False, indent=1)
