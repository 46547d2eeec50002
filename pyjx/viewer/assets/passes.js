// How each pass rewrites the jaxpr on its way to the platform.

class PassSteps {
  constructor(element, program) {
    this.element = element;
    this.passes = program.passes;
    if (!this.passes.length) {
      element.innerHTML = '<p class="hint">This page was made without the rewrites of the jaxpr.</p>';
      return;
    }
    const items = this.passes.map((p, i) =>
      `<li><button type="button" class="link" data-pass="${i}" title="${escapeHtml(p.about)}"><b>${escapeHtml(p.name)}</b> ` +
      `${p.lines.length ? `${p.before.toLocaleString("en")} → ${p.after.toLocaleString("en")}`
        : "no change"}</button></li>`);
    element.innerHTML = `<div class="kin"><h3>Passes <small>equations before and after</small></h3><ol>${items.join("")}</ol></div>
      <pre class="diff" tabindex="0" aria-label="What the pass changed"></pre>`;
    this.diff = element.querySelector(".diff");
    element.addEventListener("click", (event) => {
      const link = event.target.closest("[data-pass]");
      if (link) this.show(Number(link.dataset.pass));
    });
    this.show(Math.max(0, this.passes.findIndex((p) => p.lines.length)));
  }

  show(number) {
    for (const button of this.element.querySelectorAll("[data-pass]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.pass) === number));
    }
    const { about, lines, more } = this.passes[number];
    const kinds = { "+": "added", "-": "removed", "@": "skipped" };
    const shown = lines.map((line) =>
      `<span class="${kinds[line[0]] ?? "same"}">${escapeHtml(line)}</span>`);
    if (more) shown.push(`<span class="skipped">… ${more.toLocaleString("en")} more lines</span>`);
    if (!lines.length) shown.push('<span class="skipped">Nothing changed.</span>');
    this.diff.innerHTML = `<b>${escapeHtml(about)}</b>${shown.join("")}`;
    this.diff.scrollTop = 0;
  }
}
