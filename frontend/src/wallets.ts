// The wallets of this browser (EIP-6963), and the purse where the money has no value.
import { page } from "./page";
import type { Signer, TypedData } from "./payment";

interface Provider {
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

/** Call `found` for each wallet, the late ones too; a wallet that announces itself twice is one. */
export function discover(found: (wallet: Wallet) => void): void {
  const seen = new Set<string>();
  window.addEventListener("eip6963:announceProvider", (event) => {
    const { info, provider } = (event as CustomEvent<Announced>).detail;
    if (seen.has(info.uuid)) return;
    seen.add(info.uuid);
    const icon = info.icon.startsWith("data:image/") ? info.icon : null;
    found({ id: info.rdns, name: info.name, icon, connect: () => connect(info.name, provider) });
  });
  window.dispatchEvent(new Event("eip6963:requestProvider"));
  // An older wallet only puts itself here.
  const old = (window as { ethereum?: Provider }).ethereum;
  setTimeout(() => {
    if (old && !seen.size)
      found({
        id: "browser",
        name: "Browser wallet",
        icon: null,
        connect: () => connect("Browser wallet", old),
      });
  }, 300);
}

async function connect(name: string, provider: Provider): Promise<Signer> {
  const accounts = (await ask(provider, "eth_requestAccounts")) as string[];
  const address = accounts[0];
  if (!address) throw new Error(`${name} shows no account. Unlock it and try again.`);
  await switchChain(provider);
  return {
    name,
    address,
    sign: async (data: TypedData) =>
      (await ask(provider, "eth_signTypedData_v4", [address, JSON.stringify(data)])) as string,
  };
}

async function switchChain(provider: Provider): Promise<void> {
  const chainId = `0x${page.network.chainId.toString(16)}`;
  try {
    await ask(provider, "wallet_switchEthereumChain", [{ chainId }]);
  } catch (error) {
    const chain = CHAINS[page.network.chainId];
    if ((error as { code?: number }).code !== UNKNOWN_CHAIN || !chain || page.network.isPlay)
      throw error;
    const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
    const added = { chainId, chainName: chain.chainName, rpcUrls: [chain.rpc], nativeCurrency };
    await ask(provider, "wallet_addEthereumChain", [added]);
  }
}

async function ask(provider: Provider, method: string, params: unknown[] = []): Promise<unknown> {
  try {
    return await provider.request({ method, params });
  } catch (error) {
    const { code, message } = error as { code?: number; message?: string };
    const said =
      code === REFUSED
        ? "You declined in the wallet. Nothing was paid."
        : (message ?? "The wallet did not answer.");
    throw Object.assign(new Error(said), { code });
  }
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
