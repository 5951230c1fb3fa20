// What a purchase needs once it has a price: one chunk, loaded while the price is asked.
export { noWallet, otherWays, resumeTransfer } from "./anywallet";
export { facts, receipt } from "./result";
export { address, faucet, playWarning } from "./reviewparts";
export { showEnd, showProgress, steps } from "./track";
