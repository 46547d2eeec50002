// What is known of an operation: cost, source, and what it is related to.

const SHOWN_RELATIVES = 6;  // of a form; how many more there are is said

class Details {
  /** `go(form, row)` is called for a relative that is chosen. */
  constructor(element, program, go) {
    this.element = element;
    this.program = program;
    this.go = go;
    element.addEventListener("click", (event) => {
      const link = event.target.closest("[data-row]");
      if (link) go(program.forms[link.dataset.form], Number(link.dataset.row));
    });
    this.clear();
  }

  clear() {
    this.element.innerHTML = `<p class="hint">Point at an operation to see where it comes from ` +
      `and what becomes of it. Press <kbd>?</kbd> for the keys.</p>`;
  }

  show(form, row) {
    this.element.innerHTML =
      `<div class="about">${this.about(form, row)}</div>` +
      `<div class="origin">${this.origin(form, row)}</div>` +
      `<div class="kin">${this.kin(form, row)}</div>`;
  }

  about(form, row) {
    const operation = form.operation(row) || (form.kind[row] === HEAD ? "function" : "");
    const title = form.kind[row] === HEAD ? form.name(row) : operation;
    const facts = [];
    if (form.shape(row)) facts.push(["Result", `<code>${escapeHtml(form.shape(row))}</code>`]);
    if (form.size[row]) {
      facts.push([form.kind[row] === HEAD ? "Arguments" : "Size", bytes(form.size[row])]);
    }
    if (form.share[row] > 0) {
      const bound = !form.traffic[row] || this.program.measured ? ""
        : form.flops[row] > this.program.balance * form.traffic[row] ? ", bound by arithmetic"
          : ", bound by memory";
      facts.push(["Time", `${form.share[row] < 0.0005 ? "under 0.1 %"
        : percent(form.share[row])} of the whole${bound}`]);
    }
    if (operation) {
      facts.push(["FLOPs", quantity(form.flops[row])]);
      facts.push(["Moved", bytes(form.traffic[row])]);
    }
    if (form.flops[row] > 0 && form.traffic[row] > 0) {
      facts.push(["FLOPs per byte", (form.flops[row] / form.traffic[row]).toPrecision(3)]);
    }
    if (form.name(row) && form.kind[row] !== HEAD) {
      const made = transformation(form.name(row));
      if (made) facts.push(["Made by", made]);
      facts.push(["Name", `<code>${escapeHtml(form.name(row))}</code>`]);
    }
    const list = facts.map(([key, value]) => `<dt>${key}</dt><dd>${value}</dd>`).join("");
    return `<h3>${escapeHtml(title || form.title)} <small>${escapeHtml(form.title)}</small></h3>` +
      `<dl class="facts">${list}</dl>` +
      `<pre class="whole">${escapeHtml(form.text[row].slice(0, 20000))}</pre>`;
  }

  origin(form, row) {
    const near = form.place[row] >= 0 || form.kind[row] !== OPERATION ? row : form.nearby(row);
    const frames = near < 0 ? [] : this.program.frames(form.place[near]);
    if (!frames.length) {
      return `<h3>Source</h3><p class="hint">${form.kind[row] === OPERATION
        ? "Not from a line of the source." : "Operations have lines of the source."}</p>`;
    }
    const [inner, ...outer] = frames;
    const made = near === row ? "" : `<p class="hint">The compiler made it for
      <code>${escapeHtml(form.operation(near))}</code> of this line.</p>`;
    const callers = outer.map((f) => `<li>${this.position(f)}
      <code>${escapeHtml((this.program.source[f.file]?.[f.line] ?? "").trim())}</code></li>`);
    return `<h3>Source <small>${this.position(inner)}</small></h3>${made}` +
      `<pre class="source">${this.lines(inner)}</pre>` +
      (callers.length ? `<ol class="callers" aria-label="Called from">${callers.join("")}</ol>` : "");
  }

  position(frame) {
    return `<span title="${escapeHtml(frame.file)}">${escapeHtml(baseName(frame.file))}:` +
      `${frame.line}</span>${frame.function ? ` in ${escapeHtml(frame.function)}` : ""}`;
  }

  /** The line of a frame between those around it, and the column at which it begins. */
  lines(frame) {
    const source = this.program.source[frame.file] ?? {};
    const numbers = Object.keys(source).map(Number).filter((n) => Math.abs(n - frame.line) <= 2);
    if (!numbers.length) return `<span class="line here"><b>${frame.line}</b></span>`;
    return numbers.sort((a, b) => a - b).map((n) => {
      let text = escapeHtml(source[n]);
      if (n === frame.line && frame.column > 0) {
        const at = frame.column - 1;
        text = `${escapeHtml(source[n].slice(0, at))}<mark>${escapeHtml(source[n].slice(at))}</mark>`;
      }
      return `<span class="line${n === frame.line ? " here" : ""}"><b>${n}</b>${text}</span>`;
    }).join("\n");
  }

  kin(form, row) {
    const relatives = this.program.relatives(form, row);
    const parts = this.program.forms.filter((other) => other !== form).map((other) =>
      this.related(other.title, other, relatives[other.index]));
    parts.push(this.related("Reads", form, [...form.operands.of(row)]));
    parts.push(this.related("Read by", form, [...form.users(row)]));
    parts.push(this.related("Calls", form, form.calls.get(row) ?? []));
    parts.push(this.related("Alike in this form", form, relatives[form.index]));
    return `<h3>Related</h3>${parts.join("") || '<p class="hint">Nothing.</p>'}`;
  }

  related(title, form, rows) {
    if (!rows.length) return "";
    const items = rows.slice(0, SHOWN_RELATIVES).map((r) =>
      `<li><button type="button" class="link" data-form="${form.index}" data-row="${r}">` +
      `${highlight(form.text[r].slice(0, 160), form.operation(r))}</button></li>`);
    const more = rows.length - items.length;
    if (more > 0) items.push(`<li class="hint">and ${more.toLocaleString("en")} more</li>`);
    return `<h4>${title} <small>${rows.length}</small></h4><ul>${items.join("")}</ul>`;
  }
}

/** What transformations made an operation, from the name under which profiles know it. */
function transformation(name) {
  const tail = name.slice(name.lastIndexOf("jit(") + 1);
  const found = [];
  if (/transpose\(/.test(tail)) found.push("the backward pass of a derivative");
  else if (/jvp\(/.test(tail)) found.push("the forward pass of a derivative");
  if (/vmap\(/.test(tail)) found.push("vmap");
  if (/rematted|checkpoint/.test(tail)) found.push("checkpoint, which computes it again");
  return found.join(", ");
}
