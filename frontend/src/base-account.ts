// Base Account: a wallet behind a passkey, at Coinbase's site. Loaded only when a buyer chooses it.
import { createBaseAccountSDK } from "@base-org/account";
import { page } from "./page";
import type { Provider } from "./wallets";

let provider: Provider | null = null;

/** Return the wallet's provider. Its requests open a window of Coinbase's site. */
export function open(): Provider {
  provider ??= createBaseAccountSDK({
    appName: document.querySelector(".brand span")?.textContent ?? document.title,
    appChainIds: [page.network.chainId],
    preference: { telemetry: false },
  }).getProvider() as Provider;
  return provider;
}
