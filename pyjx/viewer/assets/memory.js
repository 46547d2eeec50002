// Memory over time: a step line of live bytes, a slider over the steps, and the largest values; with
// a budget the same as it is expected within that, and without it as a line.

const CHART_HEIGHT = 150;

class MemoryChart {
  /** `go(form, row)` is called for a step or a value that is chosen. */
  constructor(element, program, go) {
    this.element = element;
    this.program = program;
    this.go = go;
    this.form = program.forms[program.forms.length - 1];
    this.build();
    new ResizeObserver(() => this.draw()).observe(this.chart);
  }

  build() {
    const options = this.program.forms.map((form) =>
      `<option value="${form.index}"${form === this.form ? " selected" : ""}>` +
      `${escapeHtml(form.title)}</option>`).join("") + (this.program.budget
      ? `<option value="budget">the budget of ${bytes(this.program.budget.bytes)}</option>` : "");
    this.element.innerHTML = `
      <div class="chart-side">
        <div class="chart-head"><label>Of <select>${options}</select></label>
          <output></output></div>
        <div class="chart" role="slider" tabindex="0" aria-label="Step of the program"
          aria-valuemin="1"><svg aria-hidden="true" preserveAspectRatio="none"></svg>
          <span class="cursor"></span></div>
        <p class="hint">An estimate from live ranges: a value takes its bytes from the operation
          that makes it to the last one that reads it; arguments stay. Loops and updates write where
          their operands were; that XLA may do so elsewhere, too, it does not know.</p>
      </div>
      <div class="kin largest"></div>`;
    this.chart = this.element.querySelector(".chart");
    this.svg = this.element.querySelector("svg");
    this.cursor = this.element.querySelector(".cursor");
    this.said = this.element.querySelector("output");
    this.largest = this.element.querySelector(".largest");
    this.element.querySelector("select").addEventListener("change", (event) => {
      this.form = this.program.forms[event.target.value] ?? this.expected();
      this.draw();
    });
    this.chart.addEventListener("mousemove", (event) => this.step(this.stepAt(event)));
    this.chart.addEventListener("mouseleave", () => this.step(this.peak()));
    this.chart.addEventListener("click", (event) => this.choose(this.stepAt(event)));
    this.chart.addEventListener("keydown", (event) => this.key(event));
    this.largest.addEventListener("click", (event) => {
      const link = event.target.closest("[data-row]");
      if (link) this.go(this.form, Number(link.dataset.row));
    });
  }

  /** What is expected within the budget, in the place of a form: its steps have no rows. */
  expected() {
    const { before, after, largest, again } = this.program.budget;
    return { before, list: [...largest, ...again.map((line) => `again: ${line}`)],
             memory: { live: after, rows: [], arguments: 0, largest: [] } };
  }

  peak() {
    const { live } = this.form.memory;
    return live.reduce((best, b, i) => (b > live[best] ? i : best), 0);
  }

  draw() {
    const { live, arguments: given, largest } = this.form.memory;
    const { before = [], list = [] } = this.form;
    const top = Math.max(given, ...live, ...before, 1);
    const width = Math.max(live.length, 1);
    const y = (b) => (CHART_HEIGHT * (1 - 0.94 * b / top)).toFixed(1);
    let path = `M0 ${CHART_HEIGHT}`;
    live.forEach((b, i) => { path += `V${y(b)}H${i + 1}`; });
    const without = before.map((b, i) => `${i ? "V" : "M0 "}${y(b)}H${
      ((i + 1) * width / before.length).toFixed(2)}`).join("");
    this.svg.setAttribute("viewBox", `0 0 ${width} ${CHART_HEIGHT}`);
    this.svg.innerHTML = `<path class="area" d="${path}V${CHART_HEIGHT}Z"/>` +
      `<path class="given" d="M0 ${y(given)}H${width}V${CHART_HEIGHT}H0Z"/>` +
      `<path class="without" d="${without}"/>`;
    this.chart.setAttribute("aria-valuemax", String(live.length));
    const items = largest.map(([row, size]) =>
      `<li><button type="button" class="link" data-row="${row}"><b>${bytes(size)}</b> ` +
      `${highlight(this.form.text[row].slice(0, 140), this.form.operation(row))}</button></li>`);
    const said = before.length ? `without the budget ${bytes(Math.max(...before))}`
      : `of which arguments ${bytes(given)}`;
    this.largest.innerHTML =
      `<h3>Alive at the peak <small>${this.form.unsized ? "not known, as sizes are symbols"
        : `${bytes(Math.max(given, ...live))}, ${said}`}</small></h3>` +
      `<ul>${[...items, ...list.map((line) => `<li>${escapeHtml(line)}</li>`)].join("")}</ul>`;
    this.step(this.peak());
  }

  stepAt(event) {
    const box = this.chart.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const count = this.form.memory.live.length;
    return Math.min(count - 1, Math.max(0, Math.floor(share * count)));
  }

  step(i) {
    const { live, rows } = this.form.memory;
    this.at = i;
    if (!live.length) return;
    const text = `step ${i + 1} of ${live.length}: ${bytes(live[i])}` +
      `${i === this.peak() ? ", the peak" : ""}`;
    this.said.textContent = rows.length
      ? `${text} · ${this.form.text[rows[i]].slice(0, 60)}` : text;
    this.chart.setAttribute("aria-valuenow", String(i + 1));
    this.chart.setAttribute("aria-valuetext", text);
    this.cursor.style.left = `${100 * (i + 0.5) / live.length}%`;
  }

  choose(i) {
    if (this.form.memory.rows.length) this.go(this.form, this.form.memory.rows[i]);
  }

  key(event) {
    const count = this.form.memory.live.length;
    const moves = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1, Home: 0, End: count - 1,
                    PageUp: this.at - 20, PageDown: this.at + 20 };
    if (event.key in moves) this.step(Math.min(count - 1, Math.max(0, moves[event.key])));
    else if (event.key === "Enter") this.choose(this.at);
    else return;
    event.preventDefault();
  }
}
