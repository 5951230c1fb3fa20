// A question before something is lost.
import { h } from "./common";

/** Ask a question, and return whether the answer is yes. Escape means no. */
export function confirmed(title: string, text: string, yes: string): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (label: string, value: string, kind: string) =>
      h("button", { value, class: `button ${kind}` }, label);
    const buttons = h("p", { class: "tools" }, answer(yes, "yes", "danger"), answer("Cancel", "no", ""));
    const form = h("form", { method: "dialog" }, h("h2", { id: "question" }, title), h("p", {}, text), buttons);
    const dialog = h("dialog", { "aria-labelledby": "question" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    // The harmless answer has the focus.
    buttons.querySelector<HTMLButtonElement>("[value=no]")!.focus();
  });
}
