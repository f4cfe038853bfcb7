"use strict";
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const lines = [...button.nextElementSibling.querySelectorAll(".add")].map((line) => line.textContent.slice(1).trimEnd());
    navigator.clipboard.writeText(lines.join("\n") + "\n").then(() => { button.textContent = "Copied"; });
  });
}
const key = (row, place) => {
  const cell = row.cells[place];
  const number = cell.dataset.value;
  return number === undefined ? cell.textContent.trim() : Number(number);
};
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  for (const head of table.querySelectorAll("th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    if (!button.textContent.trim()) continue;
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
      rows.sort(([a], [b]) => (typeof a === "number" ? a - b : a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1));
      body.append(...rows.map(([, row]) => row));
    });
  }
}
for (const input of document.querySelectorAll(".filter input")) {
  input.parentElement.parentElement.hidden = false;
  const table = input.closest("details").querySelector("table.sortable");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
const open = (place) => {
  for (let at = place && document.getElementById(place); at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (place) document.getElementById(place)?.scrollIntoView();
};
addEventListener("hashchange", () => open(location.hash.slice(1)));
open(location.hash.slice(1));
addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
