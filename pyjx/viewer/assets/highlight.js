// Text as HTML: rows with their parts told apart, and numbers for people.

/** Longer rows are cut here; the details show all of them. */
const LONGEST = 400;

function escapeHtml(text) {
  return text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[c]));
}

// Strings; types of StableHLO, and of jaxprs and HLO with their layout; values; words.
const TOKENS = new RegExp([
  /("(?:[^"\\]|\\.)*")/,
  /(tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>|\b(?:bool|pred|key<\w+>|[a-z]+\d\w*)\[[^\]]*\](?:\{[^}]*\})?)/,
  /(%[\w$.\-]+(?:#\d+|:\d+)?)/,
  /([\w.\-]+)/,
].map((r) => r.source).join("|"), "g");

/** A row of a program as HTML, in which `operation` is the name of what it does. */
function highlight(text, operation) {
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  const equals = cut.indexOf(" = ");
  let html = "", last = 0, named = !operation;
  for (const match of cut.matchAll(TOKENS)) {
    const [token, string, type, value, word] = match;
    html += escapeHtml(cut.slice(last, match.index));
    last = match.index + token.length;
    let kind = "", shown = escapeHtml(token);
    if (string && !(operation && string === `"${operation}"`)) kind = "quoted";
    else if (type) kind = "type";
    else if (value) kind = match.index < equals ? "result" : "value";
    else if (!named && (word === operation || string) && match.index > equals) {
      kind = "op";
      shown = shown.replace(/^(&quot;)?\w+\./, '<span class="dialect">$&</span>');
      named = true;
    }
    html += kind ? `<span class="${kind}">${shown}</span>` : shown;
  }
  return html + escapeHtml(cut.slice(last));
}

/** A number with a unit, three digits long. */
function quantity(x, units = ["", "k", "M", "G", "T", "P"], step = 1000) {
  if (x < 0) return "not known";  // sizes are symbols
  let unit = 0;
  while (x >= step && unit < units.length - 1) {
    x /= step;
    unit += 1;
  }
  const digits = unit === 0 ? String(Math.round(x)) : x.toPrecision(x >= 1000 ? 4 : 3);
  return units[unit] ? `${digits} ${units[unit]}` : digits;
}

function bytes(x) {
  return quantity(x, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
}

function percent(share) {
  return share >= 0.0995 ? `${Math.round(100 * share)} %` : `${(100 * share).toFixed(1)} %`;
}

/** The last part of a path. */
function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}
