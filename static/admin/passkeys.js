// Passkeys, which browsers offer only to scripts: fetches a challenge, lets the browser sign it, and
// sends the response. The password works without this script.
const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const place = document.querySelector("[data-passkey]");
const problem = document.querySelector("[data-passkey-problem]");

async function ask(path, body) {
  const sent = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, sent || undefined);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function signedBy(credential) {
  const { response } = credential;
  const parts = {};
  for (const name of ["clientDataJSON", "authenticatorData", "signature", "userHandle", "attestationObject"])
    if (response[name]) parts[name] = text(response[name]);
  return { id: credential.id, rawId: text(credential.rawId), type: credential.type, response: parts };
}

async function sign(path) {
  const publicKey = await ask(path);
  return navigator.credentials.get({ publicKey: { ...publicKey, challenge: bytes(publicKey.challenge) } });
}

async function make(path) {
  const asked = await ask(path);
  const excludeCredentials = asked.excludeCredentials.map((one) => ({ ...one, id: bytes(one.id) }));
  const user = { ...asked.user, id: bytes(asked.user.id) };
  return navigator.credentials.create({ publicKey: { ...asked, user, excludeCredentials, challenge: bytes(asked.challenge) } });
}

async function use(what) {
  const path = `/admin/passkeys/${what}`;
  if (what === "new") {
    await ask(path, { ...signedBy(await make(path)), name: document.getElementById("passkey-name").value });
    return location.assign("/admin/access");
  }
  await ask(path, signedBy(await sign(path)));
  if (what === "login") return location.assign(place.dataset.next || "/admin");
  // The session is fresh now, so the form needs no password.
  const form = place.closest("form");
  for (const name of ["password", "code"]) form.elements[name]?.remove();
  form.submit();
}

if (place && window.PublicKeyCredential) {
  place.hidden = false;
  place.querySelector("button").addEventListener("click", async () => {
    problem.hidden = true;
    try {
      await use(place.dataset.passkey);
    } catch (error) {
      problem.textContent = {
        NotAllowedError: "No passkey was used.",
        SecurityError: "Browsers offer passkeys only by a host name: open this page by https, or by http://localhost.",
      }[error.name] || error.message;
      problem.hidden = false;
    }
  });
}
