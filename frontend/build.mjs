// Builds ../static/web: hashed names, a manifest of them, and the licences of what is bundled.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "static", "web");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

// Left out of @base-org/account: its telemetry, which is off, and its fonts, which the policy of the
// pages forbids. Both would be 136 KB.
const leftOut = {
  "core/telemetry/initCCA.js": "export const loadTelemetryScript = async () => {};",
  "ui/assets/injectFontStyle.js": "export const injectFontStyle = () => {};",
};
const unused = new Set(Object.keys(leftOut));
const slimming = {
  name: "slimming",
  setup({ onLoad }) {
    onLoad({ filter: /@base-org\/account\/dist\/.*\.js$/ }, ({ path }) => {
      const name = path.split("/account/dist/")[1];
      if (!(name in leftOut)) return undefined;
      unused.delete(name);
      return { contents: leftOut[name], loader: "js" };
    });
  },
};

const shared = {
  absWorkingDir: here,
  bundle: true,
  // A path is part of a hash: packages behind a link keep theirs.
  preserveSymlinks: true,
  minify: true,
  target: ["es2022", "chrome111", "firefox113", "safari16.4"],
  legalComments: "none",
  entryNames: "[name]-[hash]",
  outdir: out,
  metafile: true,
  plugins: [slimming],
  logLevel: "warning",
};
const result = await build({
  ...shared,
  entryPoints: ["home", "play", "task", "purchases"].map((name) => `src/${name}.ts`).concat("src/styles.css"),
  splitting: true,
  format: "esm",
  chunkNames: "[name]-[hash]",
});
// For other sites: a plain script that leaves no names in their pages.
const button = await build({ ...shared, entryPoints: ["src/button.ts"], format: "iife" });

if (unused.size) throw new Error(`@base-org/account has no ${[...unused].join(", ")} any more`);

// By the name of the source: play.ts is play.js to a template.
const manifest = {};
for (const [file, { entryPoint }] of Object.entries({ ...result.metafile.outputs, ...button.metafile.outputs })) {
  const name = basename(file);
  manifest[entryPoint ? basename(entryPoint).replace(/\.ts$/, ".js") : name] = name;
}

function keep(source, data) {
  const hash = createHash("sha256").update(data).digest("hex").slice(0, 8).toUpperCase();
  const dot = source.lastIndexOf(".");
  manifest[source] = `${source.slice(0, dot)}-${hash}${source.slice(dot)}`;
  writeFileSync(join(out, manifest[source]), data);
}

const pictures = join(here, "pictures");
for (const name of readdirSync(pictures).sort()) keep(name, readFileSync(join(pictures, name)));
keep("licenses.txt", Buffer.from(licences(Object.keys(result.metafile.inputs))));
// The style of the dialog that asks to open Base Account's window again if the browser blocked it.
const dialog = join(here, "node_modules", "@base-org", "account", "dist", "ui", "Dialog", "Dialog-css.js");
const { default: style } = await import(pathToFileURL(dialog));
const hash = createHash("sha256").update(style).digest("base64");
writeFileSync(join(out, "policy.json"), `${JSON.stringify({ styles: [`sha256-${hash}`] })}\n`);
const sorted = Object.fromEntries(Object.entries(manifest).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(join(out, "manifest.json"), `${JSON.stringify(sorted, null, 2)}\n`);

// The licence of each package of which a file went into the build.
function licences(inputs) {
  const packages = new Set();
  for (const path of inputs) {
    const match = path.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//);
    if (match) packages.add(match[1]);
  }
  return [...packages].sort().map((folder) => {
    const root = join(here, folder);
    const { name, version, license } = JSON.parse(readFileSync(join(root, "package.json")));
    const file = readdirSync(root).sort().find((one) => /^licen[cs]e(-mit)?(\.\w+)?$/i.test(one));
    if (!file) throw new Error(`${name} has no licence file`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(root, file), "utf8").trim()}\n`;
  }).join(`\n${"-".repeat(72)}\n\n`);
}
