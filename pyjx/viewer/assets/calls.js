// The graph of the calls: a node for each function, callers left of what they call.

const NODE = { width: 190, height: 46, across: 60, down: 14 };

/** The column of each node: one more than that of its last caller. */
function columnsOf(count, edges) {
  const column = new Int32Array(count);
  // A call of itself would go on for ever; a program has no more columns than nodes.
  for (let round = 0, changed = true; changed && round < count; round++) {
    changed = false;
    for (const [from, to] of edges) {
      if (from !== to && column[to] < column[from] + 1) {
        column[to] = column[from] + 1;
        changed = true;
      }
    }
  }
  return column;
}

/** Where each node stands: columns by calls, in a column by where the callers stand. */
function layout(graph) {
  const count = graph.labels.length;
  const column = columnsOf(count, graph.edges);
  const callers = Array.from({ length: count }, () => []);
  for (const [from, to] of graph.edges) if (from !== to) callers[to].push(from);
  const y = new Float64Array(count);
  const columns = [];
  for (let node = 0; node < count; node++) (columns[column[node]] ||= []).push(node);
  for (const nodes of columns) {
    const wanted = (n) => callers[n].reduce((sum, c) => sum + y[c], 0) / (callers[n].length || 1);
    nodes.sort((a, b) => wanted(a) - wanted(b) || a - b);
    nodes.forEach((node, i) => { y[node] = i * (NODE.height + NODE.down); });
  }
  return { x: Array.from(column, (c) => c * (NODE.width + NODE.across)), y, columns };
}

class CallGraph {
  /** `go(form, row)` is called for a function that is chosen. */
  constructor(element, program, go) {
    this.element = element;
    this.program = program;
    this.go = go;
    this.form = program.forms[program.forms.length - 1];
    const options = program.forms.map((form) =>
      `<option value="${form.index}"${form === this.form ? " selected" : ""}>` +
      `${escapeHtml(form.title)}</option>`).join("");
    element.innerHTML = `<div class="chart-head"><label>Of <select>${options}</select></label>
      <span class="hint">Bodies that are alike are one node.</span></div>
      <div class="graph"></div>`;
    this.graph = element.querySelector(".graph");
    element.querySelector("select").addEventListener("change", (event) => {
      this.form = program.forms[event.target.value];
      this.draw();
    });
    this.graph.addEventListener("click", (event) => this.choose(event));
    this.graph.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.choose(event);
      }
    });
    this.draw();
  }

  choose(event) {
    const node = event.target.closest("[data-row]");
    if (node) this.go(this.form, Number(node.dataset.row));
  }

  draw() {
    const { graph } = this.form;
    const place = layout(graph);
    const whole = Math.max(...graph.flops, 1);
    const edges = graph.edges.filter(([from, to]) => from !== to).map(([from, to, times]) => {
      const x1 = place.x[from] + NODE.width, y1 = place.y[from] + NODE.height / 2;
      const x2 = place.x[to], y2 = place.y[to] + NODE.height / 2;
      const middle = (x1 + x2) / 2;
      const label = times > 1 ? `<text x="${x2 - 6}" y="${y2 - 5}" class="times">×${times}</text>` : "";
      return `<path d="M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}"/>${label}`;
    });
    const nodes = graph.labels.map((label, i) => {
      const name = label.length > 24 ? `${label.slice(0, 23)}…` : label;
      const cost = `${quantity(graph.flops[i])} FLOPs · ${bytes(graph.traffic[i])}`;
      return `<g role="button" tabindex="0" data-row="${graph.rows[i]}"
        transform="translate(${place.x[i]} ${place.y[i]})"
        aria-label="${escapeHtml(label)}, ${cost}">
        <title>${escapeHtml(label)}</title>
        <rect width="${NODE.width}" height="${NODE.height}" rx="6"/>
        <rect class="share" y="${NODE.height - 3}" height="3" rx="1.5"
          width="${(NODE.width * graph.flops[i] / whole).toFixed(1)}"/>
        <text x="10" y="19" class="label">${escapeHtml(name)}</text>
        <text x="10" y="35">${cost}</text></g>`;
    });
    const width = Math.max(...place.x) + NODE.width + 2;
    const height = Math.max(...place.y) + NODE.height + 2;
    this.graph.innerHTML = `<svg width="${width}" height="${height}" viewBox="-1 -1 ${width} ${height}"
      role="group" aria-label="Calls">${edges.join("")}${nodes.join("")}</svg>`;
  }
}
