// A QR code of a text, such as a link or a transfer (EIP-681). Import it lazily: few visitors scan.
import { encode } from "uqr";

// More would make modules too small for a phone that reads them from a screen.
const MOST_VERSION = 25;
// What the standard asks for; `uqr` draws it as light modules.
const QUIET_ZONE = 4;

/**
 * Return a QR code as an SVG element, named `label` for those who cannot see it.
 *
 * It is dark on white in dark mode too, because not every scanner reads an inverted one.
 * Throws a sentence if the text is too long, from about 1,270 bytes on.
 */
export function drawQr(text: string, label: string): SVGSVGElement {
  const { data, size } = read(text);
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  const svg = make("svg", { viewBox: `0 0 ${size} ${size}`, class: "qr", role: "img", "aria-label": label });
  svg.append(
    make("path", { d: `M0 0h${size}v${size}h-${size}z`, fill: "#fff" }),
    make("path", { d: dark.join(""), fill: "#000", "shape-rendering": "crispEdges" }),
  );
  return svg;
}

function read(text: string): { data: boolean[][]; size: number } {
  try {
    return encode(text, { border: QUIET_ZONE, maxVersion: MOST_VERSION, boostEcc: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Error("This is too long for a QR code. Copy the link instead.");
  }
}

function make<K extends keyof SVGElementTagNameMap>(name: K, attributes: Record<string, string>): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
