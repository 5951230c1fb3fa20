// Markdown as HTML, loaded only for a parsed document. markdown-it writes HTML of the document's
// text as text (`html: false`) and refuses links with scripts; the page's policy runs none either.
import MarkdownIt from "markdown-it";

const reader = new MarkdownIt({ html: false, linkify: false });
// A document's pictures would be fetched from a stranger.
reader.disable("image");
reader.renderer.rules.link_open = (tokens, index, options, _, self) => {
  tokens[index]!.attrSet("rel", "noopener noreferrer nofollow");
  tokens[index]!.attrSet("target", "_blank");
  return self.renderToken(tokens, index, options);
};
// The policy forbids style attributes, which are how a table's columns are aligned.
for (const rule of ["th_open", "td_open"])
  reader.renderer.rules[rule] = (tokens, index, options, _, self) => {
    const token = tokens[index]!;
    if (/right/.test(String(token.attrGet("style")))) token.attrSet("class", "n");
    token.attrs = token.attrs?.filter(([name]) => name !== "style") ?? null;
    return self.renderToken(tokens, index, options);
  };

export function render(text: string): string {
  return reader.render(text);
}
