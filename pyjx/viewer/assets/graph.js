// Graphs of a form: how data flows, and which function calls which, left of what it calls.

const LEGIBLE = 0.75;  // the least scale at which a graph is shown at first
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

/** The graph of a form's calls as SVG's elements; nodes have the row that they stand for. */
function drawCalls(form) {
  const { graph } = form;
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
        width="${(NODE.width * Math.max(graph.flops[i], 0) / whole).toFixed(1)}"/>
      <text x="10" y="19" class="label">${escapeHtml(name)}</text>
      <text x="10" y="35">${cost}</text></g>`;
  });
  return [...edges, ...nodes].join("");
}

class Graphs {
  /** `go(form, row)` is called for what is chosen. */
  constructor(element, program, go) {
    this.program = program;
    this.go = go;
    // StableHLO has a call for each layer, and names of the user's functions.
    this.form = program.forms.find((form) => form.title === "StableHLO") ?? program.forms[0];
    this.kind = "flow";
    const options = program.forms.map((form) =>
      `<option value="${form.index}"${form === this.form ? " selected" : ""}>` +
      `${escapeHtml(form.title)}</option>`).join("");
    element.innerHTML = `<div class="chart-head">
        <div class="switches" role="group" aria-label="Kind of graph">
          <button type="button" data-kind="flow">Data flow</button>
          <button type="button" data-kind="calls">Calls</button></div>
        <label>Of <select>${options}</select></label>
        <span class="hint"></span>
        <button type="button" class="quiet" data-zoom="1.4" aria-label="Larger">+</button>
        <button type="button" class="quiet" data-zoom="0.7" aria-label="Smaller">−</button>
        <button type="button" class="quiet" data-zoom="0">All</button></div>
      <div class="canvas"></div>`;
    this.element = element;
    this.canvas = element.querySelector(".canvas");
    element.querySelector("select").addEventListener("change", (event) => {
      this.form = program.forms[event.target.value];
      this.draw();
    });
    element.addEventListener("click", (event) => {
      const { kind, zoom } = event.target.closest("button")?.dataset ?? {};
      if (kind) this.draw(kind);
      if (zoom) this.zoom(Number(zoom));
    });
    this.canvas.addEventListener("click", (event) => this.choose(event));
    this.canvas.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.choose(event);
      }
    });
    listenZoom(this.canvas, (factor, event) => this.zoom(factor, event), (dx, dy) => {
      this.view.x -= dx / this.view.scale;
      this.view.y -= dy / this.view.scale;
      this.place();
    });
    new ResizeObserver(() => this.svg && this.place()).observe(this.canvas);
    this.draw("flow");
  }

  draw(kind = this.kind) {
    this.kind = kind;
    for (const button of this.element.querySelectorAll("[data-kind]")) {
      button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    }
    this.element.querySelector(".hint").textContent = kind === "calls"
      ? "Bodies that are alike are one node." : "A node unfolds where it is pressed.";
    this.flow = kind === "flow" ? new Flow(this.program, this.form) : null;
    this.redraw();
    this.view = null;
    this.zoom(0);
  }

  redraw() {
    const html = this.flow ? this.flow.svg() : drawCalls(this.form);
    this.canvas.innerHTML = `<svg role="group" aria-label="${this.flow ? "Data flow" : "Calls"}">` +
      `<g class="world">${html}</g></svg>`;
    this.svg = this.canvas.querySelector("svg");
    this.world = this.canvas.querySelector(".world");
  }

  choose(event) {
    const node = event.target.closest("[data-row]");
    if (!node || "moved" in this.canvas.dataset) return;
    if (this.flow?.toggle(node.dataset.node)) {
      const before = node.getBoundingClientRect();
      this.redraw();
      this.place();
      // What was pressed stays where it was.
      const again = this.canvas.querySelector(`[data-node="${node.dataset.node}"]`);
      const after = again.getBoundingClientRect();
      this.view.x += (after.left - before.left) / this.view.scale;
      this.view.y += (after.top - before.top) / this.view.scale;
      this.place();
      again.focus({ preventScroll: true });
    }
    if (Number(node.dataset.row) >= 0) this.go(this.form, Number(node.dataset.row));
  }

  /** Zoom around the middle or the pointer; by 0 so that all is seen. */
  zoom(factor, event) {
    const box = this.world.getBBox();
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!factor) {
      const fit = Math.min(width / (box.width + 24), height / (box.height + 24));
      // At first it can be read, from where it begins.
      const scale = Math.min(1, Math.max(this.view ? 0.05 : LEGIBLE, fit));
      this.view = { scale, x: box.x - Math.max(12, (width / scale - box.width) / 2),
                    y: box.y - (height / scale - box.height) / 2 };
    } else {
      const at = this.canvas.getBoundingClientRect();
      const [px, py] = event ? [event.clientX - at.left, event.clientY - at.top]
        : [width / 2, height / 2];
      const scale = Math.min(3, Math.max(0.05, this.view.scale * factor));
      this.view.x += px / this.view.scale - px / scale;
      this.view.y += py / this.view.scale - py / scale;
      this.view.scale = scale;
    }
    this.place();
  }

  place() {
    const { x, y, scale } = this.view;
    this.world.setAttribute("transform", `scale(${scale}) translate(${-x} ${-y})`);
  }
}

/** The wheel zooms, and a pressed pointer moves what is seen. */
function listenZoom(canvas, zoom, move) {
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event);
  }, { passive: false });
  canvas.addEventListener("pointerdown", () => delete canvas.dataset.moved);
  canvas.addEventListener("pointermove", (event) => {
    if (!(event.buttons & 1) || (!event.movementX && !event.movementY)) return;
    canvas.dataset.moved = "";  // so the release chooses nothing
    move(event.movementX, event.movementY);
  });
}
