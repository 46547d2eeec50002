// How data flows through a form: nodes by functions and scopes, which unfold to what is in them.

const BOX = { width: 172, height: 40, across: 44, down: 12, pad: 14, title: 22 };
const MANY = 60;  // nodes of one level; more are taken together as they follow each other
// What only passes values on, and what is no work.
const PASSES_ON = new Set(["get-tuple-element", "tuple", "bitcast", "stablehlo.optimization_barrier",
                           "optimization_barrier", "copy-start", "copy-done", "fusion-done",
                           "async-done"]);
const LEFT_OUT = new Set(["parameter", "constant", "stablehlo.constant", "after-all", "return",
                          "func.return", "stablehlo.return"]);

/** What calls functions of the user's, which are nodes of their own. */
const CALLS = new Set(["func.call", "call", "jit", "outlined_call"]);

/** What lists begin with alike. */
function alike(lists) {
  let same = 0;
  while (lists.length && lists.every((l) => l.length > same && l[same] === lists[0][same])) same += 1;
  return (lists[0] ?? []).slice(0, same);
}

class Flow {
  constructor(program, form) {
    this.program = program;
    this.form = form;
    this.nodes = new Map();  // by id
    const head = Math.max(form.kind.indexOf(HEAD), 0);
    this.root = { id: "r", label: program.title, row: head, open: true, depth: 0,
                  inside: () => this.body(head, "r", 0) };
    this.nodes.set("r", this.root);
  }

  /** Unfold or fold a node; whether it can be. */
  toggle(id) {
    const node = this.nodes.get(id);
    if (!node?.inside) return false;
    node.open = !node.open;
    return true;
  }

  children(node) {
    node.children ??= node.inside();
    return node.children;
  }

  // -- what is in a node

  /** The nodes of a function, of a body, or of an operation with bodies. */
  body(row, id, depth) {
    const { form } = this;
    const rows = [];
    for (let r = row + 1; r < form.end[row]; r = form.end[r]) rows.push(r);
    const parts = rows.filter((r) => form.kind[r] === NOTE && form.isFoldable(r));
    if (parts.length && parts.length === rows.filter((r) => form.kind[r] !== CLOSING).length) {
      return parts.map((r) => this.add({ id: `${id}.${r}`, rows: [r], row: r, depth: depth + 1,
        label: form.text[r].split(/ = | /)[0], inside: () => this.body(r, `${id}.${r}`, depth + 1) }));
    }
    const shown = rows.filter((r) => form.kind[r] === OPERATION && !PASSES_ON.has(form.operation(r)) &&
      !LEFT_OUT.has(form.operation(r)));
    const paths = shown.map((r) => this.scopesAround(r));
    const same = alike(paths).length;  // what all lie in says nothing
    return this.grouped(shown.map((r, i) => [r, this.path(r, paths[i].slice(same))]), id, depth);
  }

  scopes(row) {
    const { scopes, strings } = this.program;
    const found = [];
    for (let n = this.form.scope[row]; n >= 0; n = scopes.parent[n]) {
      found.unshift(shortName(strings[scopes.label[n]]));
    }
    return found;
  }

  /** The scopes in which an operation stands; those of a call are what is around all it does. */
  scopesAround(row) {
    const { form } = this;
    const found = this.scopes(row);
    const [head] = form.calls.get(row) ?? [];
    if (head === undefined || !CALLS.has(form.operation(row))) return found;
    const inside = [];
    for (let r = head + 1; r < form.end[head]; r++) {
      if (form.kind[r] === OPERATION && form.scope[r] >= 0) inside.push(this.scopes(r));
    }
    const around = inside.length ? alike([found, ...inside]) : [];
    if (!around.length) return found;
    return form.name(head).startsWith(around[around.length - 1]) ? around.slice(0, -1) : around;
  }

  /** Where an operation belongs: the backward pass, scopes or functions, and its line. */
  path(row, scopes) {
    const { form, program } = this;
    const found = [...scopes];
    const name = form.name(row);
    if (/transpose\(/.test(name.slice(name.lastIndexOf("jit(") + 1))) found.unshift("backward");
    const frame = program.ownFrame(form.place[row]);
    const text = frame && program.source[frame.file]?.[frame.line]?.trim();
    if (text && !CALLS.has(form.operation(row))) found.push(`${frame.line}  ${text}`);
    return found;
  }

  /** Nodes of operations by their paths: one for all that begin alike. */
  grouped(pairs, id, depth, level = 0) {
    while (pairs.length > 1 && pairs[0][1].length > level &&
           pairs.every(([, path]) => path[level] === pairs[0][1][level])) level += 1;
    const groups = new Map();
    for (const [row, path] of pairs) {
      const key = path.length <= level ? row : path[level];
      groups.set(key, [...(groups.get(key) ?? []), [row, path]]);
    }
    const nodes = [...groups].map(([key, of]) => of.length === 1
      ? this.operation(of[0][0], id, depth) : this.group(key, of, id, depth, level + 1));
    return nodes.length <= MANY ? nodes : this.inParts(nodes, id, depth);
  }

  group(label, pairs, id, depth, level) {
    const own = `${id}.${pairs[0][0]}-${level}`;
    return this.add({ id: own, label, rows: pairs.map(([row]) => row), row: pairs[0][0],
                      depth: depth + 1, inside: () => this.grouped(pairs, own, depth + 1, level) });
  }

  inParts(nodes, id, depth) {
    const size = Math.ceil(nodes.length / Math.ceil(nodes.length / (MANY / 2)));
    const parts = [];
    for (let i = 0; i < nodes.length; i += size) {
      const some = nodes.slice(i, i + size);
      parts.push(this.add({ id: `${id}/${i}`, label: `${some[0].label} …`, row: some[0].row,
        rows: some.flatMap((n) => n.rows), depth: depth + 1, inside: () => some }));
    }
    return parts;
  }

  operation(row, id, depth) {
    const { form } = this;
    const own = `${id}.${row}`, called = form.calls.get(row);
    const node = { id: own, rows: [row], row, depth: depth + 1,
                   label: form.operation(row).replace("stablehlo.", "") };
    if (called) {
      node.label = called.map((head) => form.name(head)).join(", ");
      const [head] = called;
      if (called.length === 1) node.inside = () => this.body(head, own, depth + 1);
    } else if (form.isFoldable(row)) {
      node.inside = () => this.body(row, own, depth + 1);
    }
    return this.add(node);
  }

  add(node) {
    this.nodes.set(node.id, node);
    return node;
  }

  // -- edges

  /** Which nodes of a level read what others make: [from, to, bytes]. */
  edges(children) {
    const { form } = this;
    const of = new Map();
    children.forEach((child, i) => {
      for (const row of child.rows) {
        for (let r = row; r < form.end[row]; r++) of.set(r, i);
      }
    });
    const found = new Map();
    const reach = (operand, to, size, seen) => {
      const from = of.get(operand);
      if (from === to) return;
      if (from !== undefined) {
        const key = `${from} ${to}`;
        const edge = found.get(key) ?? { from, to, bytes: 0, made: new Set() };
        if (!edge.made.has(operand)) edge.bytes += size;
        edge.made.add(operand);
        found.set(key, edge);
      } else if (PASSES_ON.has(form.operation(operand)) && !seen.has(operand)) {
        seen.add(operand);
        for (const o of form.operands.of(operand)) reach(o, to, size, seen);
      }
    };
    for (const [row, to] of of) {
      for (const o of form.operands.of(row)) reach(o, to, form.size[o], new Set());
    }
    return [...found.values()];
  }

  // -- where nodes stand

  /** Set the size of a node and the places of what is in it. */
  measure(node) {
    if (!node.open || !node.inside) {
      Object.assign(node, { width: BOX.width, height: BOX.height });
      return;
    }
    const children = this.children(node);
    children.forEach((child) => this.measure(child));
    node.edges = this.edges(children);
    const forward = node.edges.filter(({ from, to }) => from < to);
    const layer = new Int32Array(children.length);
    for (const { from, to } of forward.sort((a, b) => a.from - b.from)) {
      layer[to] = Math.max(layer[to], layer[from] + 1);
    }
    const layers = [];
    children.forEach((child, i) => (layers[layer[i]] ||= []).push(i));
    const readers = children.map(() => []);
    for (const { from, to } of forward) readers[to].push(from);
    let x = BOX.pad, tallest = BOX.height;
    for (const column of layers) {
      const middle = (i) => children[i].y + children[i].height / 2;
      const wanted = (i) => readers[i].reduce((sum, r) => sum + middle(r), 0) /
        (readers[i].length || 1);
      column.sort((a, b) => wanted(a) - wanted(b) || a - b);
      const height = column.reduce((sum, i) => sum + children[i].height + BOX.down, -BOX.down);
      tallest = Math.max(tallest, height);
      let y = -height / 2;
      for (const i of column) {
        Object.assign(children[i], { x, y });
        y += children[i].height + BOX.down;
      }
      x += Math.max(...column.map((i) => children[i].width)) + BOX.across;
    }
    node.width = Math.max(x - BOX.across, BOX.width) + BOX.pad;
    node.height = tallest + BOX.title + 2 * BOX.pad;
    for (const child of children) child.y += BOX.title + BOX.pad + tallest / 2;
  }

  svg() {
    this.measure(this.root);
    return this.draw(this.root, 0, 0);
  }

  draw(node, x, y) {
    const { form } = this;
    const share = node.rows ? node.rows.reduce((sum, row) => sum + form.share[row], 0) : 1;
    const opened = node.open && node.inside;
    const sign = !node.inside ? "" : opened ? "▾ " : "▸ ";
    const most = Math.floor((node.width - 20) / 6.6);
    const label = `${sign}${node.label}`;
    const cut = label.length > most ? `${label.slice(0, most - 1)}…` : label;
    const figures = [share >= 0.0005 ? percent(share) : "", this.shape(node)].filter(Boolean).join(" · ");
    const tip = `${node.label}\n${figures}`;
    const start = `<g class="node${opened ? " open" : ""}" role="button" tabindex="0"
      data-node="${node.id}" data-row="${node.row}" transform="translate(${x} ${y})"
      aria-label="${escapeHtml(tip)}"${node.inside ? ` aria-expanded="${Boolean(opened)}"` : ""}>
      <title>${escapeHtml(tip)}</title>
      <rect width="${node.width}" height="${node.height}" rx="6"/>
      ${opened ? "" : `<rect class="heated" width="${node.width}" height="${node.height}" rx="6"
        style="opacity:${0.4 * heat(share)}"/>`}
      <text x="10" y="16" class="label">${escapeHtml(cut)}</text>` +
      (opened ? `<text x="${node.width - 8}" y="16" class="times">${figures}</text>`
        : `<text x="10" y="31">${escapeHtml(figures.slice(0, 26))}</text>`) + "</g>";
    if (!opened) return start;
    const inner = this.children(node).map((child) => this.draw(child, x + child.x, y + child.y));
    return start + node.edges.map((edge) => this.edge(node, edge, x, y)).join("") + inner.join("");
  }

  shape(node) {
    if (node.rows?.length !== 1 || node.inside) {
      return node.rows?.length > 1 ? `${node.rows.length} operations` : "";
    }
    return this.form.shape(node.row).replace(/tensor<|>|\{[^}]*\}/g, "");
  }

  edge(node, { from, to, bytes: size }, x, y) {
    const [a, b] = [this.children(node)[from], this.children(node)[to]];
    const x1 = x + a.x + a.width, y1 = y + a.y + a.height / 2;
    const x2 = x + b.x, y2 = y + b.y + b.height / 2;
    const bend = Math.max(16, Math.min(80, Math.abs(x2 - x1) / 2));
    const width = 0.8 + Math.min(3, Math.log10(1 + size / 1024) / 2);
    return `<path d="M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}"
      style="stroke-width:${width.toFixed(2)}"><title>${bytes(size)}</title></path>`;
  }
}
