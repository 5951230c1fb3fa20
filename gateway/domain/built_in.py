"""The declarations of the core's four capabilities."""

from gateway.domain.acceptance import accept_data, accept_pictures, accept_text
from gateway.domain.capabilities import (
    DOCUMENT_EXTRACTION,
    DOCUMENT_FORMATS,
    DOCUMENT_PARSING,
    IMAGE_EDITING,
    OUTPUT_FORMATS,
    TEXT_TO_IMAGE,
    Capability,
    Prompt,
    declare,
)
from gateway.domain.extraction import MAX_SCHEMA_DEPTH, read_schema
from gateway.domain.kinds import DATA, DOCUMENT_FILE, PICTURE_FILE, PICTURES, TEXT

# Every `output_format` of these capabilities.
KNOWN_FORMATS: tuple[str, ...] = (*OUTPUT_FORMATS, *DOCUMENT_FORMATS)
_SCHEMA = (
    '{"type":"object","properties":{"title":{"type":"string"},"period":{"type":"string"},'
    '"revenue":{"type":"array","items":{"type":"object","properties":'
    '{"region":{"type":"string"},"dollars":{"type":"number"}}}}}}'
)
_DATE_AND_TOTAL = (
    '{"type":"object","properties":{"date":{"type":"string"},"total":{"type":"number"}}}'
)

declare(
    Capability(
        name=TEXT_TO_IMAGE,
        title="Picture",
        heading="Pictures",
        about="A picture of the prompt's subject.",
        result="Pictures as `outputs`, of the ordered ratio and pixels; the gateway checks them "
        "and converts them to the format that the buyer chose.",
        prompt=Prompt(
            about="What to show in the picture.",
            ideas=(
                "a lighthouse above a stormy sea at night",
                "a mountain lake in the evening, one small boat",
                "a city at dawn, seen from the hills",
            ),
            # Harmless for every vendor's filter, and different enough to fill a page.
            examples=(
                "a lighthouse above a stormy sea at night",
                "a red fox in fresh snow, early morning light",
                "a greenhouse full of ferns, sunlight through old glass",
                "an empty tram on a steep street in the rain, evening",
                "ripe apricots on a blue table, still life in oil",
                "a mountain lake in the evening, one small boat",
                "a paper boat on a puddle after the rain, close-up",
                "a city at dawn, seen from the hills",
            ),
        ),
        results=(PICTURES,),
        accept=accept_pictures,
        is_strict=False,
    )
)
declare(
    Capability(
        name=IMAGE_EDITING,
        title="Edited picture",
        heading="Edits of your pictures",
        about="The buyer's picture, changed as the prompt says.",
        result="As for `text-to-image`.",
        prompt=Prompt(
            about="What to change in the picture.",
            example="make it winter, with falling snow",
            ideas=(
                "make it winter, with falling snow",
                "a rainy night in neon light",
                "golden light of a late afternoon",
            ),
            examples=(
                "make it winter, with falling snow",
                "paint it in the style of a Japanese woodblock print",
                "golden light of a late afternoon, and a sailing ship",
            ),
        ),
        files=(PICTURE_FILE,),
        results=(PICTURES,),
        accept=accept_pictures,
    )
)
declare(
    Capability(
        name=DOCUMENT_PARSING,
        title="Document as text",
        heading="Documents as text",
        about="The text of the buyer's document.",
        result="Markdown with words as `text`; pictures of the document as `outputs`, if there are "
        "any.",
        prompt=Prompt(
            use="absent",
            ignored="Ignored, so leave it out: the result is the whole document.",
            cheapest="",
        ),
        files=(DOCUMENT_FILE,),
        output_formats=DOCUMENT_FORMATS,
        formats_about="`json`: a second output has the pages as JSON, with the cells of their "
        "tables and with notes.",
        results=(TEXT, DATA),
        accept=accept_text,
        is_strict=False,
    )
)
declare(
    Capability(
        name=DOCUMENT_EXTRACTION,
        title="Data of a document",
        heading="Data from documents",
        about="Data from the buyer's document. The prompt is a question or a JSON Schema.",
        result="A JSON object as `text`, with a value; the gateway compares it with the schema.",
        prompt=Prompt(
            about="What to find in the document: a question in words, or a JSON Schema of type "
            "object that the JSON of the result follows.",
            check=read_schema,
            note="a question in words, or a JSON Schema of type object with properties, at most "
            f"{MAX_SCHEMA_DEPTH} levels deep, whose references lead into its own `$defs`; the "
            "result is a JSON object",
            example="What is it about, and which dates and amounts does it name?",
            cheapest="What does the page say?",
            ideas=(
                "Which dates and amounts does it name?",
                _DATE_AND_TOTAL,
            ),
            examples=(_SCHEMA,),
        ),
        files=(DOCUMENT_FILE,),
        results=(DATA,),
        accept=accept_data,
        accepts_slowly=True,
    )
)
