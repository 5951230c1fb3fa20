// Refreshes the page every five seconds while it is visible, and replaces the parts that changed.
// Every page and action works without this script too.
const EVERY_MS = 5000, LONGEST_MS = 60000, PATIENCE_MS = 8000;
const live = document.getElementById("live");
const said = document.getElementById("said"), stale = document.getElementById("stale");
let timer, misses = 0, lastGood = new Date();

const clock = (at) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function addLocalTimes(root) {
  for (const one of root.querySelectorAll("time[datetime]"))
    one.title = `${new Date(one.dateTime).toLocaleString()} here`;
}

// Whether a refresh would discard input: a ticked box, a typed text, a selection.
function isBusy() {
  const focus = document.activeElement;
  if (live.contains(focus) && focus.closest("input, select, textarea, dialog")) return true;
  if (!getSelection().isCollapsed && live.contains(getSelection().anchorNode)) return true;
  return [...live.querySelectorAll("input, textarea, select")].some((one) =>
    one.matches("[type=checkbox], [type=radio]") ? one.checked !== one.defaultChecked
      : one.matches("select") ? [...one.options].some((o) => o.selected !== o.defaultSelected && o.defaultSelected)
      : one.type !== "hidden" && one.value !== one.defaultValue);
}

// A selector that finds the element again after a refresh.
function placeOf(element, root) {
  if (!element || !root.contains(element)) return null;
  if (element.id) return `#${CSS.escape(element.id)}`;
  for (const name of ["href", "name", "aria-label", "formaction"])
    if (element.hasAttribute(name)) return `${element.localName}[${name}="${CSS.escape(element.getAttribute(name))}"]`;
  const summary = element.closest("details[id] > summary");
  return summary ? `#${CSS.escape(summary.parentElement.id)} > summary` : null;
}

// Replaces only the parts that differ, so that focus and scroll position are kept elsewhere.
function putIn(old, fresh) {
  for (const details of old.querySelectorAll("details[id][open]"))
    fresh.querySelector(`#${CSS.escape(details.id)}`)?.setAttribute("open", "");
  const before = [...old.children], after = [...fresh.children];
  for (let i = 0; i < Math.max(before.length, after.length); i++) {
    if (!after[i]) before[i].remove();
    else if (!before[i]) old.append(after[i]);
    else if (before[i].outerHTML !== after[i].outerHTML) {
      const sideways = [...before[i].querySelectorAll(".scroll")].map((one) => one.scrollLeft);
      before[i].replaceWith(after[i]);
      after[i].querySelectorAll(".scroll").forEach((one, n) => { one.scrollLeft = sideways[n] ?? 0; });
    }
  }
}

function showFresh(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.getElementById("live");
  if (!fresh) return location.reload();
  addLocalTimes(page);
  const urgent = new Set([...live.querySelectorAll(".needs .bad[id]")].map((one) => one.id));
  for (const [old, next] of [[live, fresh], [document.getElementById("pages"), page.getElementById("pages")]]) {
    if (!old || !next) continue;
    const place = placeOf(document.activeElement, old);
    putIn(old, next);
    if (place && !old.contains(document.activeElement)) old.querySelector(place)?.focus({ preventScroll: true });
  }
  document.title = page.title;
  const news = [...live.querySelectorAll(".needs .bad[id]")].find((one) => !urgent.has(one.id));
  if (news) said.textContent = news.querySelector("strong").textContent;
}

function showAge() {
  const isStale = misses > 1;
  document.body.classList.toggle("stale", isStale);
  stale.hidden = !isStale;
  if (isStale && !stale.textContent) stale.textContent = `Stale since ${clock(lastGood)}: the gateway does not answer. Trying again.`;
  if (!isStale) stale.textContent = "";
}

async function refresh() {
  if (document.hidden || isBusy()) return later();
  try {
    const answer = await fetch(location.href, { headers: { "X-Live": "1" }, signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status === 401 || answer.redirected) return location.reload();
    if (!answer.ok) throw new Error(answer.status);
    const text = await answer.text();
    if (!isBusy()) showFresh(text);
    misses = 0;
    lastGood = new Date();
  } catch {
    misses++;
  }
  showAge();
  later();
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(refresh, Math.min(EVERY_MS * 2 ** Math.max(0, misses - 1), LONGEST_MS));
}

addLocalTimes(document);
// Browsers offer a clipboard to https and localhost only; the stylesheet hides the buttons else.
if (navigator.clipboard) {
  document.documentElement.classList.add("copies");
  document.addEventListener("click", async (event) => {
    const value = event.target.closest?.("button[data-copy]")?.dataset.copy;
    if (value === undefined) return;
    try {
      await navigator.clipboard.writeText(value);
      said.textContent = `Copied ${value}.`;
      event.target.textContent = "Copied";
    } catch {
      said.textContent = event.target.textContent = "Not copied";
    }
  });
}
// On a phone the bar scrolls: scroll to the current page.
const bar = document.getElementById("pages"), shown = bar?.querySelector("[aria-current]");
if (shown) bar.scrollLeft = shown.offsetLeft - (bar.clientWidth - shown.offsetWidth) / 2;
if (live) {
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
  later();
}
