// The search: rows by their text, and beside them functions, lines of the source, and values.

const SHOWN_HITS = 6;  // of a kind

class Search {
  /** `found(query, pairs)` marks rows; `go(form, row)` shows one. */
  constructor(program, panes, go) {
    this.program = program;
    this.panes = panes;
    this.go = go;
    this.query = $("query");
    this.list = $("hits");
    this.found = [];
    this.match = -1;
    this.query.addEventListener("input", () => this.search());
    $("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.next(1);
    });
    this.query.addEventListener("keydown", (event) => this.key(event));
    $("previous").addEventListener("click", () => this.next(-1));
    this.list.addEventListener("click", (event) => this.choose(event.target.closest("[data-hit]")));
    this.list.addEventListener("keydown", (event) => this.listKey(event));
    $("search").addEventListener("focusout", (event) => {
      if (!$("search").contains(event.relatedTarget)) this.list.hidden = true;
    });
    // A button that is pressed keeps the list open, where buttons take no focus.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  open() {
    this.query.focus();
    this.query.select();
    if (this.hits?.length) this.list.hidden = false;
  }

  search() {
    const query = this.query.value.trim();
    this.hits = query ? this.program.hits(query, SHOWN_HITS) : [];
    this.mark(this.panes.flatMap((pane) =>
      pane.form.search(query).map((row) => [pane.form, row])));
    this.list.hidden = !this.hits.length;
    this.list.innerHTML = this.hits.map((hit, i) =>
      `<li><button type="button" class="link" data-hit="${i}"><small>${hit.kind}</small> ` +
      `<code>${escapeHtml(hit.text)}</code></button></li>`).join("");
  }

  /** Take these rows as what was found. */
  mark(found) {
    this.found = found;
    this.match = -1;
    for (const pane of this.panes) {
      pane.matches = new Set(found.filter(([form]) => form === pane.form).map(([, row]) => row));
      pane.refresh(true);
    }
    this.say();
  }

  say() {
    const count = this.found.length.toLocaleString("en");
    $("found").textContent = !this.query.value.trim() ? ""
      : !this.found.length ? (this.hits?.length ? "" : "none")
      : this.match < 0 ? count : `${(this.match + 1).toLocaleString("en")} of ${count}`;
  }

  next(step) {
    const count = this.found.length;
    if (!count) {
      if (this.hits?.length) this.choose(this.list.querySelector("[data-hit]"));
      return;
    }
    this.match = (this.match + step + count + (this.match < 0 && step < 0 ? 1 : 0)) % count;
    this.go(...this.found[this.match]);
    this.say();
  }

  choose(button) {
    if (!button) return;
    const hit = this.hits[button.dataset.hit];
    this.mark(hit.rows());
    this.query.focus();  // for the keys that go on, and that which leaves
    this.list.hidden = true;
    this.next(1);
  }

  key(event) {
    if (event.key === "Enter" && event.shiftKey) this.next(-1);
    else if (event.key === "ArrowDown" && !this.list.hidden) {
      this.list.querySelector("button").focus();
    } else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
  }

  listKey(event) {
    const buttons = [...this.list.querySelectorAll("button")];
    const at = buttons.indexOf(event.target) + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0);
    if (event.key === "Escape") this.leave();
    else if (event.key.startsWith("Arrow")) (buttons[at] ?? this.query).focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  leave() {
    this.list.hidden = true;
    this.onLeave();
  }
}
