// Parts of the step in which a buyer reviews and signs a payment.
import { h } from "./common";
import { page } from "./page";

const BASE = 8453;

export function playWarning(): HTMLElement {
  const text =
    page.network.chainId === BASE
      ? "The embedded chain calls itself Base, so this signature would be valid on Base, too. Use the play purse, or an account without real USDC."
      : "Play money: this signature is worth nothing on Base. It pays here only if the demo gave this account play USDC.";
  return h("p", { class: "message warn" }, text);
}

export function address(value: string): HTMLElement {
  return h("code", { title: value, class: "address" }, value);
}

export function faucet(account: string): HTMLElement {
  const site = h("a", { href: "https://faucet.circle.com", rel: "noopener", target: "_blank" }, "faucet.circle.com");
  return h("p", { class: "message" }, "Send this purse test USDC first, from ", site, ` to ${account}. The purse is gone when you leave this page.`);
}
