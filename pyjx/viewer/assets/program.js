// The program that the page holds: columns of numbers and strings, and what follows from them.

/** Kinds of rows, as in listing.py. */
const OPERATION = 0, HEAD = 1, NOTE = 2, CLOSING = 3;

/** The document behind base64 of zlib's format. */
async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** Lists of numbers in two arrays: the items of list i lie from starts[i] to starts[i + 1]. */
class Lists {
  constructor(starts, items) {
    this.starts = starts;
    this.items = items;
  }

  of(i) {
    return this.items.subarray(this.starts[i], this.starts[i + 1]);
  }

  /** For each of `count` keys the positions in `keys` at which it stands; negative keys have none. */
  static inverse(keys, count, valueOf = (position) => position) {
    const starts = new Int32Array(count + 1);
    for (const key of keys) if (key >= 0) starts[key + 1] += 1;
    for (let i = 0; i < count; i++) starts[i + 1] += starts[i];
    const next = starts.slice(0, count);
    const items = new Int32Array(starts[count]);
    keys.forEach((key, position) => {
      if (key >= 0) items[next[key]++] = valueOf(position);
    });
    return new Lists(starts, items);
  }
}

/** One form of the program: its rows, from the columns in `data`. */
class Form {
  constructor(data, strings, index) {
    this.index = index;
    this.title = data.title;
    this.text = data.text.split("\n");
    this.length = this.text.length;
    this.depth = Int32Array.from(data.depth);
    this.kind = Uint8Array.from(data.kind);
    this.group = Int32Array.from(data.group);
    this.site = Int32Array.from(data.site);
    this.place = Int32Array.from(data.place);
    this.size = Float64Array.from(data.size);
    this.flops = Float64Array.from(data.flops);
    this.traffic = Float64Array.from(data.traffic);
    this.share = Float64Array.from(data.share);
    this.scope = Int32Array.from(data.scope);
    this.fused = new Set(data.fused);
    this.unsized = data.unsized;  // whether some sizes are not known
    this.devices = data.devices;  // on how many it runs
    this.byOne = data.byOne;  // what is shown as one of these does it: "all", "shard_map", or ""
    // What is said where it is not known how often something runs.
    this.once = data.exact ? "" : ", loops of unknown length once, of branches the dearest";
    this.entry = data.entry;  // the row at which the program begins
    this.memory = data.memory;
    this.graph = data.graph;
    this.calls = new Map(data.calls.map(([row, ...heads]) => [row, heads]));
    this.numbers = data;  // columns of numbers of strings
    this.strings = strings;
    this.nest();
    this.operands = this.readOperands(data.operands);
    this.groups = Form.byNumber(this.group);
    this.sites = Form.byNumber(this.site);
  }

  static byNumber(numbers) {
    return Lists.inverse(numbers, 1 + numbers.reduce((a, b) => Math.max(a, b), -1));
  }

  operation(row) { return this.strings[this.numbers.operation[row]]; }

  shape(row) { return this.strings[this.numbers.shape[row]]; }

  name(row) { return this.strings[this.numbers.name[row]]; }

  /** Set for each row which one it lies below, and where its bodies end. */
  nest() {
    this.parent = new Int32Array(this.length).fill(-1);
    this.end = new Int32Array(this.length).fill(this.length);
    const open = [];
    for (let row = 0; row < this.length; row++) {
      while (open.length && this.depth[open[open.length - 1]] >= this.depth[row]) {
        this.end[open.pop()] = row;
      }
      if (open.length) this.parent[row] = open[open.length - 1];
      open.push(row);
    }
  }

  readOperands(packed) {
    const starts = new Int32Array(this.length + 1);
    const items = new Int32Array(packed.length - this.length);
    let at = 0, filled = 0;
    for (let row = 0; row < this.length; row++) {
      const count = packed[at++];
      for (let i = 0; i < count; i++) items[filled++] = row - packed[at++];
      starts[row + 1] = filled;
    }
    return new Lists(starts, items);
  }

  /** The rows that read what a row gives. */
  users(row) {
    if (!this.usersOf) {
      const reader = new Int32Array(this.operands.items.length);
      for (let r = 0; r < this.length; r++) {
        reader.fill(r, this.operands.starts[r], this.operands.starts[r + 1]);
      }
      this.usersOf = Lists.inverse(this.operands.items, this.length, (i) => reader[i]);
    }
    return this.usersOf.of(row);
  }

  /** The numbers of the groups that a row stands for: a fusion for those of all that it does. */
  groupsOf(row) {
    const found = new Set();
    const stop = this.fused.has(row) ? this.end[row] : row + 1;
    for (let r = row; r < stop; r++) if (this.group[r] >= 0) found.add(this.group[r]);
    return found;
  }

  /** The numbers of the groups in what a row runs: its bodies, and the functions that it calls. */
  groupsWithin(row, found = new Set(), visited = new Set()) {
    if (visited.has(row)) return found;
    visited.add(row);
    for (let r = row + 1; r < this.end[row]; r++) if (this.group[r] >= 0) found.add(this.group[r]);
    for (const [call, heads] of this.calls) {
      if (call < row || call >= this.end[row]) continue;
      for (const head of heads) this.groupsWithin(head, found, visited);
    }
    return found;
  }

  /** The rows of some groups, in order. */
  rowsOf(groups) {
    const rows = [];
    for (const g of groups) {
      if (this.hasGroup(g)) rows.push(...this.groups.of(g));
    }
    return rows.sort((a, b) => a - b);
  }

  hasGroup(g) {
    return g >= 0 && g + 1 < this.groups.starts.length && this.groups.of(g).length > 0;
  }

  /** The rows at the site of a row of another form that have no relatives there. */
  strayAt(site, form) {
    if (site < 0 || site + 1 >= this.sites.starts.length) return [];
    return [...this.sites.of(site)].filter((r) => !form.hasGroup(this.group[r]));
  }

  /** The nearest operation of a line of the source that reads what a row gives, or that it reads;
   * -1 if there is none close by. */
  nearby(row) {
    let rows = [row];
    const seen = new Set(rows);
    for (let step = 0; step < 6 && rows.length; step++) {
      const next = rows.flatMap((r) => [...this.users(r), ...this.operands.of(r)])
        .filter((r) => !seen.has(r) && this.kind[r] === OPERATION);
      const found = next.find((r) => this.place[r] >= 0);
      if (found !== undefined) return found;
      next.forEach((r) => seen.add(r));
      rows = next.slice(0, 50);
    }
    return -1;
  }

  isFoldable(row) { return this.end[row] > row + 1; }

  /** The head of the function in which a row lies; the row itself if it is one. */
  functionOf(row) {
    while (this.parent[row] >= 0) row = this.parent[row];
    return row;
  }

  /** The values that a row makes, or a function takes, by name. */
  values(row) {
    const text = this.text[row], equals = text.indexOf(" = ");
    if (equals < 0 || this.kind[row] !== OPERATION) return [];
    return text.slice(0, equals).split(/[ ,]+/).map((part) => part.split(":")[0])
      .filter((name) => name && name !== "ROOT" && name !== "_");
  }

  /** The rows whose text or name holds `query`, whatever its case. */
  search(query) {
    const wanted = query.toLowerCase();
    if (!wanted) return [];
    this.lower ||= this.text.map((t) => t.toLowerCase());
    const names = new Map();
    const inName = (number) => {
      if (!names.has(number)) {
        names.set(number, this.strings[number].toLowerCase().includes(wanted));
      }
      return names.get(number);
    };
    const rows = [];
    for (let row = 0; row < this.length; row++) {
      if (this.lower[row].includes(wanted) || inName(this.numbers.name[row])) rows.push(row);
    }
    return rows;
  }
}

const INSTALLED = /[/\\](site|dist)-packages[/\\]/;

/** All forms, and the places in the source. */
class Program {
  constructor(data) {
    this.title = data.title;
    this.strings = data.strings;
    this.figures = data.figures;
    this.places = data.places;
    this.source = data.source;
    this.costs = data.costs;
    this.measured = data.measured;
    this.balance = data.balance;
    this.budget = data.budget;
    this.scopes = data.scopes;
    this.passes = data.passes;
    this.forms = data.forms.map((form, i) => new Form(form, data.strings, i));
  }

  /**
   * For each form the rows that come from the same operation as a row; in its own form the others.
   * Where a form has none, those of what the row runs, or what else became of the same place.
   */
  relatives(form, row) {
    const groups = form.groupsOf(row);
    const runs = form.kind[row] === OPERATION && (form.isFoldable(row) || form.calls.has(row));
    let within = null;
    return this.forms.map((other) => {
      const rows = other.rowsOf(groups);
      if (other === form) return rows.filter((r) => r !== row);
      if (rows.length) return rows;
      if (!runs) return other.strayAt(form.site[row], form);
      return other.rowsOf(within ??= form.groupsWithin(row));
    });
  }

  /**
   * Of relatives in another form the likeliest: where a line of the source runs many times, as
   * for each layer, forms have its operations in the same order.
   */
  likeliest(form, row, other, rows) {
    const group = form.group[row];
    const mine = group >= 0 ? form.rowsOf([group]) : [row];
    const theirs = group >= 0 ? other.rowsOf([group]) : [];
    if (!mine.length || !theirs.length) return rows[0];
    return theirs[Math.floor(mine.indexOf(row) * theirs.length / mine.length)];
  }

  /** The innermost frame of a place outside of installed packages, if there is one. */
  ownFrame(place) {
    const frames = this.frames(place);
    return frames.find((f) => !INSTALLED.test(f.file)) ?? frames[0];
  }

  /** What a query names besides rows: at most so many functions, lines, and values. */
  hits(query, most) {
    const wanted = query.toLowerCase();
    const holds = (text) => text.toLowerCase().includes(wanted);
    const rows = (test) => this.forms.flatMap((form) => {
      const found = [];
      for (let row = 0; row < form.length; row++) if (test(form, row)) found.push([form, row]);
      return found;
    });
    return [...this.functionHits(holds, rows).slice(0, most),
            ...this.lineHits(holds, rows).slice(0, most),
            ...this.valueHits(query, rows).slice(0, most)];
  }

  /** For each place whether it, or one that it was called from, is as `test` wants it. */
  placesBelow(test) {
    const found = [];  // callers come first
    this.places.caller.forEach((caller, place) => found.push(test(place) || found[caller] === true));
    return found;
  }

  functionHits(holds, rows) {
    const { file, function: of } = this.places;
    const own = (place) => !INSTALLED.test(this.strings[file[place]]);
    const names = new Set([...this.scopes.label, ...of.filter((_, place) => own(place))]
      .map((number) => this.strings[number]).filter((name) => holds(name) && name !== "<module>"));
    for (const form of this.forms) {
      for (let row = 0; row < form.length; row++) {
        if (form.kind[row] === HEAD && holds(form.name(row))) names.add(form.name(row));
      }
    }
    const isIn = (form, row, name, below) => {
      if (form.kind[row] === HEAD) return form.name(row) === name;
      if (form.kind[row] === OPERATION && below[form.place[row]]) return true;
      let node = form.kind[row] === OPERATION ? form.scope[row] : -1;
      while (node >= 0 && this.strings[this.scopes.label[node]] !== name) {
        node = this.scopes.parent[node];
      }
      return node >= 0;
    };
    return [...names].map((name) => ({
      kind: "function", text: shortName(name), rows: () => {
        const below = this.placesBelow((place) => own(place) && this.strings[of[place]] === name);
        return rows((form, row) => isIn(form, row, name, below));
      } }));
  }

  lineHits(holds, rows) {
    const { file, line } = this.places;
    const found = new Map();
    file.forEach((f, place) => {
      const path = this.strings[f], text = (this.source[path]?.[line[place]] ?? "").trim();
      const key = `${baseName(path)}:${line[place]}`;
      if (holds(text) || holds(key)) {
        found.set(`${f}:${line[place]}`, { f, n: line[place], text: `${key} ${text}` });
      }
    });
    return [...found.values()].sort((a, b) => a.n - b.n).map(({ f, n, text }) => ({
      kind: "line", text, rows: () => {
        const below = this.placesBelow((p) => file[p] === f && line[p] === n);
        return rows((form, row) => below[form.place[row]]);
      } }));
  }

  valueHits(query, rows) {
    const is = (name) => name === query || name === `%${query}`;
    return rows((form, row) => form.values(row).some(is)).map(([form, row]) => ({
      kind: form.title, text: form.text[row].slice(0, 100), rows: () => [[form, row]] }));
  }

  /** The stack of frames of a place, innermost first. */
  frames(place) {
    const { file, function: name, line, column, caller } = this.places;
    const found = [];
    for (let p = place; p >= 0; p = caller[p]) {
      found.push({ file: this.strings[file[p]], function: this.strings[name[p]], line: line[p],
                   column: column[p] });
    }
    if (!found.length) return found;
    // XLA puts the frames of a call that it inlines around those that an operation has already.
    const last = found[found.length - 1];
    const first = found.findIndex((f) => f.file === last.file && f.line === last.line &&
      f.column === last.column && f.function === last.function);
    return found.slice(0, first + 1);
  }
}
