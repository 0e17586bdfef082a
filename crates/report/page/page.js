// Makes the headings of tables buttons that sort them, and switches between light and dark.
const key = (cell) => cell.dataset.value ?? cell.textContent;
const compared = (one, other, isNumber) => {
  if (one === "" || other === "") return null;
  return isNumber ? one - other : one.localeCompare(other, "en");
};
for (const table of document.querySelectorAll("table")) {
  const [headings, body] = [[...table.tHead.rows[0].cells], table.tBodies[0]];
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = heading.ariaSort === "ascending" ? -1 : 1;
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
      const isNumber = heading.classList.contains("number");
      const rows = [...body.rows].map((row) => [key(row.cells[at]), row]);
      // What is not known comes last either way.
      rows.sort(([one], [other]) => {
        const order = compared(one, other, isNumber);
        return order === null ? (one === "") - (other === "") : direction * order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
const [theme, root] = [document.querySelector("#theme"), document.documentElement];
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const name = () => { theme.textContent = isDark() ? "Turn light" : "Turn dark"; };
theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
name();
theme.hidden = false;
