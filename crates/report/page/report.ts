/* Draws the charts of a report from its tables, makes these sortable and downloadable, and switches between light and dark.
   All text comes from the page as text: nothing here makes HTML of it. */
import * as Plot from "@observablehq/plot";

type Cell = string | number | null;
type Chart =
  | { kind: "bars"; label: number; values: number[]; guessing: number | null }
  | { kind: "spectrum"; x: number; y: number; part: number | null }
  | { kind: "points"; label: number; x: number; y: number; floor: number; guessing: number }
  | { kind: "intervals"; x: number; y: [number, number, number]; line: "diagonal" | "doubling" }
  | { kind: "field"; x: number; y: number; shade: number }
  | { kind: "ranges"; label: number; values: [number, number, number] };

/** A table of the page, as it was written. */
interface Rows {
  names: string[];
  /** Whether a column is shown in percent. */
  isShare: boolean[];
  rows: Cell[][];
}

const colours = ["var(--size)", "var(--replies)", "var(--nothing)"];
const [sizeColour, , softColour] = colours;
/** The width of a letter of an axis, in pixels. */
const letter = 6.4;

function cellOf(cell: HTMLTableCellElement): Cell {
  const exact = cell.dataset.value;
  if (exact === undefined) return cell.textContent;
  return exact === "" ? null : Number(exact);
}

function rowsOf(table: HTMLTableElement): Rows {
  const body = [...table.tBodies[0]!.rows].map((row) => [...row.cells]);
  const names = [...table.tHead!.rows[0]!.cells].map((cell) => cell.textContent ?? "");
  const isShare = names.map((_, at) => body.some((row) => row[at]!.textContent!.endsWith(" %") && "value" in row[at]!.dataset));
  return { names, isShare, rows: body.map((row) => row.map(cellOf)) };
}

/** The scale of a column: shares are shown in percent. */
function scaleOf({ names, isShare }: Rows, column: number): Plot.ScaleOptions {
  const label = names[column]!;
  return isShare[column] ? { label, percent: false, tickFormat: (share: number) => `${+(100 * share).toFixed(1)} %` } : { label };
}

function guessingLine(guessing: number | null, is: "x" | "y", width: number): Plot.Markish[] {
  if (guessing === null) return [];
  const line = { stroke: softColour, strokeDasharray: "4 3" };
  const text = { text: ["guessing"], fill: "var(--soft)" };
  return is === "x"
    ? [Plot.ruleX([guessing], line), Plot.text([guessing], { ...text, x: guessing, frameAnchor: "top", dy: -8 })]
    : [Plot.ruleY([guessing], line), Plot.text([guessing], { ...text, y: guessing, frameAnchor: "right", textAnchor: "end", dx: width > 500 ? 0 : 4, dy: 9 })];
}

/** Room for names before a chart, at most a part of its width. */
function roomFor(names: string[], width: number): number {
  return Math.min(Math.max(...names.map((name) => name.length), 4) * letter + 16, width * 0.45);
}

function draw(chart: Chart, table: Rows, width: number): Element {
  const { rows } = table;
  const at = (column: number) => (row: Cell[]) => row[column] as number;
  const named = (column: number) => rows.map((row) => String(row[column]));
  const grid = { grid: true, nice: true };
  switch (chart.kind) {
    case "bars": {
      const names = named(chart.label);
      const bars = rows.flatMap((row) => chart.values.map((value) => ({ name: String(row[chart.label]), part: table.names[value]!, value: row[value] as number })));
      const isGrouped = chart.values.length > 1;
      const parts = chart.values.map((value) => table.names[value]!);
      const marginLeft = roomFor(names, width);
      return Plot.plot({
        width, marginLeft, marginTop: chart.guessing === null ? 8 : 22, marginRight: 30, marginBottom: 38,
        height: 60 + rows.length * (isGrouped ? 16 * chart.values.length + 8 : 22),
        x: { ...scaleOf(table, chart.values[0]!), ...grid, label: isGrouped ? null : table.names[chart.values[0]!]! },
        ...(isGrouped
          ? { fy: { domain: names, label: null, padding: 0.2, axis: null }, y: { axis: null, domain: parts }, color: { domain: parts, range: [softColour!, sizeColour!], legend: true } }
          : { y: { domain: names, label: null, axis: null } }),
        marks: [
          isGrouped
            ? Plot.axisFy({ anchor: "left", label: null, lineWidth: marginLeft / 12 - 1, textOverflow: "ellipsis" })
            : Plot.axisY({ label: null, tickSize: 0, lineWidth: marginLeft / 12 - 1, textOverflow: "ellipsis" }),
          Plot.barX(bars, isGrouped ? { x: "value", y: "part", fy: "name", fill: "part" } : { x: "value", y: "name", fill: sizeColour }),
          Plot.ruleX([0], { stroke: "var(--ink)" }),
          ...guessingLine(chart.guessing, "x", width),
        ],
      });
    }
    case "spectrum": {
      const xs = rows.map(at(chart.x));
      const [least, most] = [Math.min(...xs), Math.max(...xs)];
      const thin = { x: at(chart.x), strokeWidth: Math.max(1, Math.min(16, (0.75 * (width - 80)) / (most - least + 1))) };
      const light = chart.part === null ? {} : { strokeOpacity: 0.35 };
      return Plot.plot({
        width, height: 240, marginLeft: 48, marginBottom: 38,
        x: { label: table.names[chart.x]!, domain: [least - 1, most + 1] },
        y: { ...scaleOf(table, chart.y), ...grid },
        marks: [
          Plot.ruleX(rows, { ...thin, ...light, y: at(chart.y), stroke: sizeColour }),
          ...(chart.part === null ? [] : [Plot.ruleX(rows, { ...thin, y: at(chart.part), stroke: sizeColour })]),
          Plot.ruleY([0], { stroke: "var(--ink)" }),
        ],
      });
    }
    case "points": {
      const shown = rows.filter((row) => row[chart.x] !== null);
      return Plot.plot({
        width, height: width > 500 ? 400 : 340, marginLeft: 52, marginRight: width > 500 ? 110 : 24, marginBottom: 40, marginTop: 24,
        x: { ...scaleOf(table, chart.x), type: "sqrt", grid: true },
        y: { ...scaleOf(table, chart.y), ...grid, zero: true },
        marks: [
          ...guessingLine(chart.guessing, "y", width),
          Plot.line(shown.filter((row) => row[chart.floor] !== null), { x: at(chart.x), y: at(chart.floor), stroke: softColour, strokeWidth: 1.5 }),
          Plot.dot(shown, { x: at(chart.x), y: at(chart.y), r: 4, fill: (row: Cell[]) => (String(row[chart.label]).startsWith("best") ? colours[1]! : sizeColour!), stroke: "var(--paper)" }),
          Plot.text(apart(shown, chart, width), { x: at(chart.x), y: at(chart.y), text: (row: Cell[]) => String(row[chart.label]), dx: 8, dy: -6, textAnchor: "start", stroke: "var(--paper)", fill: "var(--ink)" }),
        ],
      });
    }
    case "intervals": {
      const [middle, low, high] = chart.y;
      const shown = rows.filter((row) => row[middle] !== null);
      const isDiagonal = chart.line === "diagonal";
      const ticks = rows.map(at(chart.x));
      return Plot.plot({
        width: isDiagonal ? Math.min(width, 460) : width, height: isDiagonal ? Math.min(width, 460) * 0.85 : 280, marginLeft: 52, marginRight: 24, marginBottom: 40,
        x: { ...scaleOf(table, chart.x), ...(isDiagonal ? { domain: [0, 1], grid: true } : { type: "log", ticks, tickFormat: (x: number) => String(x) }) },
        y: { ...scaleOf(table, middle), domain: [0, 1], grid: true },
        marks: [
          isDiagonal
            ? Plot.line([[0, 0], [1, 1]], { stroke: softColour, strokeDasharray: "4 3" })
            : [Plot.areaY(shown, { x: at(chart.x), y1: at(low), y2: at(high), fill: sizeColour, fillOpacity: 0.18 }), Plot.line(shown, { x: at(chart.x), y: at(middle), stroke: sizeColour, strokeWidth: 2 })],
          isDiagonal ? Plot.ruleX(shown, { x: at(chart.x), y1: at(low), y2: at(high), stroke: sizeColour, strokeWidth: 2 }) : null,
          Plot.dot(shown, { x: at(chart.x), y: at(middle), fill: sizeColour, stroke: "var(--paper)", r: 4.5 }),
        ],
      });
    }
    case "field": {
      const names = [...new Set(named(chart.y))];
      const most = Math.max(...rows.map(at(chart.shade)), 0);
      const marginLeft = roomFor(names, width);
      return Plot.plot({
        width, marginLeft, marginBottom: 38, marginTop: 8, height: 60 + names.length * 26,
        x: { type: "band", label: table.names[chart.x]!, domain: [...Array(24).keys()], tickFormat: (hour: number) => (hour % (width > 500 ? 2 : 6) ? "" : String(hour)), padding: 0.06 },
        y: { type: "band", domain: names, label: null, padding: 0.1, axis: null },
        marks: [
          Plot.axisY({ label: null, tickSize: 0, lineWidth: marginLeft / 12 - 1, textOverflow: "ellipsis" }),
          Plot.cell(rows, { x: at(chart.x), y: (row: Cell[]) => String(row[chart.y]), fill: sizeColour, fillOpacity: (row: Cell[]) => 0.12 + (0.88 * (row[chart.shade] as number)) / most }),
        ],
        opacity: { type: "identity" },
      });
    }
    case "ranges": {
      const [low, middle, high] = chart.values;
      const names = named(chart.label);
      const marginLeft = roomFor(names, width);
      const label = (row: Cell[]) => String(row[chart.label]);
      return Plot.plot({
        width, marginLeft, marginRight: 30, marginTop: 8, marginBottom: 38, height: 60 + names.length * 26,
        x: { type: "log", label: "microseconds", grid: true, ticks: width > 500 ? 6 : 3, tickFormat: (x: number) => String(x) },
        y: { type: "band", domain: names, label: null, axis: null },
        marks: [
          Plot.axisY({ label: null, tickSize: 0, lineWidth: marginLeft / 12 - 1, textOverflow: "ellipsis" }),
          Plot.ruleY(rows, { x1: at(low), x2: at(high), y: label, stroke: sizeColour, strokeWidth: 3, strokeLinecap: "round" }),
          Plot.dot(rows, { x: at(middle), y: label, r: 4.5, fill: sizeColour, stroke: "var(--paper)" }),
        ],
      });
    }
  }
}

/** The points whose names do not lie over those of points before them: the lowest first, which hide most. */
function apart(rows: Cell[][], chart: { label: number; x: number; y: number }, width: number): Cell[][] {
  const range = (column: number, scale: (x: number) => number) => Math.max(...rows.map((row) => scale(row[column] as number)), 1e-9);
  const [right, top] = [range(chart.x, Math.sqrt), range(chart.y, (y) => y)];
  const place = (row: Cell[]) => ({
    x: (Math.sqrt(row[chart.x] as number) / right) * (width > 500 ? width - 162 : width - 76),
    y: ((row[chart.y] as number) / top) * 320,
    long: String(row[chart.label]).length * letter,
  });
  const kept: Cell[][] = [];
  for (const row of [...rows].sort((one, other) => (one[chart.y] as number) - (other[chart.y] as number))) {
    const here = place(row);
    const isFree = kept.map(place).every((there) => Math.abs(here.y - there.y) > 14 || here.x > there.x + there.long || there.x > here.x + here.long);
    if (isFree && here.x + here.long < width - 56) kept.push(row);
  }
  return kept;
}

/** Draws a chart above its table, again whenever the width changes. */
function show(figure: HTMLElement, table: Rows): void {
  const chart = JSON.parse(figure.dataset.chart!) as Chart;
  const place = document.createElement("div");
  const title = figure.querySelector("h3")!.textContent!;
  figure.querySelector("figcaption")!.after(place);
  let drawn = 0;
  const redraw = (): void => {
    const width = Math.round(place.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    const plot = draw(chart, table, Math.min(width, 860));
    for (const svg of [plot, ...plot.querySelectorAll("svg")]) {
      if (svg.tagName !== "svg") continue;
      const isChart = svg.querySelector("g") !== null;
      svg.setAttribute(isChart ? "role" : "aria-hidden", isChart ? "img" : "true");
      if (isChart) svg.setAttribute("aria-label", `${title}. The table below has its figures.`);
    }
    place.replaceChildren(plot);
  };
  new ResizeObserver(redraw).observe(place);
  redraw();
}

/** Makes the headings of a table buttons that sort it. */
function makeSortable(table: HTMLTableElement): void {
  const body = table.tBodies[0]!;
  const headings = [...table.tHead!.rows[0]!.cells];
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = heading.ariaSort === "ascending" ? -1 : 1;
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
      const keyed = [...body.rows].map((row) => ({ row, key: cellOf(row.cells[at]!) }));
      keyed.sort(({ key: one }, { key: other }) => {
        if (one === null || other === null) return Number(one === null) - Number(other === null);
        return direction * (typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en"));
      });
      body.append(...keyed.map(({ row }) => row));
    });
  });
}

/** A field of CSV (RFC 4180); what a spreadsheet would take for a formula is text. */
function field(cell: Cell): string {
  const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : String(cell ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function addDownload(figure: HTMLElement, { names, rows }: Rows): void {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "download";
  button.textContent = `Download ${figure.id}.csv`;
  button.addEventListener("click", () => {
    const csv = [names, ...rows].map((row) => `${row.map(field).join(",")}\r\n`).join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    link.download = `${figure.id}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  figure.querySelector("details")!.append(button);
}

function addThemes(): void {
  const button = document.querySelector<HTMLButtonElement>("#theme")!;
  const root = document.documentElement;
  const isDark = (): boolean => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = (): void => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  name();
  button.hidden = false;
}

for (const figure of document.querySelectorAll<HTMLElement>("figure")) {
  const table = figure.querySelector("table")!;
  const rows = rowsOf(table);
  if (rows.rows.length > 0) {
    if (figure.dataset.chart) show(figure, rows);
    addDownload(figure, rows);
  }
  makeSortable(table);
}
addThemes();
// On paper there is nothing to open.
const opened: HTMLDetailsElement[] = [];
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll<HTMLDetailsElement>("details:not([open])")) {
    details.open = true;
    opened.push(details);
  }
});
addEventListener("afterprint", () => opened.splice(0).forEach((details) => { details.open = false; }));
