// What both pages do: the live badge in the bar, and buttons that copy code.

type Props = Record<string, string | boolean | ((event: Event) => void) | undefined>;
export type Child = Node | string | null | undefined | false;

/** Make an element; a property that starts with `on` is a listener, `false` leaves one out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (typeof value === "string") element.setAttribute(name, value);
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

export function find<T extends HTMLElement>(id: string): T | null {
  return document.getElementById(id) as T | null;
}

/** Return a time as people of this browser write it; `at` is Unix milliseconds or RFC 3339. */
export function writeTime(at: number | string): string {
  return new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

/** Return a time of day, with its date unless that is today; `at` is Unix milliseconds. */
export function writeDeadline(at: number): string {
  const isToday = new Date(at).toDateString() === new Date().toDateString();
  return isToday ? new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : writeTime(at);
}

export function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/** Wait, but not beyond the moment at which the page is shown again: hidden pages have slow timers. */
export function pauseUntilShown(seconds: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    const look = () => document.hidden || end();
    const timer = setTimeout(end, seconds * 1000);
    document.addEventListener("visibilitychange", look);
  });
}

/** Return a button that copies a text; its label says so for a moment. */
export function copyButton(text: () => string, label = "Copy"): HTMLButtonElement {
  const button = h("button", { type: "button", class: "copy" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy";
    }
    await pause(1.6);
    button.textContent = label;
  });
  return button;
}

export function enhance(): void {
  for (const panel of document.querySelectorAll<HTMLElement>(".code .panel"))
    panel.append(copyButton(() => panel.querySelector("code")?.textContent ?? ""));
  void watchHealth();
}

// A page without use stops to poll, because each poll wakes a gateway that sleeps while idle.
const UNUSED_MS = 5 * 60_000;
let usedAt = Date.now();
for (const kind of ["pointerdown", "pointermove", "keydown", "visibilitychange"])
  document.addEventListener(kind, () => (usedAt = Date.now()), { passive: true, capture: true });

/** Whether somebody has used the page within the last minutes, and can see it. */
export function isInUse(): boolean {
  return !document.hidden && Date.now() - usedAt < UNUSED_MS;
}

/** Say in the bar when the gateway does not answer, and how much it works. */
async function watchHealth(): Promise<void> {
  const state = find("state");
  const words = state?.querySelector("span");
  const dot = state?.querySelector("i");
  if (!state || !words || !dot) return;
  const rendered = words.textContent ?? "";
  const colour = dot.className;
  for (;;) {
    if (isInUse()) {
      const health = await readHealth();
      const waiting = health ? health.tasks.queued + health.tasks.processing : 0;
      state.classList.add("live");
      dot.className = health ? colour : "dot bad";
      words.textContent = health
        ? rendered + (waiting ? ` · ${waiting} in work` : "")
        : "The gateway does not answer";
    }
    await pause(15);
  }
}

interface Health {
  tasks: { queued: number; processing: number };
}

async function readHealth(): Promise<Health | null> {
  try {
    const answer = await fetch("/api/health");
    return answer.ok ? ((await answer.json()) as Health) : null;
  } catch {
    return null;
  }
}
