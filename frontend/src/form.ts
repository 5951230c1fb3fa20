// The form: its fields as a request's body, the file with a preview, what is missing.
import { find, h } from "./common";
import { page } from "./page";

export interface Request {
  body: Record<string, string>;
  file: { name: string; sha256: string } | null;
}

interface Document {
  name: string;
  sha256: string;
  base64: string;
}

const MAX_FILE_BYTES = 7_500_000;
const PREVIEW_CHARS = 1200;
const TEXTS = [".txt", ".md", ".csv", ".html", ".htm", ".json", ".xml"];
const form = find<HTMLFormElement>("request")!;
let chosen: File | null = null;

/** Let the form answer: `changed` after each change, `submitted` with what is asked for. */
export function enhanceForm(changed: () => void, submitted: () => void): void {
  form.addEventListener("input", changed);
  form.addEventListener("input", showTotal);
  // The fields change after the event.
  form.addEventListener("reset", () => queueMicrotask(showTotal));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submitted();
  });
  enhanceIdeas(changed);
  enhanceFile(changed);
  find<HTMLButtonElement>("ask")!.disabled = false;
  // A browser may bring back what was chosen before a reload.
  showTotal();
  // Ctrl-Enter or Cmd-Enter in the text, as everywhere.
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

/** Show the total of the chosen options. Only one field changes the price, and it bears the prices. */
function showTotal(): void {
  const chosen = form.querySelector<HTMLInputElement>("input[data-price]:checked");
  const total = `${chosen?.dataset.price} ${page.network.money}`;
  // A change is read aloud, the same again is not.
  if (chosen && find("total")!.textContent !== total) find("total")!.textContent = total;
}

function enhanceIdeas(changed: () => void): void {
  const ideas = find("ideas");
  if (!ideas) return;
  ideas.hidden = false;
  ideas.addEventListener("click", (event) => {
    const idea = (event.target as HTMLElement).dataset.idea;
    const prompt = form.querySelector<HTMLTextAreaElement>("[name=prompt]");
    if (!idea || !prompt) return;
    prompt.value = idea;
    changed();
    prompt.focus();
  });
}

function enhanceFile(changed: () => void): void {
  const input = find<HTMLInputElement>("file");
  const drop = find("drop");
  if (!input || !drop) return;
  const take = (file: File | undefined) => {
    chosen = file ?? null;
    const files = new DataTransfer();
    if (file) files.items.add(file);
    input.files = files.files;
    void preview(chosen);
    changed();
  };
  input.addEventListener("change", () => take(input.files?.[0]));
  for (const name of ["dragover", "dragleave", "drop"])
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") take((event as DragEvent).dataTransfer?.files[0]);
    });
  const makeSample = findSample();
  if (!makeSample) return;
  const sample = h("button", { type: "button", class: "link", id: "sample" }, "Use a sample");
  sample.addEventListener("click", () =>
    makeSample().then(take, () => complain("The sample cannot be loaded. Choose a file of your own.")),
  );
  drop.append(sample);
}

/** Return what makes a sample that this endpoint takes, if there is one. */
function findSample(): (() => Promise<File>) | null {
  const sample = page.sample;
  if (sample) return () => fetchSample(sample);
  const ending = [".html", ".csv", ".txt"].find((one) => page.extensions.includes(one));
  return ending ? () => Promise.resolve(sampleFile(ending)) : null;
}

async function fetchSample(address: string): Promise<File> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`The answer is ${answer.status}.`);
  const content = await answer.blob();
  return new File([content], `sample${extension(address)}`, { type: content.type });
}

function sampleFile(ending: string): File {
  const rows = [
    ["Region", "Orders", "Revenue"],
    ["North Sea coast", "1204", "148050.00 USD"],
    ["Rhine valley", "986", "111225.00 USD"],
    ["Alps", "512", "61380.00 USD"],
  ];
  const cells = (row: string[]) => row.map((cell) => `<td>${cell}</td>`).join("");
  const table = rows.map((row) => `<tr>${cells(row)}</tr>`).join("");
  const text =
    ending === ".html"
      ? `<h1>Harbour Coffee</h1><p>Sales from 1 July 2026 to 30 September 2026.</p><p>Date: 2 October 2026</p><table>${table}</table><p>Total: 320655.00 USD</p>`
      : rows.map((row) => row.join(",")).join("\n");
  return new File([text], `sample${ending}`);
}

async function preview(file: File | null): Promise<void> {
  const place = find("preview")!;
  place.replaceChildren();
  if (!file) return;
  const size = file.size < 1e6 ? `${Math.ceil(file.size / 1e3)} KB` : `${(file.size / 1e6).toFixed(1)} MB`;
  place.append(h("p", { class: "file" }, h("b", {}, file.name), ` ${size}`));
  if (file.type.startsWith("image/")) {
    const source = URL.createObjectURL(file);
    const picture = h("img", { src: source, alt: `Preview of ${file.name}`, class: "chosen" });
    picture.addEventListener("load", () => URL.revokeObjectURL(source));
    place.append(picture);
  } else if (TEXTS.includes(extension(file.name))) {
    place.append(h("pre", { class: "excerpt" }, await file.slice(0, PREVIEW_CHARS).text()));
  }
}

function extension(name: string): string {
  return name.slice(name.lastIndexOf(".")).toLowerCase();
}

/** Return the fields as they stand, locked or not, without the file's content. */
export function fields(): Record<string, string> {
  const body: Record<string, string> = {};
  for (const field of form.querySelectorAll<HTMLInputElement>("textarea[name], input[name]:checked"))
    if (field.value) body[field.name] = field.value;
  if (chosen) body.fileName = chosen.name;
  return body;
}

/** Return the chosen file if it is a picture. */
export function picture(): File | null {
  return chosen?.type.startsWith("image/") ? chosen : null;
}

/** Return the request; throws a sentence about the first thing that is missing. */
export async function read(): Promise<Request> {
  const body = fields();
  for (const name of page.required)
    if (!body[name] && name !== "fileBase64")
      throw new Error(name === "fileName" ? `Choose a ${page.fileNoun} first.` : `Fill in the ${name} first.`);
  const document = await readDocument();
  if (!document) return { body, file: null };
  const { base64, ...file } = document;
  return { body: { ...body, fileBase64: base64 }, file };
}

/** Return the chosen document, if there is one; throws a sentence about what is wrong with it. */
export async function readDocument(): Promise<Document | null> {
  if (!chosen) return null;
  if (chosen.size > MAX_FILE_BYTES) throw new Error(`The ${page.fileNoun} may have 7.5 MB at most.`);
  if (!page.extensions.includes(extension(chosen.name)))
    throw new Error(`The ${page.fileNoun} must end in one of ${page.extensions.join(", ")}.`);
  return { name: chosen.name, sha256: await fingerprint(chosen), base64: await encode(chosen) };
}

async function encode(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => reject(new Error(`The ${page.fileNoun} cannot be read. Choose it again.`));
    reader.readAsDataURL(file);
  });
}

/** The file's SHA-256; where the browser has none (plain http), its size and time must do. */
async function fingerprint(file: File): Promise<string> {
  if (!crypto.subtle) return `${file.size}-${file.lastModified}`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Say what is wrong below the form; an empty sentence takes it away. */
export function complain(sentence: string): void {
  find("form-error")!.textContent = sentence;
}

/** Let the form be changed; or not, while a purchase is under way; or nothing but its document. */
export function lock(locked: boolean | "all but the document"): void {
  form.querySelector("fieldset")!.disabled = locked === true;
  const others = form.querySelectorAll<HTMLInputElement>("textarea, input:not(#file), #ideas button");
  for (const field of others) field.disabled = locked === "all but the document";
}

/** Fill the form with a request that was kept. */
export function restore(body: Record<string, string>): void {
  for (const [name, value] of Object.entries(body)) {
    const field = form.elements.namedItem(name);
    if (field instanceof RadioNodeList || field instanceof HTMLTextAreaElement) field.value = value;
    else if (field instanceof HTMLInputElement && field.type === "radio") field.checked = true;
  }
  showTotal();
}
