"""PDFs with text that a page does not show, by one content stream."""


def write(content: str, *, layer_is_on: bool = True) -> bytes:
    """Return a PDF of one page; its text between `/OC /P1 BDC` and `EMC` is on a layer.

    /S1 is a dark shading, /G1 its pattern, and /F3 a Type 3 font with the letters a, b and c.
    """
    stream = content.encode("latin-1")
    layers = f"<< /OCGs [6 0 R] /D << /{'ON' if layer_is_on else 'OFF'} [6 0 R] >> >>"
    resources = (
        "<< /Font << /F1 4 0 R /F3 9 0 R >> /Properties << /P1 6 0 R >>"
        " /Shading << /S1 7 0 R >> /Pattern << /G1 8 0 R >> >>"
    )
    drawn = "8 0 0 0 8 8 d1 0 0 8 8 re f"
    boxes = "/MediaBox [0 0 595 842] /CropBox [0 100 595 842]"
    bodies = [
        f"<< /Type /Catalog /Pages 2 0 R /OCProperties {layers} >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R {boxes} /Contents 5 0 R /Resources {resources} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Length {len(stream)} >>\nstream\n{content}\nendstream",
        "<< /Type /OCG /Name (Layer) >>",
        (
            "<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [50 0 450 0] /Extend [true true]"
            " /Function << /FunctionType 2 /Domain [0 1] /C0 [0 0 0.5] /C1 [0 0 0] /N 1 >> >>"
        ),
        "<< /Type /Pattern /PatternType 2 /Shading 7 0 R >>",
        (
            "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 10 10] /FontMatrix [.1 0 0 .1 0 0]"
            " /CharProcs << /a 10 0 R /b 10 0 R /c 10 0 R >> /FirstChar 97 /LastChar 99"
            " /Encoding << /Type /Encoding /Differences [97 /a /b /c] >> /Widths [8 8 8]"
            " /Resources << >> >>"
        ),
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
    ]
    pdf, places = bytearray(b"%PDF-1.5\n"), []
    for number, body in enumerate(bodies, 1):
        places.append(len(pdf))
        pdf += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    start = len(pdf)
    pdf += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    pdf += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = f"trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF"
    return bytes(pdf + trailer.encode())
