"""The sample document: a coffee roastery's report and an invoice, as a PDF of two pages.

`SCHEMA` selects the invoice's data for a buyer.
"""

from collections.abc import Sequence

from gateway_demo import pdf
from gateway_demo.pdf import BOLD, REGULAR, Colour, Page

INK: Colour = (0.07, 0.22, 0.25)
ACCENT: Colour = (0.80, 0.43, 0.18)
MUTED: Colour = (0.42, 0.46, 0.50)
PALE: Colour = (0.955, 0.945, 0.925)
RULE: Colour = (0.85, 0.82, 0.78)
WHITE: Colour = (1, 1, 1)

# The left and right margins of the text.
LEFT, RIGHT = 56.0, 539.0  # points

TABLE = [
    ["Region", "Orders", "Bags sold", "Revenue"],
    ["North Sea coast", "1,204", "9,870", "$ 148,050"],
    ["Rhine valley", "986", "7,415", "$ 111,225"],
    ["Alps", "512", "3,960", "$ 61,380"],
    ["Online", "2,731", "12,044", "$ 192,704"],
]
INVOICE = [
    ["Item", "Quantity", "Unit price", "Amount"],
    ["Harbour Blend, 250 g", "480", "$ 9.50", "$ 4,560.00"],
    ["Lighthouse Espresso, 1 kg", "120", "$ 31.00", "$ 3,720.00"],
    ["Decaf Fog, 250 g", "96", "$ 10.25", "$ 984.00"],
    ["Freight to Rotterdam", "1", "$ 215.00", "$ 215.00"],
]

# The fields that a program may extract from the invoice.
SCHEMA = {
    "type": "object",
    "properties": {
        "billed_to": {"type": "string"},
        "due_date": {"type": "string", "format": "date"},
        "total": {"type": "number"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"item": {"type": "string"}, "quantity": {"type": "integer"}},
            },
        },
        "discount": {"type": ["number", "null"]},
    },
}


def sample_pdf() -> bytes:
    """Return a report of two pages with headings, paragraphs, tables and a chart."""
    return pdf.write(
        [_make_report_page(), _make_invoice_page()], title="Harbour Coffee, third quarter 2026"
    )


def _make_report_page() -> Page:
    page = Page()
    _draw_band(page, "Quarterly Report", "Harbour Coffee Roasters, third quarter 2026")
    y = _draw_heading(page, 690, "Summary")
    y = page.paragraph(
        LEFT, y,
        "Harbour Coffee Roasters sold 33,289 bags between July and September 2026, eleven percent "
        "more than in the same quarter of last year. Online orders grew fastest: every second "
        "customer now orders again within six weeks, and the new subscription brought in a fifth "
        "of all revenue.",
        width=RIGHT - LEFT,
    )  # fmt: skip
    y = _draw_heading(page, y - 20, "Sales by region")
    y = _draw_table(page, y, TABLE)
    y = _draw_heading(page, y - 32, "Revenue by month")
    y = page.paragraph(
        LEFT, y,
        "In thousands of dollars. September was the strongest month since the roastery opened; "
        "the second drum ran at 84 percent of its capacity.",
        width=RIGHT - LEFT,
    )  # fmt: skip
    _draw_chart(page, y - 205, [("July", 151), ("August", 169), ("September", 193)])
    _draw_footer(page, 1)
    return page


def _make_invoice_page() -> Page:
    page = Page()
    _draw_band(page, "Invoice", "Harbour Coffee Roasters, no. 2026-0917")
    y = 700.0
    for label, words in (
        ("Billed to", "Nordlicht Cafes B.V., Wijnhaven 23, 3011 WH Rotterdam"),
        ("Date", "30 September 2026"),
        ("Due", "30 October 2026"),
    ):
        page.text(LEFT, y, f"{label}:", font=BOLD, colour=MUTED)
        page.text(LEFT + 62, y, words)
        y -= 18
    y = _draw_heading(page, 616, "Items")
    y = _draw_table(page, y, INVOICE)
    page.box(LEFT + 270, y - 34, RIGHT - LEFT - 270, 28, INK)
    page.text(LEFT + 282, y - 24, "Total", font=BOLD, size=11, colour=WHITE)
    page.text(RIGHT - 10, y - 24, "$ 9,479.00", font=BOLD, size=11, colour=WHITE, align="right")
    y = _draw_heading(page, y - 88, "Terms")
    for term in (
        "Payable in USDC on Base or by bank transfer within thirty days.",
        "Goods remain ours until they are paid for in full.",
        "Opened bags cannot be returned; whole cartons can, within two weeks.",
    ):
        page.text(LEFT, y, f"\u2022  {term}")
        y -= 17
    _draw_footer(page, 2)
    return page


def _draw_band(page: Page, title: str, subtitle: str) -> None:
    page.box(0, 742, pdf.WIDTH, 100, INK)
    page.box(0, 738, pdf.WIDTH, 4, ACCENT)
    page.text(LEFT, 768, title, font=BOLD, size=26, colour=WHITE)
    page.text(RIGHT, 768, subtitle, size=12, colour=WHITE, align="right")


def _draw_heading(page: Page, y: float, text: str) -> float:
    page.text(LEFT, y, text, font=BOLD, size=15, colour=INK)
    return y - 26


def _draw_table(page: Page, y: float, rows: Sequence[Sequence[str]]) -> float:
    """Draw a table with a heading row and right-aligned numbers, and return the y below it."""
    edges = (LEFT, LEFT + 200, LEFT + 290, LEFT + 390, RIGHT)
    for index, row in enumerate(rows):
        page.box(LEFT, y - 8, RIGHT - LEFT, 24, (INK, WHITE, PALE)[index and 2 - index % 2])
        for column, cell in enumerate(row):
            left, right = edges[column], edges[column + 1]
            page.frame(left, y - 8, right - left, 24, RULE)
            page.text(
                right - 10 if column else left + 10,
                y,
                cell,
                align="right" if column else "left",
                font=REGULAR if index else BOLD,
                colour=pdf.BLACK if index else WHITE,
            )
        y -= 24
    return y


def _draw_chart(page: Page, base: float, bars: Sequence[tuple[str, int]]) -> None:
    page.line(LEFT, base, RIGHT, MUTED)
    for index, (label, value) in enumerate(bars):
        x = LEFT + 60 + 150 * index
        page.box(x, base, 64, value, ACCENT if index == len(bars) - 1 else INK)
        page.text(x, base - 15, f"{label}: {value}", size=9, colour=MUTED)


def _draw_footer(page: Page, number: int) -> None:
    page.line(LEFT, 52, RIGHT, RULE)
    page.text(LEFT, 36, "Harbour Coffee Roasters, Speicherstadt 4, Hamburg", size=8, colour=MUTED)
    page.text(RIGHT, 36, f"Page {number} of 2", size=8, colour=MUTED, align="right")
