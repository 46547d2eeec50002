// Which rows of a form are seen, as bodies and functions fold.

/** Forms with more rows than this begin with everything below functions folded. */
const SMALL = 600;

class Rows {
  constructor(form) {
    this.form = form;
    this.folded = new Uint8Array(form.length);
    this.position = new Int32Array(form.length);  // among the seen rows; -1 for those in a fold
    for (let row = 0; row < form.length; row++) this.folded[row] = this.startsFolded(row);
    this.settle();
  }

  startsFolded(row) {
    const { form } = this;
    if (!form.isFoldable(row) || form.kind[row] === HEAD) return 0;
    const isParameters = form.kind[row] === NOTE && form.operation(row + 1) === "parameter";
    return Number(isParameters || form.fused.has(row) || form.length > SMALL);
  }

  /** Compute anew which rows are seen. */
  settle() {
    const { form, folded, position } = this;
    const seen = [];
    position.fill(-1);
    for (let row = 0; row < form.length;) {
      position[row] = seen.length;
      seen.push(row);
      row = folded[row] ? form.end[row] : row + 1;
    }
    this.seen = Int32Array.from(seen);
  }

  fold(row, folded) {
    if (!this.form.isFoldable(row) || Boolean(this.folded[row]) === folded) return false;
    this.folded[row] = Number(folded);
    this.settle();
    return true;
  }

  foldAll(folded) {
    for (let row = 0; row < this.form.length; row++) {
      this.folded[row] = Number(folded && this.form.isFoldable(row));
    }
    this.settle();
  }

  /** Unfold all that a row lies in. */
  reveal(row) {
    let changed = false;
    for (let p = this.form.parent[row]; p >= 0; p = this.form.parent[p]) {
      if (this.folded[p]) changed = true;
      this.folded[p] = 0;
    }
    if (changed) this.settle();
  }

  /** The row itself, or the folded one in which it lies. */
  standIn(row) {
    let found = row;
    for (let p = this.form.parent[row]; p >= 0; p = this.form.parent[p]) {
      if (this.folded[p]) found = p;
    }
    return found;
  }
}
