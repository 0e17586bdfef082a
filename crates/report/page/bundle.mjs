// Checks the page's code and bundles it with what it uses of its libraries into one file, with their licences. That file is
// committed, so that only who changes the page needs npm: `npm ci && node bundle.mjs`. An argument names another output.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

process.chdir(import.meta.dirname);
execFileSync("node_modules/.bin/tsc", { stdio: "inherit" });
const { outputFiles, metafile } = await build({
  // That of the process is where it began.
  absWorkingDir: import.meta.dirname,
  entryPoints: ["report.ts"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
  outdir: ".",
});

/** The packages of which something is in the bundle, by the text of their licence. */
const licences = new Map();
const used = Object.entries(Object.values(metafile.outputs)[0].inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const names = new Set(used.flatMap(([path]) => path.match(/.*node_modules\/((@[^/]+\/)?[^/]+)/)?.[1] ?? []));
for (const name of [...names].sort()) {
  const folder = `node_modules/${name}`;
  const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  const text = readFileSync(`${folder}/${file}`, "utf8").replace(/^(ISC|The MIT) License.*\n/m, "");
  const paragraphs = text.split(/\n\s*\n/).map((paragraph) => paragraph.trim().replace(/\s+/g, " "));
  const owners = paragraphs.filter((paragraph) => /^copyright/i.test(paragraph));
  const terms = paragraphs.filter((paragraph) => paragraph && !owners.includes(paragraph)).join("\n");
  licences.set(terms, [...(licences.get(terms) ?? []), `${name}: ${owners.join("; ")}`]);
}
const notices = [...licences].map(([terms, packages]) => `${packages.join("\n")}\n\n${terms}\n`).join("\n");
if (notices.includes("*/")) throw new Error("a licence would end the comment that it is in");
writeFileSync(process.argv[2] ?? "bundle.js", `/*!\n${notices}*/\n${outputFiles[0].text}`);
