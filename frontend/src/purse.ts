// A purse with a key in memory, loaded only when a buyer chooses it: signing takes 30 KB.
import { addr, signTyped } from "micro-eth-signer";
import type { Signer, TypedData } from "./payment";

let fresh: string | null = null;

/** Open the purse: with the demo's key, or with a new key that this page forgets. */
export function open(name: string, playKey: string | null): Signer {
  const key = playKey ?? (fresh ??= addr.random().privateKey);
  return {
    name,
    address: addr.fromPrivateKey(key),
    sign: async (data: TypedData) => {
      const { value, validAfter, validBefore } = data.message;
      const numbers = {
        value: BigInt(value),
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
      };
      const domain = { ...data.domain, chainId: BigInt(data.domain.chainId) };
      const typed: unknown = { ...data, domain, message: { ...data.message, ...numbers } };
      return signTyped(typed as Parameters<typeof signTyped>[0], key);
    },
  };
}
