// A task on a page: its progress, then its result, or why it failed and what becomes of the money.
import { follow, type Notify, type Task } from "./api";
import { type Child, h } from "./common";
import * as kept from "./kept";
import { page } from "./page";
import { showOutputs } from "./result";

/** Shows one state, with its number and title, in place of the one before. */
export type Show = (number: string, title: string, ...children: Child[]) => void;

/** The way of a purchase as three steps. */
export function steps(current: "pay" | "make"): HTMLElement {
  const names: [string, string][] = [["sign", "Signed"], ["pay", "Paid"], ["make", "Made"]];
  const at = names.findIndex(([name]) => name === current);
  const list = h("ol", { class: "track" });
  names.forEach(([, label], index) => {
    const state = index < at ? "done" : index === at ? "now" : "";
    list.append(h("li", { class: state, "aria-current": index === at ? "step" : "false" }, label));
  });
  return list;
}

/** Show a task's progress until it is done, and return it. */
export async function showProgress(statusUrl: string, show: Show, notify: Notify): Promise<Task> {
  const line = h("p", { class: "hint" }, "The gateway has your payment.");
  const bar = h("progress", { max: "1", "aria-label": "Progress" });
  const list = steps("pay");
  show("3", "In work", list, bar, line);
  const told = (seen: Task) => {
    if (list.isConnected && !isHeld(seen)) list.replaceWith(steps("make"));
    describe(seen, line, bar);
    kept.note(seen);
  };
  return follow(statusUrl, told, notify);
}

/** Show how a task ended, with `slip`, its receipt, and `tools` below; `sent` as in `showOutputs`. */
export async function showEnd(task: Task, show: Show, tools: HTMLElement, slip?: HTMLElement, sent?: File | null): Promise<void> {
  if (task.status === "completed") return show("✓", "Yours", ...(await showOutputs(task, sent)), slip, tools);
  const why = `${task.error ?? "The generation failed."} ${page.reasons[task.details ?? ""] ?? ""}`.trim();
  show("!", "It did not work", h("p", { class: "message bad", role: "alert" }, why), slip, contact(task), tools);
}

/** Return whom to ask about a task. */
export function contact(task: Task): HTMLElement {
  const about = [`Task: ${page.baseUrl}/task/${task.taskId}`];
  if (task.payment.transaction) about.push(`Payment: ${task.payment.transaction}`);
  return writeTo(`Task ${task.taskId}`, about, "this task's id or transaction");
}

/** Return how to write to the operator; without an address, by what to ask. */
export function writeTo(subject: string, about: string[], by: string): HTMLElement {
  if (!page.contact) return h("p", { class: "hint" }, `Ask the operator of ${page.name} about it by ${by}.`);
  const query = `subject=${encodeURIComponent(subject)}&body=${encodeURIComponent(about.join("\n"))}`;
  const link = h("a", { href: `mailto:${page.contact}?${query}` }, page.contact);
  return h("p", { class: "hint" }, "Questions about it? Write to the operator: ", link);
}

/** Whether a task still waits for its payment to be settled. */
function isHeld(task: Task): boolean {
  return ["reserved", "settling"].includes(task.payment.state);
}

function describe(task: Task, line: HTMLElement, bar: HTMLProgressElement): void {
  if (task.progress !== null) bar.value = task.progress;
  const again = task.attempt > 1 ? ` Attempt ${task.attempt} of ${task.maxAttempts}.` : "";
  if (isHeld(task)) line.textContent = "The payment is still being settled on the chain. There is nothing more to sign.";
  else
    line.textContent =
      task.status === "queued" ? `Paid. Your task waits for its turn.${again}` : `Your result is being made.${again}`;
}
