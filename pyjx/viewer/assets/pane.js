// A form as a scrolling tree. Only the rows in sight are elements of the page.

const ROW_HEIGHT = 20;  // pixels; as in viewer.css
const BEYOND = 8;  // rows that are made above and below those in sight
const INDENT = 14;

class Pane {
  /** `actions`: what happens on `point(form, row)`, `select(form, row)` and `leave()`. */
  constructor(form, actions) {
    this.form = form;
    this.rows = new Rows(form);
    this.actions = actions;
    this.current = form.kind[0] === HEAD && form.length > 1 ? 0 : -1;
    this.figure = "share";
    this.linked = [];
    this.marks = new Map();  // class names of rows
    this.matches = new Set();
    this.build();
    this.listen();
  }

  build() {
    const { form } = this;
    const count = form.kind.reduce((n, kind) => n + (kind === OPERATION), 0);
    const counted = `${count.toLocaleString("en")} operation${count === 1 ? "" : "s"}${form.once}`;
    this.element = document.createElement("section");
    this.element.className = "pane";
    this.element.setAttribute("aria-label", form.title);
    this.element.innerHTML = `
      <header><h2>${escapeHtml(form.title)}</h2>
        <span class="count" title="${counted}">${counted}</span>
        <select class="figure" aria-label="Figure beside each operation">
          <option value="share">Time</option><option value="flops">FLOPs</option><option value="traffic">Moved</option>
          <option value="size">Size</option></select>
        <button type="button" class="quiet" data-fold="1" title="Fold all (f)">Fold</button>
        <button type="button" class="quiet" data-fold="0" title="Unfold all (u)">Unfold</button>
      </header>
      <div class="view">
        <div class="tree" role="tree" tabindex="0" aria-label="${escapeHtml(form.title)}">
          <div class="space" role="none"></div></div>
        <canvas class="ruler" width="10" aria-hidden="true"></canvas>
      </div>`;
    this.tree = this.element.querySelector(".tree");
    this.space = this.element.querySelector(".space");
    this.ruler = this.element.querySelector(".ruler");
  }

  listen() {
    const { tree } = this;
    tree.addEventListener("scroll", () => this.refresh());
    tree.addEventListener("mousemove", (event) => this.point(event));
    tree.addEventListener("mouseleave", () => this.actions.leave());
    // Not `click`: rows are made anew between the press and the release.
    tree.addEventListener("mousedown", (event) => this.press(event));
    tree.addEventListener("keydown", (event) => this.key(event));
    tree.addEventListener("focus", () => {
      if (this.current >= 0 && tree.matches(":focus-visible")) this.actions.select(this.form, this.current, { reveal: false });
    });
    this.ruler.addEventListener("click", (event) => this.jump(event));
    for (const button of this.element.querySelectorAll("[data-fold]")) {
      button.addEventListener("click", () => this.foldAll(button.dataset.fold === "1"));
    }
    this.element.querySelector(".figure").addEventListener("change", (event) => {
      this.figure = event.target.value;
      this.refresh(true);
    });
    new ResizeObserver(() => this.refresh(true)).observe(tree);
  }

  // -- pointing

  rowAt(event) {
    const y = event.clientY - this.tree.getBoundingClientRect().top + this.tree.scrollTop;
    return this.rows.seen[Math.floor(y / ROW_HEIGHT)] ?? -1;
  }

  point(event) {
    const row = this.rowAt(event);
    if (row !== this.pointed) {
      this.pointed = row;
      if (row >= 0) this.actions.point(this.form, row);
    }
  }

  press(event) {
    const row = this.rowAt(event);
    if (row < 0 || event.button !== 0 || event.offsetX > this.tree.clientWidth) return;
    const folds = event.target.classList.contains("fold");
    if (folds) this.fold(row, !this.rows.folded[row]);
    this.current = row;
    this.actions.select(this.form, row);
    if (!folds) this.actions.press();
  }

  jump(event) {
    const share = event.offsetY / this.ruler.clientHeight;
    this.tree.scrollTop = share * this.tree.scrollHeight - this.tree.clientHeight / 2;
  }

  // -- keys

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows, form } = this;
    const at = rows.position[rows.standIn(Math.max(this.current, 0))];
    const page = Math.max(1, Math.floor(this.tree.clientHeight / ROW_HEIGHT) - 1);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page,
                    Home: 0, End: rows.seen.length - 1 };
    const row = rows.seen[at];
    if (event.key in moves) {
      this.go(rows.seen[Math.min(Math.max(moves[event.key], 0), rows.seen.length - 1)]);
    } else if (event.key === "ArrowRight") {
      if (!this.fold(row, false) && form.isFoldable(row)) this.go(row + 1);
    } else if (event.key === "ArrowLeft") {
      if (!this.fold(row, true) && form.parent[row] >= 0) this.go(form.parent[row]);
    } else if (event.key === "Enter" || event.key === " ") {
      const called = form.calls.get(row);
      if (called) this.go(called[0]);
      else this.fold(row, !rows.folded[row]);
    } else if (event.key === "f" || event.key === "u") {
      this.foldAll(event.key === "f");
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  go(row) {
    this.current = row;
    this.show(row);
    this.actions.select(this.form, row);
  }

  // -- folding

  fold(row, folded) {
    const changed = this.rows.fold(row, folded);
    if (changed) this.refresh(true);
    return changed;
  }

  foldAll(folded) {
    this.rows.foldAll(folded);
    this.current = this.rows.standIn(Math.max(this.current, 0));
    this.refresh(true);
    this.show(this.current);
  }

  // -- showing

  /** Scroll as far as it needs for a row to be in sight, in the middle if it was not. */
  show(row, unfold = true) {
    if (unfold) this.rows.reveal(row);
    const top = this.rows.position[this.rows.standIn(row)] * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.tree;
    if (top < scrollTop || top + ROW_HEIGHT > scrollTop + clientHeight) {
      const isNear = Math.abs(top - scrollTop) < clientHeight + 2 * ROW_HEIGHT;
      const below = top >= scrollTop;
      this.resize();
      this.tree.scrollTop = !isNear ? top - clientHeight / 2
        : below ? top + 2 * ROW_HEIGHT - clientHeight : top - ROW_HEIGHT;
    }
    this.refresh(true);
  }

  /** Mark the selected row, its operands and users, and relatives. */
  mark(row, linked) {
    this.marks.clear();
    this.linked = linked;
    for (const r of linked) this.marks.set(this.rows.standIn(r), "linked");
    if (row >= 0) {
      for (const r of this.form.operands.of(row)) this.marks.set(this.rows.standIn(r), "operand");
      for (const r of this.form.users(row)) this.marks.set(this.rows.standIn(r), "user");
      this.marks.set(this.rows.standIn(row), "selected");
    }
    this.refresh(true);
  }

  resize() {
    this.space.style.height = `${this.rows.seen.length * ROW_HEIGHT}px`;
  }

  /** Draw before the next frame; with `all` even if the same rows stay in sight. */
  refresh(all = false) {
    this.stale ||= all;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const { rows, tree } = this;
    const first = Math.max(0, Math.floor(tree.scrollTop / ROW_HEIGHT) - BEYOND);
    const stop = Math.min(rows.seen.length,
      Math.ceil((tree.scrollTop + tree.clientHeight) / ROW_HEIGHT) + BEYOND);
    if (!this.stale && first === this.first && stop === this.stop) return;
    Object.assign(this, { first, stop });
    this.resize();
    let html = "";
    for (let i = first; i < stop; i++) html += this.rowHtml(rows.seen[i], i);
    this.space.innerHTML = html;
    const id = `f${this.form.index}r${this.current}`;
    if (document.getElementById(id)) tree.setAttribute("aria-activedescendant", id);
    else tree.removeAttribute("aria-activedescendant");
    if (this.stale) this.drawRuler();
    this.stale = false;
  }

  rowHtml(row, at) {
    const { form, rows } = this;
    const kind = form.kind[row];
    const level = form.depth[row] - (kind === CLOSING ? 1 : 0);
    const foldable = form.isFoldable(row);
    const mark = this.marks.get(row) ?? "";
    const match = this.matches.has(row) ? " match" : "";
    const expanded = foldable ? ` aria-expanded="${!rows.folded[row]}"` : "";
    const figure = form[this.figure][row];
    const show = { share: percent, flops: quantity }[this.figure] ?? bytes;
    const cost = !figure || (this.figure === "share" && figure < 0.0005) ? "" : show(figure);
    return `<div class="row k${kind} ${mark}${match}" role="treeitem" id="f${form.index}r${row}"` +
      ` aria-level="${form.depth[row] + 1}" aria-selected="${row === this.current}"${expanded}` +
      ` style="top:${at * ROW_HEIGHT}px">` +
      `<span class="code" style="padding-left:${level * INDENT + 18}px">` +
      (foldable ? `<span class="fold" aria-hidden="true" style="left:${level * INDENT + 2}px">` +
        `${rows.folded[row] ? "▸" : "▾"}</span>` : "") +
      `${highlight(form.text[row], form.operation(row))}` +
      `${foldable && rows.folded[row] ? ' <span class="more">…</span>' : ""}</span>` +
      `<span class="cost" aria-hidden="true">${cost}</span>` +
      `<i class="heat" style="opacity:${heat(form.share[row])}"></i></div>`;
  }

  /** Where relatives and matches are in the whole form. */
  drawRuler() {
    const { ruler, rows, tree } = this;
    const height = tree.clientHeight;
    if (ruler.height !== height) ruler.height = height;
    const context = ruler.getContext("2d");
    const colours = getComputedStyle(this.element);
    const total = Math.max(rows.seen.length, height / ROW_HEIGHT, 1);
    const draw = (all, colour, left, width) => {
      context.fillStyle = colours.getPropertyValue(colour);
      for (const row of all) {
        const y = rows.position[rows.standIn(row)] / total * height;
        context.fillRect(left, Math.round(y), width, 2);
      }
    };
    context.clearRect(0, 0, ruler.width, height);
    for (const row of rows.seen) {
      if (this.form.kind[row] !== OPERATION || this.form.share[row] < 0.002) continue;
      context.globalAlpha = heat(this.form.share[row]);
      draw([row], "--heat", 0, 10);
    }
    context.globalAlpha = 1;
    draw(this.matches, "--match", 0, 10);
    draw(this.linked, "--link", 0, 10);
    for (const [row, mark] of this.marks) {
      if (mark === "selected") draw([row], "--accent", 0, 10);
    }
  }
}

/** How strongly a share of the whole time is coloured, from 0 to 1. */
function heat(share) {
  return share < 0.001 ? 0 : Math.min(1, 0.12 + 1.4 * Math.sqrt(share)).toFixed(2);
}
