// /button.js for other sites: links with `data-gateway-button` become buttons of this gateway.
// It sends nothing, keeps nothing and reads nothing else of the page.
export {};

const script = document.currentScript as HTMLScriptElement | null;
const origin = script ? new URL(script.src).origin : "";
const style = new CSSStyleSheet();

// As a constructed sheet: a policy of the site against inline styles does not concern it.
style.replaceSync(
  "a[data-gateway-button]{display:inline-block;padding:.6em 1.1em;border-radius:.6em;background:#1d5b8f;color:#fff;" +
    "font:600 1em/1.3 system-ui,sans-serif;text-decoration:none}" +
    "a[data-gateway-button]:hover{background:#174a75}" +
    "a[data-gateway-button]:focus-visible{outline:2px solid #1d5b8f;outline-offset:2px}",
);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, style];

function enhance(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[data-gateway-button]")) {
    // Only links to this gateway's own forms.
    if (link.origin !== origin || !link.pathname.startsWith("/play/")) continue;
    link.target = "_blank";
    // The gateway learns neither the page nor its window.
    link.rel = "noopener noreferrer";
  }
}

enhance();
document.addEventListener("DOMContentLoaded", enhance);
new MutationObserver(enhance).observe(document, { childList: true, subtree: true });
