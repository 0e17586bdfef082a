// Opens a report in Chromium, as a reader would, and fails with everything that is wrong with it:
// `node check.mjs PAGE CHROMIUM [FOLDER]`. FOLDER gets pictures of it. Its packages are in .cache/page.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [page_path, chromium, folder] = process.argv.slice(2);
const require = createRequire(join(import.meta.dirname, "../../../.cache/page/package.json"));
const { default: puppeteer } = await import(pathToFileURL(require.resolve("puppeteer-core")).href);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const address = pathToFileURL(resolve(page_path)).href;
const faults = [];
const check = (is_right, fault) => { if (!is_right) faults.push(fault); };

const executablePath = execFileSync("which", [chromium], { encoding: "utf8" }).trim();
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

/** Opens the page with everything watched. */
async function open(width, theme) {
  const page = await browser.newPage();
  const name = `${theme} at ${width} px`;
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    const is_own = request.url() === address || request.url().startsWith("blob:");
    check(is_own, `${name}: asks for ${request.url()}`);
    if (is_own) request.continue(); else request.abort();
  });
  page.on("console", (message) => check(!["error", "warn"].includes(message.type()), `${name}: console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`${name}: ${error}`));
  page.on("dialog", (dialog) => { faults.push(`${name}: a dialog opens`); dialog.dismiss(); });
  await page.goto(address);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return [page, name];
}

/** What a person would see: charts drawn, nothing beyond the edge, no text over another. */
const seen = () => {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`it is ${root.scrollWidth} px wide`);
  for (const svg of document.querySelectorAll(".chart svg")) {
    const figure = svg.closest("figure");
    if (!svg.querySelector("rect, circle, path, line")) faults.push(`${figure.id} is empty`);
    if (!svg.querySelector("title")) faults.push(`${figure.id} has no name`);
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
    const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    boxes.forEach(([one, a], at) => boxes.slice(at + 1).forEach(([other, b]) => {
      const over = Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
      if (over) faults.push(`${figure.id}: “${one}” lies over “${other}”`);
    }));
    const frame = root.getBoundingClientRect();
    for (const [text, box] of boxes) if (box.left < frame.left - 1 || box.right > frame.right + 1) faults.push(`${figure.id}: “${text}” is cut`);
  }
  return faults;
};

/** Sorts every table from the keyboard, both ways. */
async function sort_by_keyboard(page, name) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  const buttons = await page.$$("th button");
  check(buttons.length > 0, `${name}: no table can be sorted`);
  for (const button of buttons) {
    await button.focus();
    for (const direction of ["ascending", "descending"]) {
      await page.keyboard.press("Enter");
      const fault = await button.evaluate((button, direction) => {
        const heading = button.closest("th");
        const title = `${button.closest("figure").id}, ${button.textContent}`;
        if (heading.getAttribute("aria-sort") !== direction) return `${title}: does not say that it is sorted`;
        const cells = [...button.closest("table").tBodies[0].rows].map((row) => row.cells[heading.cellIndex]);
        const keys = cells.map((cell) => cell.dataset.value ?? cell.textContent).filter((key) => key !== "");
        const sign = direction === "ascending" ? 1 : -1;
        const is_number = cells.every((cell) => "value" in cell.dataset);
        const order = (one, other) => (is_number ? one - other : one.localeCompare(other, "en"));
        return keys.some((key, at) => at > 0 && sign * order(keys[at - 1], key) > 0) ? `${title}: not ${direction}` : null;
      }, direction);
      check(fault === null, `${name}: ${fault}`);
    }
  }
  return buttons.length;
}

let charts = 0;
let headings = 0;
for (const theme of ["light", "dark"]) {
  for (const width of [1280, 360]) {
    const [page, name] = await open(width, theme);
    for (const fault of await page.evaluate(seen)) faults.push(`${name}: ${fault}`);
    charts = await page.$$eval(".chart svg[role=img]", (all) => all.length);
    if (folder) {
      await page.screenshot({ path: join(folder, `${theme}-${width}-first.png`) });
      await page.screenshot({ path: join(folder, `${theme}-${width}.png`), fullPage: true });
    }
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
    for (const { id, impact, help, nodes } of violations) {
      if (["serious", "critical"].includes(impact)) faults.push(`${name}: ${id}: ${help}: ${nodes[0].html} ${nodes[0].failureSummary}`);
    }
    if (theme === "light") headings = await sort_by_keyboard(page, name);
    await page.focus("#theme");
    await page.keyboard.press("Enter");
    const scheme = await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    check(scheme === (theme === "light" ? "dark" : "light"), `${name}: the theme does not change`);
    await page.close();
  }
}
const [page, name] = await open(794, "dark");
const pdf = await page.pdf({ format: "A4", printBackground: false, margin: { top: "15mm", bottom: "15mm", left: "15mm", right: "15mm" } });
check(pdf.length > 10_000, `${name}: nothing is printed`);
if (folder) writeFileSync(join(folder, "print.pdf"), pdf);
await browser.close();
console.log(`${charts} charts, ${headings} headings that sort, ${faults.length} faults`);
faults.forEach((fault) => console.error(fault));
process.exitCode = faults.length > 0 ? 1 : 0;
