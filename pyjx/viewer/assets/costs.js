// What costs most: the user's lines, parts of the program, operations. First on the page.

/** What can be ranked: its name, how an amount is shown, and what an amount is. */
const RANKINGS = {
  time: { title: "Time", show: percent },
  array: { title: "Largest array", show: bytes,
           note: "The bytes of the largest array that is made there." },
  crossing: { title: "Between devices", show: bytes,
              note: "The bytes of what crosses between devices, or to the host, in all runs." },
};
const SHOWN_COSTS = 40;  // of a table
const LEAST_PART = 0.01;  // of the whole; smaller parts are left out

class CostTables {
  /** `go(form, row)` is called for what is chosen. */
  constructor(element, program, go) {
    this.element = element;
    this.program = program;
    this.form = program.forms[program.forms.length - 1];
    this.by = "time";
    const choices = Object.entries(RANKINGS).map(([key, { title }]) =>
      `<button type="button" data-by="${key}">${title}</button>`).join("");
    element.innerHTML = `<div class="chart-head">
        <div class="switches" role="group" aria-label="Rank by">${choices}</div>
        <span class="hint"></span></div>
      <div class="tables"></div>`;
    this.hint = element.querySelector(".hint");
    this.tables = element.querySelector(".tables");
    element.addEventListener("click", (event) => {
      const choice = event.target.closest("[data-by]");
      const link = event.target.closest("[data-row]");
      if (choice) this.rank(choice.dataset.by);
      if (link) go(program.forms[link.dataset.form ?? this.form.index], Number(link.dataset.row));
    });
    this.rank("time");
  }

  rank(by) {
    this.by = by;
    for (const button of this.element.querySelectorAll("[data-by]")) {
      button.setAttribute("aria-pressed", String(button.dataset.by === by));
    }
    const how = this.program.measured ? "Measured." : "Estimated by arithmetic and memory traffic.";
    this.hint.textContent = this.form.unsized ? "Not known, as sizes are symbols."
      : `${RANKINGS[by].note ?? how} From ${this.form.title}.`;
    const { lines, operations } = this.program.costs[by];
    this.tables.innerHTML = [
      this.table("Lines", lines.map(([file, line, ...rest]) => [this.line(file, line), ...rest])),
      this.parts(),
      this.table("Operations", operations.map(([name, amount, count, row]) => [
        `<code class="op">${escapeHtml(this.program.strings[name])}</code> ` +
        `<small>×${count.toLocaleString("en")}</small>`, amount, count, row])),
    ].join("");
  }

  line(file, line) {
    if (!line) return "<small>of no line</small>";
    const path = this.program.strings[file];
    const text = (this.program.source[path]?.[line] ?? "").trim();
    return `<small title="${escapeHtml(path)}">${escapeHtml(baseName(path))}:${line}</small>` +
      `<code title="${escapeHtml(text)}">${escapeHtml(text)}</code>`;
  }

  /** Rows of [HTML, amount, count, row of the program]. */
  table(title, rows) {
    const most = rows.length ? rows[0][1] : 1;
    const items = rows.slice(0, SHOWN_COSTS).map(([html, amount, , row]) =>
      `<li>${this.entry(html, amount, amount / most, row)}</li>`);
    return `<section><h3>${title}</h3>${items.length ? `<ol>${items.join("")}</ol>`
      : this.none()}</section>`;
  }

  none() {
    const what = this.form.unsized ? "Not known." : this.by === "crossing" ? "Nothing crosses." : "None.";
    return `<p class="hint">${what}</p>`;
  }

  entry(html, amount, share, row, depth = 0, form = this.form) {
    const indent = depth ? ` style="padding-left:${depth * INDENT}px"` : "";
    return `<button type="button" class="link cost-link" data-row="${row}" ` +
      `data-form="${form.index}"><span class="bar-of">` +
      `<i style="width:${(100 * share).toFixed(1)}%"></i></span>` +
      `<b>${RANKINGS[this.by].show(amount)}</b><span class="what"${indent}>${html}</span></button>`;
  }

  /** Functions, or named scopes, each with those inside it; the dearest first. */
  parts() {
    const { scopes, strings, forms, costs } = this.program;
    const inside = new Map(), rest = [];
    for (const part of costs[this.by].parts) {  // of [node, amount, row]
      const parent = part[0] < 0 ? null : scopes.parent[part[0]];
      if (parent === null) rest.push(part);
      else inside.set(parent, [...(inside.get(parent) ?? []), part]);
    }
    const most = Math.max(...costs[this.by].parts.map(([, amount]) => amount));
    const items = [];
    const add = (parent, depth) => {
      for (const [node, amount, row] of inside.get(parent) ?? []) {
        if (amount < LEAST_PART * most || items.length >= 3 * SHOWN_COSTS) continue;
        items.push(`<li>${this.entry(
          `<code>${escapeHtml(shortName(strings[scopes.label[node]]))}</code>`, amount,
          amount / most, row, depth, forms[0])}</li>`);
        add(node, depth + 1);
      }
    };
    let top = -1;  // what does nothing but call one other function says nothing
    for (let only = inside.get(top); only?.length === 1; only = inside.get(top)) {
      const [[node, whole]] = only, below = inside.get(node) ?? [];
      if (this.by === "array" || below.length !== 1 || below[0][1] < 0.995 * whole) break;
      top = node;
    }
    add(top, 0);
    for (const [, amount, row] of rest.filter((part) => part[1] >= 0.001 * most)) {
      items.push(`<li>${this.entry("<small>of no function</small>", amount, amount / most, row)}</li>`);
    }
    return `<section><h3>Functions and scopes</h3>${items.length ? `<ol>${items.join("")}</ol>`
      : this.none()}</section>`;
  }
}

/** A function's name without those around it. */
function shortName(name) {
  return name.replace(/^.*<locals>\./, "");
}
