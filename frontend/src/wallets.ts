// The wallets of this browser (EIP-6963), and the purse where the money has no value.
import { page } from "./page";
import type { Signer, TypedData } from "./payment";

export interface Provider {
  request(call: { method: string; params?: unknown[] }): Promise<unknown>;
}

export interface Wallet {
  id: string;
  name: string;
  icon: string | null;
  connect(): Promise<Signer>;
}

interface Announced {
  info: { uuid: string; name: string; icon: string; rdns: string };
  provider: Provider;
}

const CHAINS: Record<number, { chainName: string; rpc: string }> = {
  8453: { chainName: "Base", rpc: "https://mainnet.base.org" },
  84532: { chainName: "Base Sepolia", rpc: "https://sepolia.base.org" },
};
const REFUSED = 4001;
const UNKNOWN_CHAIN = 4902;
const LOOK_FOR_OLD_MS = 300;

/** Call `found` for each wallet, the late ones too; a wallet that announces itself twice is one. */
export function discover(found: (wallet: Wallet) => void): void {
  const seen = new Set<string>();
  const providers = new Set<Provider>();
  window.addEventListener("eip6963:announceProvider", (event) => {
    const { info, provider } = (event as CustomEvent<Announced>).detail;
    if (seen.has(info.uuid)) return;
    seen.add(info.uuid);
    providers.add(provider);
    const icon = info.icon.startsWith("data:image/") ? info.icon : null;
    found({ id: info.rdns, name: info.name, icon, connect: () => connect(info.name, provider) });
  });
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  // An older wallet only puts itself into the window, and some do so late.
  const findOld = () => {
    const old = (window as { ethereum?: Provider }).ethereum;
    if (!old || providers.has(old)) return;
    providers.add(old);
    found({
      id: "browser",
      name: "Browser wallet",
      icon: null,
      connect: () => connect("Browser wallet", old),
    });
  };
  setTimeout(findOld, LOOK_FOR_OLD_MS);
  window.addEventListener("ethereum#initialized", findOld, { once: true });
}

async function connect(name: string, provider: Provider): Promise<Signer> {
  const accounts = (await ask(provider, "eth_requestAccounts")) as string[];
  const address = accounts[0];
  if (!address) throw new Error(`${name} shows no account. Unlock it and try again.`);
  await useChain(name, provider);
  return {
    name,
    address,
    sign: async (data: TypedData) => {
      // The person may have changed the network since.
      await useChain(name, provider);
      return (await ask(provider, "eth_signTypedData_v4", [
        address,
        JSON.stringify(data),
      ])) as string;
    },
  };
}

/** Bring the wallet to the gateway's chain; throws a sentence where it stays on another one. */
async function useChain(name: string, provider: Provider): Promise<void> {
  if (await isOnChain(provider)) return;
  const chainId = `0x${page.network.chainId.toString(16)}`;
  const change = () => ask(provider, "wallet_switchEthereumChain", [{ chainId }]);
  try {
    await change();
  } catch (error) {
    if (isRefusal(error)) throw error;
    const chain = CHAINS[page.network.chainId];
    if (isUnknownChain(error) && chain && !page.network.isPlay) {
      const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
      const added = { chainId, chainName: chain.chainName, rpcUrls: [chain.rpc], nativeCurrency };
      await ask(provider, "wallet_addEthereumChain", [added]);
      // Some wallets add a chain and stay where they are.
      if (!(await isOnChain(provider))) await change();
    }
  }
  if (!(await isOnChain(provider)))
    throw new Error(`${name} is on another network. Choose ${page.network.label} in it, then try again.`);
}

async function isOnChain(provider: Provider): Promise<boolean> {
  // Hexadecimal by the standard; some wallets give a number.
  return Number(await ask(provider, "eth_chainId")) === page.network.chainId;
}

function isRefusal(error: unknown): boolean {
  return (error as { code?: number }).code === REFUSED;
}

/** Whether a wallet does not know the chain: mobile wallets put the code into another error. */
function isUnknownChain(error: unknown): boolean {
  let found: unknown = error;
  for (let depth = 0; found && typeof found === "object" && depth < 4; depth += 1) {
    const { code, data, originalError, cause } = found as Record<string, unknown>;
    if (code === UNKNOWN_CHAIN) return true;
    found = originalError ?? data ?? cause;
  }
  return false;
}

async function ask(provider: Provider, method: string, params: unknown[] = []): Promise<unknown> {
  try {
    return await provider.request({ method, params });
  } catch (error) {
    const { code, message, data } = error as { code?: number; message?: string; data?: unknown };
    const said =
      code === REFUSED
        ? "You declined in the wallet. Nothing was paid."
        : (message ?? "The wallet did not answer.");
    throw Object.assign(new Error(said), { code, data });
  }
}

/** Return Base Account, where money has value and the browser keeps keys: a secure origin. */
export function baseAccount(): Wallet | null {
  if (page.network.isPlay || !window.isSecureContext) return null;
  const name = "Base Account";
  return {
    id: "base-account",
    name,
    icon: null,
    connect: async () => connect(name, (await import("./base-account")).open()),
  };
}

/** Return the purse, where money has no value: its key lives in this page's memory only. */
export function purse(): Wallet | null {
  if (!page.network.isPlay && !page.network.isTest) return null;
  const name = page.network.isPlay ? "Play purse" : "Test purse";
  return {
    id: "purse",
    name,
    icon: null,
    connect: async () => (await import("./purse")).open(name, page.playKey),
  };
}
