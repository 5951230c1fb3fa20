"""Encodes PNG, JPEG or WebP, with metadata stating that no AI made the picture."""

import io

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from .caption import IMPRINT

SOFTWARE = "Generation Gateway sandbox renderer (procedural-v1)"
_EXIF_DESCRIPTION, _EXIF_SOFTWARE = 0x010E, 0x0131
_PNG_XMP = "XML:com.adobe.xmp"  # where the XMP specification puts it
_XMP = f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
 xmp:CreatorTool="{SOFTWARE}"
 Iptc4xmpExt:DigitalSourceType="http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia">
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">{IMPRINT}</rdf:li></rdf:Alt></dc:description>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="r"?>"""


def encode(picture: Image.Image, output_format: str) -> bytes:
    """Return the picture as a file of the format: png, jpg or webp."""
    buffer = io.BytesIO()
    exif, xmp = _exif(), _XMP.encode()
    if output_format == "png":
        picture.save(buffer, "PNG", compress_level=4, exif=exif, pnginfo=_png_text())
    elif output_format == "jpg":
        picture.save(buffer, "JPEG", quality=92, subsampling=0, exif=exif, xmp=xmp)
    else:
        picture.save(buffer, "WEBP", quality=90, method=3, exif=exif, xmp=xmp)
    return buffer.getvalue()


def _exif() -> Image.Exif:
    exif = Image.Exif()
    exif[_EXIF_DESCRIPTION] = IMPRINT
    exif[_EXIF_SOFTWARE] = SOFTWARE
    return exif


def _png_text() -> PngInfo:
    text = PngInfo()
    text.add_text("Description", IMPRINT)
    text.add_text("Software", SOFTWARE)
    text.add_itxt(_PNG_XMP, _XMP)
    return text
