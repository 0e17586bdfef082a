/* Draws the charts of a report from its tables, makes these sortable and downloadable, and switches between light and dark.
   All text comes from the page as text: nothing here makes HTML of it. */
import * as Plot from "@observablehq/plot";

type Cell = string | number | null;

/** A table of the page, as it was written. */
interface Rows {
  names: string[];
  /** Whether a column is shown in percent. */
  isShare: boolean[];
  rows: Cell[][];
}

/** What the page says of a chart: `ChartKind` in document.rs says what its columns are. */
interface Chart {
  kind: "bars" | "spectrum" | "points" | "reliability" | "growth" | "hours" | "ranges";
  columns: number[];
  guessing: number | null;
}

const [size, other, soft, ink, paper] = ["size", "replies", "nothing", "ink", "paper"].map((name) => `var(--${name})`);
/** The width of a letter, in pixels. */
const letter = 7;

function cellOf(cell: HTMLTableCellElement): Cell {
  const exact = cell.dataset.value;
  if (exact === undefined) return cell.textContent;
  return exact === "" ? null : Number(exact);
}

function rowsOf(table: HTMLTableElement): Rows {
  const body = [...table.tBodies[0]!.rows].map((row) => [...row.cells]);
  const names = [...table.tHead!.rows[0]!.cells].map((cell) => cell.textContent ?? "");
  const isShare = names.map((_, at) => body.some((row) => "value" in row[at]!.dataset && row[at]!.textContent!.endsWith(" %")));
  return { names, isShare, rows: body.map((row) => row.map(cellOf)) };
}

/** A dashed line at what guessing reaches. */
function guessed(guessing: number | null, axis: "x" | "y"): Plot.Markish[] {
  if (guessing === null) return [];
  const [rule, place] = axis === "x" ? [Plot.ruleX, { frameAnchor: "top", dy: -8 } as const] : [Plot.ruleY, { frameAnchor: "right", textAnchor: "end", dy: 9 } as const];
  return [rule([guessing], { stroke: soft, strokeDasharray: "4 3" }), Plot.text([guessing], { [axis]: guessing, text: () => "guessing", fill: "var(--soft)", ...place })];
}

function draw({ kind, columns, guessing }: Chart, { names, isShare, rows }: Rows, width: number): Element {
  const at = (column: number) => (row: Cell[]) => row[columns[column]!] as number;
  const name = (row: Cell[]) => String(row[columns[0]!]);
  const known = rows.filter((row) => row[columns[1]!] !== null);
  /** The axis of a column: shares are in percent. */
  const axis = (column: number): Plot.ScaleOptions => {
    const label = names[columns[column]!]!;
    return isShare[columns[column]!] ? { label, tickFormat: (share: number) => `${+(100 * share).toFixed(1)} %` } : { label };
  };
  const isWide = width > 500;
  const frame = { width, marginLeft: 56, marginRight: 28, marginTop: 26, marginBottom: 42, style: { fontSize: "12px" } };
  /** The same with names before rows of this height, in at most a part of the width. */
  const named = (all: string[], height: number) => {
    const marginLeft = Math.min(Math.max(...all.map((each) => each.length), 4) * letter + 20, 0.45 * width);
    const text = { label: null, tickSize: 0, lineWidth: (marginLeft - 10) / 12, textOverflow: "ellipsis" } as const;
    return { frame: { ...frame, marginLeft, height: 64 + all.length * height }, axis: Plot.axisY(text), groups: Plot.axisFy({ ...text, anchor: "left" }) };
  };
  const dot = { r: 4.5, fill: size, stroke: paper };
  switch (kind) {
    case "bars": {
      const domain = rows.map(name);
      const lengths = columns.slice(1).map((column) => names[column]!);
      const isGrouped = lengths.length > 1;
      const bars = rows.flatMap((row) => lengths.map((part, index) => ({ name: name(row), part, value: at(index + 1)(row) })));
      const place = named(domain, isGrouped ? 16 * lengths.length + 8 : 22);
      const x = { ...axis(1), grid: true, nice: true };
      return isGrouped
        ? Plot.plot({ ...place.frame, x: { ...x, label: null }, fy: { domain, label: null, padding: 0.2, axis: null }, y: { axis: null, domain: lengths }, color: { domain: lengths, range: [soft!, size!], legend: true }, marks: [place.groups, Plot.barX(bars, { x: "value", y: "part", fy: "name", fill: "part" }), Plot.ruleX([0], { stroke: ink })] })
        : Plot.plot({ ...place.frame, x, y: { domain, label: null, axis: null }, marks: [place.axis, Plot.barX(bars, { x: "value", y: "name", fill: size }), Plot.ruleX([0], { stroke: ink }), ...guessed(guessing, "x")] });
    }
    case "spectrum": {
      const xs = known.map(at(0));
      const isClock = names[columns[0]!] === "hour";
      const [least, most] = isClock ? [0, 23] : [Math.min(...xs), Math.max(...xs)];
      const thin = { x: at(0), stroke: size, strokeWidth: Math.max(1, Math.min(16, (0.75 * (width - 80)) / (most - least + 1))) };
      const part = columns.length > 2 ? [Plot.ruleX(known, { ...thin, y: at(2) })] : [];
      const marks = [Plot.ruleX(known, { ...thin, y: at(1), strokeOpacity: part.length > 0 ? 0.35 : 1 }), ...part, Plot.ruleY([0], { stroke: ink })];
      return Plot.plot({ ...frame, height: 240, x: { ...axis(0), domain: [least - 1, most + 1], ...(isClock ? { ticks: [0, 6, 12, 18, 23] } : {}) }, y: { ...axis(1), grid: true, nice: true }, marks });
    }
    case "points": {
      const ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10].filter((cost) => cost <= Math.max(...known.map(at(1))) && (isWide || cost >= 0.2 || cost === 0));
      const isBest = (row: Cell[]) => name(row).startsWith("best");
      const marks = [
        ...guessed(guessing, "y"),
        Plot.dot(known, { ...dot, x: at(1), y: at(2), fill: (row: Cell[]) => (isBest(row) ? other! : size!) }),
        Plot.text(apart(known, at(1), at(2), name, width), { x: at(1), y: at(2), text: name, dx: 8, dy: -7, textAnchor: "start", stroke: paper, fill: ink }),
      ];
      return Plot.plot({ ...frame, height: isWide ? 400 : 340, marginRight: isWide ? 116 : 28, x: { ...axis(1), type: "sqrt", grid: true, ticks }, y: { ...axis(2), grid: true, nice: true, zero: true }, marks });
    }
    case "reliability":
    case "growth": {
      const y = { ...axis(1), domain: [0, 1], grid: true };
      const dots = Plot.dot(known, { ...dot, x: at(0), y: at(1) });
      if (kind === "growth") {
        const marks = [Plot.areaY(known, { x: at(0), y1: at(2), y2: at(3), fill: size, fillOpacity: 0.18 }), Plot.line(known, { x: at(0), y: at(1), stroke: size, strokeWidth: 2 }), dots];
        return Plot.plot({ ...frame, height: 280, x: { ...axis(0), type: "log", ticks: rows.map(at(0)), tickFormat: String }, y, marks });
      }
      const marks = [Plot.line([[0, 0], [1, 1]], { stroke: soft, strokeDasharray: "4 3" }), Plot.ruleX(known, { x: at(0), y1: at(2), y2: at(3), stroke: size, strokeWidth: 2 }), dots];
      const edge = Math.min(width, 460);
      return Plot.plot({ ...frame, width: edge, height: 0.85 * edge, x: { ...axis(0), domain: [0, 1], grid: true }, y, marks });
    }
    case "hours": {
      const action = (row: Cell[]) => String(row[columns[1]!]);
      const domain = [...new Set(rows.map(action))];
      const place = named(domain, 26);
      const most = Math.max(...rows.map(at(2)), 0);
      const hours = { label: names[columns[0]!]!, domain: [...Array(24).keys()], tickFormat: (hour: number) => (hour % (isWide ? 2 : 6) ? "" : String(hour)), padding: 0.06 };
      const cells = Plot.cell(rows, { x: at(0), y: action, fill: size, fillOpacity: (row: Cell[]) => 0.12 + (0.88 * at(2)(row)) / most });
      return Plot.plot({ ...place.frame, x: { type: "band", ...hours }, y: { type: "band", domain, label: null, padding: 0.1, axis: null }, opacity: { type: "identity" }, marks: [place.axis, cells] });
    }
    case "ranges": {
      const domain = rows.map(name);
      const place = named(domain, 26);
      const x = { type: "log", label: "microseconds", grid: true, ticks: isWide ? 6 : 3, tickFormat: String } as const;
      const marks = [place.axis, Plot.ruleY(rows, { x1: at(1), x2: at(2), y: name, stroke: size, strokeWidth: 3, strokeLinecap: "round" }), Plot.dot(rows, { ...dot, x: at(1), y: name })];
      return Plot.plot({ ...place.frame, x, y: { type: "band", domain, label: null, axis: null }, marks });
    }
  }
}

type Figure = (row: Cell[]) => number;

/** The points whose names do not lie over those of others, the lowest points first. */
function apart(rows: Cell[][], x: Figure, y: Figure, name: (row: Cell[]) => string, width: number): Cell[][] {
  const [right, top] = [Math.sqrt(Math.max(...rows.map(x))), Math.max(...rows.map(y))];
  const place = (row: Cell[]) => {
    const left = (Math.sqrt(x(row)) / right) * (width - (width > 500 ? 172 : 84));
    return { left, right: left + name(row).length * letter + 8, height: (y(row) / top) * 300 };
  };
  const dots = rows.map(place);
  const kept: Cell[][] = [];
  for (const row of [...rows].sort((one, next) => y(one) - y(next))) {
    const here = place(row);
    const isOff = kept.map(place).every((there) => Math.abs(here.height - there.height) > 16 || here.left > there.right || there.left > here.right);
    // A name stands above its dot, to the right.
    const isFree = isOff && dots.every((there) => there.left < here.left + 6 || there.left > here.right + 6 || there.height < here.height + 1 || there.height > here.height + 18);
    if (isFree && here.right < width - 60) kept.push(row);
  }
  return kept;
}

/** Draws a chart above its table, again whenever the width changes. */
function show(figure: HTMLElement, table: Rows): void {
  const chart = JSON.parse(figure.dataset.chart!) as Chart;
  const place = document.createElement("div");
  figure.querySelector("figcaption")!.after(place);
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.round(place.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    const plot = draw(chart, table, Math.min(width, 860));
    for (const svg of plot.tagName === "svg" ? [plot] : plot.querySelectorAll("svg")) {
      // Other pictures are samples of a legend.
      const isChart = svg.querySelector("g") !== null;
      svg.setAttribute(isChart ? "role" : "aria-hidden", isChart ? "img" : "true");
      if (isChart) svg.setAttribute("aria-label", `${figure.querySelector("h3")!.textContent}. The table below has its figures.`);
    }
    // Names of marks are not for readers, and parts of a picture cannot have any.
    plot.querySelectorAll("g").forEach((part) => part.removeAttribute("aria-label"));
    place.replaceChildren(plot);
  }).observe(place);
}

/** Makes the headings of a table buttons that sort it. */
function makeSortable(table: HTMLTableElement): void {
  const headings = [...table.tHead!.rows[0]!.cells];
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = heading.ariaSort === "ascending" ? -1 : 1;
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
      const keyed = [...table.tBodies[0]!.rows].map((row) => ({ row, key: cellOf(row.cells[at]!) }));
      keyed.sort(({ key: one }, { key: next }) => {
        if (one === null || next === null) return Number(one === null) - Number(next === null);
        return direction * (typeof one === "number" && typeof next === "number" ? one - next : String(one).localeCompare(String(next), "en"));
      });
      table.tBodies[0]!.append(...keyed.map(({ row }) => row));
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
  const turned = (): string => ((root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark" ? "light" : "dark");
  const name = (): void => { button.textContent = `Turn ${turned()}`; };
  button.addEventListener("click", () => {
    root.dataset.theme = turned();
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
// On paper there is nothing to open, and nobody looks up a value in pages of them.
const maxPrinted = 40;
const closed = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")].filter((details) => details.querySelectorAll("tr").length <= maxPrinted);
addEventListener("beforeprint", () => closed.forEach((details) => { details.open = true; }));
addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
