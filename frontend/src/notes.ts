// What the page of an offer says above and in the form: a link's values, purchases to go on with.
import { type Child, find, h, writeTime } from "./common";
import { type Kept, unfinished } from "./kept";
import { label, makeLink, readLink } from "./links";
import { page } from "./page";
import type { Purchase } from "./saved";
import { buttonCode, shareBox } from "./share";

const place = h("div", { class: "notes", role: "status" });
const form = find<HTMLFormElement>("request")!;
document.querySelector(".desk")!.before(place);

/** Show a note above the form; null takes it away. */
export function note(content: Child): void {
  place.replaceChildren(...(content ? [h("p", { class: "message" }, content)] : []));
}

/** Fill the form by the query, and say so: a link may be anybody's. */
export function fillFromLink(restore: (fields: Record<string, string>) => void, changed: () => void): void {
  find("linked")?.remove();
  const { fields, left } = readLink(location.search);
  const names = Object.keys(fields).map((name) => `${label(name)}${count(fields[name]!)}`);
  if (!names.length && !left.length) return;
  restore(fields);
  changed();
  const clear = h("button", { type: "button", class: "link" }, "Clear the form");
  const filled = names.length ? `Filled in by the link that you opened: ${names.join(", ")}. Check it before you pay.` : "";
  const message = h("p", { class: "message", id: "linked", role: "status" }, [filled, ...left].join(" ").trim(), " ", clear);
  clear.addEventListener("click", () => {
    form.reset();
    message.remove();
    leaveLink();
    changed();
  });
  form.querySelector("fieldset")!.prepend(message);
}

function count(value: string): string {
  return value.length > 20 ? ` (${value.length.toLocaleString("en")} characters)` : "";
}

/** Take the link's values out of the address, so that a reload does not fill the form again. */
export function leaveLink(): void {
  history.replaceState(null, "", location.pathname);
}

/** Name the purchases that the gateway has not answered; `go` goes on with one. */
export function noteUnfinished(go: (purchase: Purchase) => void): void {
  const show = () => {
    const found = unfinished();
    note(found[0] ? describeUnfinished(found[0], found.length, go) : null);
  };
  show();
  // Another tab may finish it.
  window.addEventListener("storage", () => {
    if (place.querySelector("#continue")) show();
  });
}

function describeUnfinished(kept: Kept, howMany: number, go: (purchase: Purchase) => void): HTMLElement {
  const button = h("button", { type: "button", class: "link", id: "continue" }, "Continue it");
  button.addEventListener("click", () => go(kept.unfinished!));
  const when = writeTime(kept.at);
  const others = howMany > 1 ? " There are more under " : " It is also under ";
  const did = kept.unfinished?.transfer ? "were paying" : "signed";
  const text = `You ${did} ${kept.price} for this offer (${when}), and the gateway's answer is missing. `;
  return h("span", {}, text, button, others, h("a", { href: "/purchases" }, "Your purchases"), ".");
}

/** Offer a link to the request in the form; returns what to call after a change. */
export function offerLink(fields: () => Record<string, string>): () => void {
  const link = () => makeLink(fields());
  const about = "It opens this page with your request filled in, for anybody. Nothing is bought by opening it.";
  const code = () => buttonCode(link(), `Buy: ${page.title}`, page.baseUrl);
  const { box, refresh } = shareBox(link, "Link to this request", about, code);
  form.append(box);
  return () => void refresh();
}
