// Links that fill the form: /play/{slug}?prompt=… . Opening one asks for nothing and buys nothing.
import { page } from "./page";

export interface Linked {
  fields: Record<string, string>;
  /** Sentences about values that were left out. */
  left: string[];
}

// A link carries no file: `fileUrl` is for programs, and this page fetches nothing of strangers.
const FILE_FIELDS = ["fileBase64", "fileName", "fileUrl"];
const SHOWN_CHARS = 40;

/** The name of a field for people. */
export function label(name: string): string {
  return name.replaceAll("_", " ");
}

/** Read the fields of a query that this page's form has. Whoever made the link chose the values. */
export function readLink(query: string): Linked {
  const given = new URLSearchParams(query);
  const linked: Linked = { fields: {}, left: [] };
  for (const [name, field] of Object.entries(page.schema.properties)) {
    const value = given.get(name);
    if (!value || FILE_FIELDS.includes(name)) continue;
    if (field.enum && !field.enum.includes(value)) linked.left.push(`The ${label(name)} “${cut(value)}” is not offered here.`);
    else if (value.length > (field.maxLength ?? Infinity)) linked.left.push(`The ${label(name)} is longer than ${field.maxLength} characters.`);
    else linked.fields[name] = value;
  }
  if (page.extensions?.length && FILE_FIELDS.some((name) => given.has(name)))
    linked.left.push(`A link carries no file: choose the ${page.fileNoun} yourself.`);
  return linked;
}

/** Return the link that fills the form with a request; a file and defaults are left out. */
export function makeLink(body: Record<string, string>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(body)) {
    const field = page.schema.properties[name];
    if (field && !FILE_FIELDS.includes(name) && value !== field.default) query.set(name, value);
  }
  const text = query.toString();
  return `${page.baseUrl}/play/${page.slug}${text ? `?${text}` : ""}`;
}

function cut(text: string): string {
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}
