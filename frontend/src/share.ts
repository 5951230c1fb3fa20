// A link to pass on: to copy, as a QR code, and for the form as a button for other sites.
import { copyButton, h } from "./common";

/** Return a box with a link that `read` makes; it is made again by `refresh`. */
export function shareBox(read: () => string, title: string, about: string, button?: () => string) {
  // Not an input, where Enter would send the form.
  const field = h("textarea", { class: "link-text", readonly: true, rows: "2", "aria-label": title });
  field.addEventListener("focus", () => field.select());
  const code = h("div", { class: "code-place" });
  const tools = h("p", { class: "tools" }, copyButton(read, "Copy link"));
  if (button) tools.append(copyButton(button, "Copy button for a site"));
  const box = h(
    "details",
    { class: "share" },
    h("summary", {}, title),
    h("p", { class: "hint" }, about),
    field,
    tools,
    code,
  );
  const refresh = async () => {
    field.value = read();
    if (!box.open) return;
    try {
      const { drawQr } = await import("./qr");
      code.replaceChildren(drawQr(read(), `QR code: ${title}`));
    } catch (error) {
      code.replaceChildren(h("p", { class: "hint" }, error instanceof Error ? error.message : ""));
    }
  };
  box.addEventListener("toggle", () => void refresh());
  return { box, refresh };
}

/** Return the HTML of a button for other sites, which is a plain link where scripts are off. */
export function buttonCode(link: string, label: string, baseUrl: string): string {
  const [href, text] = [link, label].map(escape);
  return `<a href="${href}" data-gateway-button>${text}</a>\n<script async src="${escape(baseUrl)}/button.js"></script>\n`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
