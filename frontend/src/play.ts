// The page of one endpoint: request, price, wallet, signature, task, result.
import { askPrice, follow, gatewayNow, pay, Refusal, type Task } from "./api";
import { showInCode } from "./code";
import { type Child, enhance, find, h } from "./common";
import * as form from "./form";
import { page, short, usdc } from "./page";
import { authorize, paymentHeader, randomHex, type Signer, type Terms, type TypedData } from "./payment";
import { facts, receipt, showResult } from "./result";
import { forget, load, type Purchase, save } from "./saved";
import { discover, purse, type Wallet } from "./wallets";

const flow = find("flow")!;
const untouched = [...flow.childNodes];
const wallets: Wallet[] = [];
/** Counts what is shown, so that a late answer to an earlier step, such as a wallet's, is left out. */
let step = 0;
const notice = h("p", { class: "message", role: "status", hidden: true });

/** A request with its price, before anything is signed. */
interface Offer {
  request: form.Request;
  key: string;
  terms: Terms;
}

function notify(sentence: string): void {
  notice.textContent = sentence;
  notice.hidden = !sentence;
}

/** Show one step of the purchase, in place of the one before. */
function show(number: string, title: string, ...children: Child[]): void {
  step += 1;
  const head = h("h2", { tabindex: "-1" }, h("span", { class: "number" }, number), ` ${title}`);
  notify("");
  flow.replaceChildren(h("section", { class: "panel-card" }, head, ...children, notice));
  head.focus({ preventScroll: true });
  const { top } = flow.getBoundingClientRect();
  // On a phone the form stands above.
  if (top < 0 || matchMedia("(max-width: 54rem)").matches)
    flow.scrollIntoView({ behavior: "smooth", block: "start" });
}

function button(label: string, action: () => unknown, kind = ""): HTMLButtonElement {
  return h("button", { type: "button", class: `button ${kind}`, onclick: () => void action() }, label);
}

function startAgain(): void {
  step += 1;
  forget();
  form.lock(false);
  flow.replaceChildren(...untouched);
  find("ask")!.focus();
}

// -- 1 and 2: the request and its price

async function ask(): Promise<void> {
  form.complain("");
  const waiting = find<HTMLButtonElement>("ask")!;
  const asked = step;
  waiting.disabled = true;
  try {
    const request = await form.read();
    const key = randomHex(16);
    const terms = await askPrice(JSON.stringify(request.body), key, form.complain);
    if (asked === step) offer({ request, key, terms });
  } catch (error) {
    form.complain(say(error));
  }
  waiting.disabled = false;
}

function offer(priced: Offer, problem = ""): void {
  form.lock(true);
  const list = h("ul", { class: "wallets", id: "wallets" });
  const choose = (wallet: Wallet) => () => void connect(wallet, priced);
  const add = (wallet: Wallet) => list.append(h("li", {}, walletButton(wallet, choose(wallet))));
  const own = purse();
  if (own) add(own);
  wallets.forEach(add);
  list.addEventListener("found", (event) => add((event as CustomEvent<Wallet>).detail));
  show(
    "2",
    "Pay",
    h("p", { class: "total" }, h("b", {}, usdc(priced.terms.amount)), ` on ${page.network.label}`),
    h("p", { class: "hint" }, "Choose what signs. You see every detail before you sign."),
    list,
    own || wallets.length ? null : noWallet(),
    problem ? h("p", { class: "message bad", role: "alert" }, problem) : null,
    h("p", { class: "tools" }, button("Change the request", startAgain, "quiet")),
  );
}

function walletButton(wallet: Wallet, choose: () => void): HTMLButtonElement {
  const icon = wallet.icon
    ? h("img", { src: wallet.icon, alt: "", width: "28", height: "28" })
    : h("span", { class: "purse", "aria-hidden": "true" }, "◈");
  const about = wallet.id !== "purse" ? "" : page.network.isPlay ? "filled with play USDC" : "a new key, for test USDC";
  const name = h("span", {}, h("b", {}, wallet.name), about ? h("small", {}, about) : null);
  return h("button", { type: "button", class: "wallet", "data-wallet": wallet.id, onclick: choose }, icon, name);
}

function noWallet(): HTMLElement {
  const text = "This browser has no wallet. Install one as an extension, or buy by the code below.";
  return h("p", { class: "message", id: "no-wallet" }, text);
}

function playWarning(): HTMLElement {
  const text =
    "The embedded chain calls itself Base, so this signature would be valid on Base, too. Use the play purse, or an account without real USDC.";
  return h("p", { class: "message warn" }, text);
}

// -- 3: what is signed

async function connect(wallet: Wallet, priced: Offer): Promise<void> {
  const asked = step;
  notify(wallet.id === "purse" ? "" : `Confirm in ${wallet.name}.`);
  try {
    const signer = await wallet.connect();
    if (asked === step) review(signer, priced);
  } catch (error) {
    if (asked === step) offer(priced, say(error));
  }
}

function review(signer: Signer, priced: Offer): void {
  const data = authorize(priced.terms, signer.address, gatewayNow());
  const until = new Date(Number(data.message.validBefore) * 1000);
  const confirm = button(`Sign and pay ${usdc(priced.terms.amount)}`, () => sign(signer, priced, data, confirm), "primary wide");
  confirm.id = "pay";
  show(
    "2",
    "You sign this payment",
    facts(
      [
        ["Amount", h("b", {}, usdc(data.message.value))],
        ["Payee", address(data.message.to)],
        ["From", address(data.message.from)],
        ["Network", page.network.label],
        ["Valid until", `${until.toLocaleTimeString()} (${Math.round(priced.terms.maxTimeoutSeconds / 60)} minutes)`],
        ["For", `${page.title}: one result`],
      ],
      "review",
    ),
    page.network.isTest && signer.name === "Test purse" ? faucet(signer.address) : null,
    page.network.isPlay && signer.name !== "Play purse" ? playWarning() : null,
    confirm,
    h("p", { class: "hint center" }, "No gas, and nothing beyond this amount. It pays once."),
    h("p", { class: "tools" }, button("Another wallet", () => offer(priced), "quiet")),
  );
  confirm.focus({ preventScroll: true });
}

function address(value: string): Node {
  return h("code", { title: value, class: "address" }, value);
}

function faucet(account: string): HTMLElement {
  const site = h("a", { href: "https://faucet.circle.com", rel: "noopener", target: "_blank" }, "faucet.circle.com");
  return h("p", { class: "message" }, "Send this purse test USDC first, from ", site, ` to ${account}. The purse is gone when you leave this page.`);
}

async function sign(signer: Signer, priced: Offer, data: TypedData, confirm: HTMLButtonElement): Promise<void> {
  const asked = step;
  confirm.disabled = true;
  notify(signer.name.endsWith("purse") ? "Signing." : `Confirm in ${signer.name}.`);
  try {
    const signature = await signer.sign(data);
    // The buyer went on without it: sent now, it would be a second payment.
    if (asked !== step) return;
    const { request, key, terms } = priced;
    const payment = paymentHeader(terms, data.message, signature);
    const body = JSON.stringify(request.body);
    const purchase: Purchase = { key, body, file: request.file, terms, payment, authorization: data.message };
    // Before anything is sent: a reload from now on sends the same payment.
    save(purchase);
    await settle(purchase, body);
  } catch (error) {
    if (asked === step) offer(priced, say(error));
  }
}

// -- 4: the payment is sent, and the task followed

async function settle(purchase: Purchase, body: string): Promise<void> {
  form.lock(true);
  show("3", "Paying", steps("pay"), h("p", { class: "hint" }, "The payment is being settled on the chain."));
  try {
    const started = await pay(body, purchase.key, purchase.payment, notify);
    save({ ...purchase, body: purchase.file ? null : body, ...started });
    await track(started.statusUrl);
  } catch (error) {
    if (error instanceof Refusal && error.status >= 400 && error.status < 500) refused(purchase, body, error);
    else interrupted(say(error), () => settle(purchase, body));
  }
}

/** The gateway took no payment: what was signed is worth nothing to it, so it may be forgotten. */
function refused(purchase: Purchase, body: string, error: Refusal): void {
  forget();
  const request = { body: JSON.parse(body) as Record<string, string>, file: purchase.file };
  offer({ request, key: randomHex(16), terms: purchase.terms }, error.message);
}

function interrupted(problem: string, again: () => unknown): void {
  show(
    "3",
    "Not finished yet",
    h("p", { class: "message bad", role: "alert" }, problem),
    h("p", { class: "hint" }, "Continuing never pays twice: it is the same payment. If you give up, a result that is paid already is lost to you."),
    button("Continue", again, "primary wide"),
    h("p", { class: "tools" }, button("Give up", startAgain, "quiet")),
  );
}

async function track(statusUrl: string): Promise<void> {
  form.lock(true);
  const line = h("p", { class: "hint" }, "Paid. Your task waits for its turn.");
  const bar = h("progress", { max: "1", "aria-label": "Progress" });
  const list = steps("make");
  show("3", "In work", list, bar, line);
  try {
    const task = await follow(statusUrl, (seen) => describe(seen, line, bar), notify);
    await finish(task);
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) {
      forget();
      interrupted("The gateway does not know this task any more.", startAgain);
    } else interrupted(say(error), () => track(statusUrl));
  }
}

function describe(task: Task, line: HTMLElement, bar: HTMLProgressElement): void {
  if (task.progress !== null) bar.value = task.progress;
  const again = task.attempt > 1 ? ` Attempt ${task.attempt} of ${task.maxAttempts}.` : "";
  line.textContent =
    task.status === "queued" ? `Paid. Your task waits for its turn.${again}` : `Your result is being made.${again}`;
}

async function finish(task: Task): Promise<void> {
  const again = button("Buy another", startAgain, "primary");
  again.id = "again";
  if (task.status === "completed") {
    show("✓", "Yours", ...(await showResult(task)), h("p", { class: "tools" }, again));
    return;
  }
  const why = [task.error ?? "The generation failed.", task.details ? `(${task.details})` : ""].join(" ");
  show(
    "!",
    "It did not work",
    h("p", { class: "message bad", role: "alert" }, why),
    receipt(task),
    h("p", { class: "tools" }, again),
  );
}

function steps(current: "pay" | "make"): HTMLElement {
  const names: [string, string][] = [["sign", "Signed"], ["pay", "Paid"], ["make", "Made"]];
  const at = names.findIndex(([name]) => name === current);
  const list = h("ol", { class: "track" });
  names.forEach(([, label], index) => {
    const state = index < at ? "done" : index === at ? "now" : "";
    list.append(h("li", { class: state, "aria-current": index === at ? "step" : "false" }, label));
  });
  return list;
}

function say(error: unknown): string {
  return error instanceof Error ? error.message : "Something went wrong. Nothing more was sent.";
}

// -- after a reload

/** Go on with the purchase that this tab has begun. */
async function resume(purchase: Purchase): Promise<void> {
  if (purchase.body) form.restore(JSON.parse(purchase.body) as Record<string, string>);
  if (purchase.statusUrl) return track(purchase.statusUrl);
  if (purchase.body) return settle(purchase, purchase.body);
  return chooseAgain(purchase);
}

/** A large file is not kept: the buyer chooses it again, and the same payment goes with it. */
function chooseAgain(purchase: Purchase, problem = ""): void {
  const name = purchase.file?.name ?? "the same file";
  show(
    "2",
    "Go on with your payment",
    h("p", { class: "message" }, `You signed ${usdc(purchase.terms.amount)} to ${short(purchase.authorization.to)} for ${name}. Choose that file again and continue: it is the same payment.`),
    problem ? h("p", { class: "message bad", role: "alert" }, problem) : null,
    button("Continue", () => continueWithFile(purchase), "primary wide"),
    h("p", { class: "tools" }, button("Give up", startAgain, "quiet")),
  );
}

async function continueWithFile(purchase: Purchase): Promise<void> {
  try {
    const request = await form.read();
    if (request.file?.sha256 !== purchase.file?.sha256) throw new Error(`This is another file than ${purchase.file?.name}.`);
    await settle(purchase, JSON.stringify(request.body));
  } catch (error) {
    chooseAgain(purchase, say(error));
  }
}

enhance();
discover((wallet) => {
  wallets.push(wallet);
  find("no-wallet")?.remove();
  find("wallets")?.dispatchEvent(new CustomEvent("found", { detail: wallet }));
});
form.enhanceForm(() => {
  form.complain("");
  showInCode(form.fields());
}, () => void ask());
const begun = load();
if (begun) void resume(begun);
