// The page of one task: progress, result, receipt, refund, whom to ask, and a link to pass on.
import { readTask, Refusal, type Task } from "./api";
import { type Child, enhance, find, h, writeTime } from "./common";
import * as kept from "./kept";
import { page } from "./page";
import { receipt } from "./result";
import { shareBox } from "./share";
import { contact, showEnd, showProgress } from "./track";

const flow = find("flow")!;
const about = find("about")!;
const statusUrl = `/api/task/${location.pathname.split("/").at(-1)}`;
const notice = h("p", { class: "message", role: "status", hidden: true });

function notify(sentence: string): void {
  notice.textContent = sentence;
  notice.hidden = !sentence;
}

function show(number: string, title: string, ...children: Child[]): void {
  const head = h("h2", {}, h("span", { class: "number" }, number), ` ${title}`);
  notify("");
  flow.replaceChildren(h("section", { class: "panel-card" }, head, ...children, notice));
}

async function open(): Promise<void> {
  try {
    const begun = await readTask(statusUrl, notify);
    describe(begun);
    const task = begun.done ? begun : await showProgress(statusUrl, show, notify);
    kept.note(task);
    const again = h("a", { href: `/play/${task.slug}`, class: "button" }, "Buy another");
    await showEnd(task, show, h("p", { class: "tools" }, page.wallet ? again : null));
    describe(task);
  } catch (error) {
    const isGone = error instanceof Refusal && error.status === 404;
    const again = h("button", { type: "button", class: "button" }, "Try again");
    again.addEventListener("click", () => void open());
    const said = error instanceof Error ? error.message : "The task cannot be read.";
    show("!", "Not read", h("p", { class: "message bad", role: "alert" }, said), isGone ? null : h("p", { class: "tools" }, again));
  }
}

/** Show the facts beside the state. */
function describe(task: Task): void {
  const { box } = shareBox(
    () => `${page.baseUrl}/task/${task.taskId}`,
    "Link to this task",
    "Whoever has this link sees this page and can download the result.",
  );
  const promise = task.done ? null : h("p", { class: "hint" }, page.refund);
  const json = h("a", { href: statusUrl }, "JSON");
  about.replaceChildren(
    h("h2", {}, "Receipt"),
    receipt(task),
    ...[promise, times(task), task.status === "failed" ? null : contact(task)].filter((one) => one !== null),
    box,
    keepButton(task),
    h("p", { class: "hint" }, "For programs: ", json),
  );
}

function times(task: Task): HTMLElement {
  const said = [`Ordered ${writeTime(task.createdAt)}.`];
  if (task.completedAt) said.push(`${task.status === "completed" ? "Made" : "Ended"} ${writeTime(task.completedAt)}.`);
  const hasFiles = task.result?.outputs.some((one) => one.url);
  if (hasFiles && task.expiresAt) said.push(`Kept until ${writeTime(task.expiresAt)}: download it before.`);
  return h("p", { class: "hint" }, said.join(" "));
}

function keepButton(task: Task): HTMLElement {
  const known = h("p", { class: "hint" }, "It is under ", h("a", { href: "/purchases" }, "Your purchases"), ".");
  if (kept.findTask(task.taskId)) return known;
  const button = h("button", { type: "button", class: "button" }, "Keep under Your purchases");
  const row = h("p", { class: "tools" }, button);
  button.addEventListener("click", () => {
    if (kept.adopt(task)) row.replaceWith(known);
    else button.replaceWith("This browser keeps nothing. Copy the link.");
  });
  return row;
}

enhance();
void open();
