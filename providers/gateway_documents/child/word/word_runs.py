"""Rewrites the runs of a Word part that anydoc drops or flattens as plain runs."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from lxml import etree

from gateway_documents.child.raised_digits import LOWERED, RAISED, shifted
from gateway_documents.child.word import symbols

# lxml has no public name for it.
Element = Any
MAIN = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}",
    "{http://purl.oclc.org/ooxml/officeDocument/math}",
)
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
TEXT_PATH = "{urn:schemas-microsoft-com:vml}textpath"
_OLE = "{urn:schemas-microsoft-com:office:office}OLEObject"
_OFF = ("0", "false", "off", "none")
# The code of a symbol, and the number of a list's entry.
_CODE, _NUMBER = re.compile(r"[\da-fA-F]{1,4}", re.ASCII), re.compile(r"\d{1,9}", re.ASCII)
_CHECKED, _UNCHECKED = "\u2612", "\u2610"


def rewrite(root: Element, hiding: AbstractSet[str]) -> bool:
    """Write out what anydoc drops and remove hidden text; return whether there was some."""
    for hyphen in root.iter(f"{MAIN}noBreakHyphen"):
        # anydoc drops it, which joins the parts of a number.
        hyphen.tag, hyphen.text = f"{MAIN}t", "-"
    for ruby in list(root.iter(f"{MAIN}ruby")):
        _write_out_ruby(ruby)
    for form in list(root.iter(f"{MAIN}ffData")):
        _write_out_form_field(form)
    for art in list(root.iter(TEXT_PATH)):
        _write_out_word_art(art)
    for label in list(root.iter(_OLE)):
        # anydoc prints the name of its program.
        label.getparent().remove(label)
    for names in _MATH:
        for equation in root.iter(f"{names}oMath"):
            _complete_equation(equation, names)
    return _rewrite_runs(root, hiding)


def text_of(element: Element) -> str:
    """Return the text of all runs in an element."""
    return "".join(text.text or "" for text in element.iter(f"{MAIN}t")).strip()


def value_of(parent: Element | None, path: str) -> str | None:
    """Return the value of a property, such as `numPr/numId`."""
    steps = "/".join(f"{MAIN}{name}" for name in path.split("/"))
    found = parent.find(steps) if parent is not None else None
    return None if found is None else found.get(f"{MAIN}val")


def vanish(properties: Element | None) -> bool | None:
    """Return whether properties hide text; None without such a property."""
    hidden = properties.find(f"{MAIN}vanish") if properties is not None else None
    return None if hidden is None else hidden.get(f"{MAIN}val") not in _OFF


def _rewrite_runs(root: Element, hiding: AbstractSet[str]) -> bool:
    hid_text = False
    for run in list(root.iter(f"{MAIN}r", *(f"{names}r" for names in _MATH))):
        if _is_hidden(run, hiding):
            hid_text = hid_text or any((text.text or "").strip() for text in run.iter("{*}t"))
            run.getparent().remove(run)
        elif run.tag == f"{MAIN}r":
            properties = run.find(f"{MAIN}rPr")
            _name_symbols(run, properties)
            if properties is not None:
                _shift(run, properties)
    return hid_text


def _is_hidden(run: Element, hiding: AbstractSet[str]) -> bool:
    properties = run.find(f"{MAIN}rPr")
    own = vanish(properties)
    if own is not None or not hiding:
        return bool(own)
    paragraph = next(run.iterancestors(f"{MAIN}p"), None)
    named = (value_of(properties, "rStyle"), value_of(paragraph, "pPr/pStyle"))
    return any(style in hiding for style in named)


def _name_symbols(run: Element, properties: Element | None) -> None:
    for symbol in run.findall(f"{MAIN}sym"):
        code = symbol.get(f"{MAIN}char") or ""
        number = int(code, 16) if _CODE.fullmatch(code) else 0
        symbol.tag = f"{MAIN}t"
        symbol.text = symbols.character(symbol.get(f"{MAIN}font") or "", number)
    for text in run.findall(f"{MAIN}t"):
        if text.text and any("\uf000" <= char <= "\uf0ff" for char in text.text):
            fonts = properties.find(f"{MAIN}rFonts") if properties is not None else None
            font = "" if fonts is None else fonts.get(f"{MAIN}ascii") or ""
            text.text = symbols.written_out(text.text, font)


def _shift(run: Element, properties: Element) -> None:
    place = value_of(properties, "vertAlign")
    table = {"superscript": RAISED, "subscript": LOWERED}.get(place or "")
    texts = list(run.iter(f"{MAIN}t"))
    whole = "".join(text.text or "" for text in texts)
    if table and shifted(whole, table) != whole:
        for text in texts:
            text.text = (text.text or "").translate(table)


def run_of(text: str) -> Element:
    """Return a run with this text."""
    run = etree.Element(f"{MAIN}r")
    etree.SubElement(run, f"{MAIN}t").text = text
    run[0].set(_SPACE, "preserve")
    return run


def _write_out_form_field(form: Element) -> None:
    """Put the state of a check box or the choice of a list before its field, which has no text."""
    run = next(form.iterancestors(f"{MAIN}r"), None)
    box, choices = form.find(f"{MAIN}checkBox"), form.find(f"{MAIN}ddList")
    if run is None:
        return
    if box is not None:
        state = next(
            (
                found
                for name in ("checked", "default")
                if (found := box.find(f"{MAIN}{name}")) is not None
            ),
            None,
        )
        is_on = state is not None and state.get(f"{MAIN}val") not in _OFF
        run.addprevious(run_of(_CHECKED if is_on else _UNCHECKED))
    elif choices is not None:
        entries = [entry.get(f"{MAIN}val") or "" for entry in choices.findall(f"{MAIN}listEntry")]
        number = value_of(choices, "result") or value_of(choices, "default") or "0"
        if _NUMBER.fullmatch(number) and int(number) < len(entries):
            run.addprevious(run_of(entries[int(number)]))


def _write_out_word_art(art: Element) -> None:
    run = next(art.iterancestors(f"{MAIN}r"), None)
    if run is not None and (text := (art.get("string") or "").strip()):
        run.addnext(run_of(text))


def _write_out_ruby(ruby: Element) -> None:
    """Replace a word and its reading by runs: 漢字 (かんじ)."""
    base, reading = ruby.find(f"{MAIN}rubyBase"), ruby.find(f"{MAIN}rt")
    parent = ruby.getparent()
    if base is None or parent is None:
        return
    runs = [*base, *(_reading_runs(reading) if reading is not None else ())]
    # Word puts a ruby into a run, other programs put it beside runs.
    after = parent if parent.tag == f"{MAIN}r" else ruby
    for run in runs:
        after.addnext(run)
        after = run
    parent.remove(ruby)


def _reading_runs(reading: Element) -> Iterator[Element]:
    text = "".join(element.text or "" for element in reading.iter(f"{MAIN}t"))
    if text:
        yield run_of(f" ({text})")


def _complete_equation(equation: Element, names: str) -> None:
    """Keep ordinary runs in an equation, and separators between the parts of brackets."""
    for run in list(equation.iter(f"{MAIN}r")):
        if text := "".join(part.text or "" for part in run.findall(f"{MAIN}t")):
            run.addprevious(_math_run(text, names))
    for brackets in equation.iter(f"{names}d"):
        parts = brackets.findall(f"{names}e")
        sign = brackets.find(f"{names}dPr/{names}sepChr")
        if sign is None or len(parts) == 1:
            continue
        for part in parts[1:]:
            parts[0].append(_math_run(sign.get(f"{names}val") or "", names))
            parts[0].extend(part)
            brackets.remove(part)


def _math_run(text: str, names: str) -> Element:
    run = etree.Element(f"{names}r")
    etree.SubElement(run, f"{names}t").text = text
    return run
