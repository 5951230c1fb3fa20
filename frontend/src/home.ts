// The front page: it is complete without this script, which adds the search of a large shop.
import { enhance, find } from "./common";

interface Group {
  section: HTMLElement;
  rows: [HTMLElement, string][];
}

function enhanceSearch(form: HTMLFormElement): void {
  const words = find<HTMLInputElement>("words")!;
  const groups = [...document.querySelectorAll<HTMLElement>(".group")].map(read);
  const search = () => {
    const kind = String(new FormData(form).get("kind") ?? "");
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = groups.map((group) => show(group, kind, wanted)).reduce((sum, count) => sum + count, 0);
    const isNarrowed = kind || wanted.length;
    find("found")!.textContent = !isNarrowed ? "" : shown ? `${shown} found.` : "Nothing found. Try fewer words, or All.";
  };
  form.hidden = false;
  form.addEventListener("input", search);
  form.addEventListener("submit", (event) => event.preventDefault());
  // A page that the browser brings back has its words, too.
  if (words.value) search();
}

function read(section: HTMLElement): Group {
  const heading = section.querySelector("h3")?.textContent ?? "";
  const rows = [...section.querySelectorAll<HTMLElement>(".offer")];
  return { section, rows: rows.map((row) => [row, `${row.textContent} ${heading} ${row.dataset.words ?? ""}`.toLowerCase()]) };
}

/** Show a group's rows with all words, and return how many there are. */
function show({ section, rows }: Group, kind: string, wanted: string[]): number {
  const isKind = !kind || section.dataset.kind === kind;
  let count = 0;
  for (const [row, text] of rows) {
    row.hidden = !(isKind && wanted.every((word) => text.includes(word)));
    if (!row.hidden) count += 1;
  }
  section.hidden = count === 0;
  return count;
}

const form = find<HTMLFormElement>("search");
if (form) enhanceSearch(form);
enhance();
