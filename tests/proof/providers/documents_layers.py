"""PDFs with text that a page does not show, by one content stream."""


def write(content: str, *, layer_is_on: bool = True) -> bytes:
    """Return a PDF of one page; its text between `/OC /P1 BDC` and `EMC` is on a layer."""
    stream = content.encode("latin-1")
    layers = f"<< /OCGs [6 0 R] /D << /{'ON' if layer_is_on else 'OFF'} [6 0 R] >> >>"
    resources = "<< /Font << /F1 4 0 R >> /Properties << /P1 6 0 R >> >>"
    boxes = "/MediaBox [0 0 595 842] /CropBox [0 100 595 842]"
    bodies = [
        f"<< /Type /Catalog /Pages 2 0 R /OCProperties {layers} >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R {boxes} /Contents 5 0 R /Resources {resources} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Length {len(stream)} >>\nstream\n{content}\nendstream",
        "<< /Type /OCG /Name (Layer) >>",
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
