// What ties the parts together: which operation is shown, the search, keys, colours.

const $ = (id) => document.getElementById(id);

class App {
  constructor(program) {
    this.program = program;
    this.selected = null;  // [form, row]
    const actions = {
      point: (form, row) => this.point(form, row),
      select: (form, row, options) => this.select(form, row, options),
      press: () => this.openTab("operation"),
      leave: () => this.selected && this.mark(...this.selected),
    };
    this.panes = program.forms.map((form) => new Pane(form, actions));
    $("forms").append(...this.panes.map((pane) => pane.element));
    const go = (form, row) => this.go(form, row);
    this.details = new Details($("operation"), program, go);
    this.panels = { operation: this.details, costs: new CostTables($("costs"), program, go) };
    this.makers = { memory: () => new MemoryChart($("memory"), program, go),
                    graph: () => new Graphs($("graph"), program, go),
                    passes: () => new PassSteps($("passes"), program) };
    this.search = new Search(program, this.panes, go);
    this.search.onLeave = () => this.pane().tree.focus();
    this.showFigures();
    this.showSwitches();
    this.listen();
    this.chooseTheme(stored("theme") ?? "auto");
  }

  // -- operations

  point(form, row) {
    this.mark(form, row);
  }

  mark(form, row) {
    const relatives = this.program.relatives(form, row);
    this.panes.forEach((pane, i) => pane.mark(pane.form === form ? row : -1, relatives[i]));
    this.details.show(form, row);
    return relatives;
  }

  /** Show an operation, and scroll the other forms to what it is related to. */
  select(form, row, { reveal = true } = {}) {
    this.selected = [form, row];
    const relatives = this.mark(form, row);
    if (!reveal) return;
    this.panes.forEach((pane, i) => {
      if (pane.form === form || !relatives[i].length) return;
      pane.show(this.program.likeliest(form, row, pane.form, relatives[i]), false);
    });
  }

  /** The form that keys are for: that of the selected operation if it is shown. */
  pane() {
    const chosen = this.panes[this.selected?.[0].index ?? 0];
    return chosen.element.hidden ? this.panes.find((pane) => !pane.element.hidden) : chosen;
  }

  /** Go to an operation, wherever it is. */
  go(form, row) {
    const pane = this.panes[form.index];
    this.setShown(form.index, true);
    pane.go(row);
  }

  // -- what stands above

  showFigures() {
    const { forms, budget } = this.program;
    const counted = (budget && forms[1]) || forms[0];  // jaxprs run nothing again to fit into it
    const last = forms[forms.length - 1];
    const peak = last.unsized ? -1 : Math.max(last.memory.arguments, ...last.memory.live);
    const figures = [[`FLOPs counted here${counted.once}${this.whose(counted)}`,
                      quantity(counted.flops[counted.entry])],
                     [`Peak memory, estimated${this.whose(last)}`, bytes(peak)],
                     ...this.program.figures.map(([key, value]) =>
                       [key, typeof value !== "number" ? String(value)
                         : /bytes/.test(key) ? bytes(value) : quantity(value)])];
    $("figures").title = figures.map((pair) => pair.join(": ")).join("\n");
    $("figures").innerHTML = figures.map(([key, value]) =>
      `<div><dt>${escapeHtml(key)}</dt><dd>${escapeHtml(value)}</dd></div>`).join("");
    const bar = $("figures").parentElement.classList;
    new ResizeObserver(() => {
      bar.remove("crowded");
      bar.toggle("crowded", $("figures").scrollHeight > $("figures").clientHeight);
    }).observe(document.body);
  }

  /** On how many devices what a form shows is done, where there are several. */
  whose(form) {
    const many = Math.max(...this.program.forms.map((f) => f.devices));
    if (many === 1) return "";
    return !form.byOne ? `, on all ${many} devices together`
      : `, ${form.byOne === "all" ? "" : `of ${form.byOne} `}on one of ${form.devices} devices`;
  }

  showSwitches() {
    $("shown").innerHTML = this.program.forms.map((form) =>
      `<button type="button" aria-pressed="true" data-form="${form.index}">` +
      `${escapeHtml(form.title)}</button>`).join("");
    $("shown").addEventListener("click", (event) => {
      const button = event.target.closest("[data-form]");
      if (button) {
        this.setShown(Number(button.dataset.form), button.getAttribute("aria-pressed") === "false");
      }
    });
  }

  setShown(index, shown) {
    const buttons = [...$("shown").children];
    buttons[index].setAttribute("aria-pressed", String(shown));
    if (!buttons.some((b) => b.getAttribute("aria-pressed") === "true")) {
      buttons[index].setAttribute("aria-pressed", "true");  // one is always seen
      return;
    }
    this.panes[index].element.hidden = !shown;
  }

  // -- tabs

  openTab(name) {
    for (const tab of document.querySelectorAll("[role=tab]")) {
      const chosen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      $(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
    this.panels[name] ||= this.makers[name]();
  }

  tabKey(event) {
    const tabs = [...document.querySelectorAll("[role=tab]")];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
    this.openTab(next.getAttribute("aria-controls"));
    next.focus();
  }

  // -- keys and colours

  listen() {
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.addEventListener("click", () => this.openTab(tab.getAttribute("aria-controls")));
      tab.addEventListener("keydown", (event) => this.tabKey(event));
    }
    $("theme").addEventListener("click", () => this.nextTheme());
    $("help").addEventListener("click", () => $("keys").showModal());
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("click", (event) => {
      if (event.target.closest(".link[data-row]")) this.pane().tree.focus({ preventScroll: true });
    });
    listenDivider($("divider"));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open ||
        event.target.matches("input, select, textarea")) return;
    const number = Number(event.key) - 1;
    const keys = {
      "/": () => this.search.open(),
      "?": () => $("keys").showModal(),
      t: () => this.nextTheme(),
      c: () => this.openTab("costs"),
      o: () => this.openTab("operation"),
      m: () => this.openTab("memory"),
      g: () => this.openTab("graph"),
      p: () => this.openTab("passes"),
      "[": () => this.amongRelatives(-1),
      "]": () => this.amongRelatives(1),
    };
    const action = keys[event.key] ?? (this.panes[number] && (() => this.toForm(number)));
    if (!action) return this.paneKey(event);
    event.preventDefault();
    action();
  }

  /** A key that is for the forms, unless what has the focus uses it. */
  paneKey(event) {
    const { target, key } = event;
    const free = target === document.body || key === "f" || key === "u" ||
      (target.matches("button") && key !== "Enter" && key !== " ");
    if (!free || event.defaultPrevented) return;
    const pane = this.pane();
    pane.key(event);
    if (event.defaultPrevented) pane.tree.focus({ preventScroll: true });
  }

  /** Go to a form: to a relative of the selected operation there, if it has one. */
  toForm(index) {
    const pane = this.panes[index];
    this.setShown(index, true);
    if (this.selected && this.selected[0] !== pane.form) {
      const rows = this.program.relatives(...this.selected)[index];
      if (rows.length) pane.go(this.program.likeliest(...this.selected, pane.form, rows));
    }
    pane.tree.focus({ preventScroll: true });
  }

  amongRelatives(step) {
    if (!this.selected) return;
    const [form, row] = this.selected;
    const rows = [...this.program.relatives(form, row)[form.index], row].sort((a, b) => a - b);
    const at = (rows.indexOf(row) + step + rows.length) % rows.length;
    this.go(form, rows[at]);
  }

  nextTheme() {
    const order = ["auto", "light", "dark"];
    this.chooseTheme(order[(order.indexOf(this.theme) + 1) % order.length]);
  }

  chooseTheme(theme) {
    this.theme = theme;
    store("theme", theme);
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const [sign, name] = { auto: ["◐", "as the system has"], light: ["○", "light"],
                           dark: ["●", "dark"] }[theme];
    $("theme").textContent = sign;
    $("theme").setAttribute("aria-label", `Colours: ${name}`);
    $("theme").title = `Colours: ${name} (t)`;
    for (const pane of this.panes) pane.refresh(true);
  }
}

/** What the browser keeps for this page; nothing where it keeps nothing, as in a frame. */
function stored(key) {
  try { return localStorage.getItem(`pyjx-viewer-${key}`); } catch { return null; }
}

function store(key, value) {
  try { localStorage.setItem(`pyjx-viewer-${key}`, value); } catch { /* then it is forgotten */ }
}

/** The line between forms and details moves by pointer and by arrow keys. */
function listenDivider(divider) {
  const set = (height) => {
    const most = Math.round(innerHeight * 0.8);
    const chosen = Math.round(Math.min(most, Math.max(80, height)));
    document.documentElement.style.setProperty("--dock", `${chosen}px`);
    for (const [name, value] of [["valuenow", chosen], ["valuemin", 80], ["valuemax", most]]) {
      divider.setAttribute(`aria-${name}`, String(value));
    }
  };
  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => {
    if (divider.hasPointerCapture(event.pointerId)) set(event.clientY - $("dock").getBoundingClientRect().top);
  });
  divider.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -20, ArrowDown: 20 }[event.key];
    if (step) {
      event.preventDefault();
      set($("dock").offsetHeight + step);
    }
  });
  set($("dock").offsetHeight);
}

async function start() {
  const data = await unpack($("program").textContent);
  globalThis.viewer = new App(new Program(data));
  document.documentElement.dataset.ready = "";
  performance.mark("ready");
}

start();
