"""Looks up the links within a built site: `python check_links.py FOLDER`."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit


def broken(folder: Path) -> list[str]:
    """Links to pages, files and places in pages that are not there."""
    pages = {p.resolve(): p.read_text(encoding="utf-8") for p in folder.rglob("*.html")}
    places = {p: {unescape(i) for i in re.findall(r'\sid="([^"]*)"', text)}
              for p, text in pages.items()}
    found = []
    for page, text in pages.items():
        for link in set(re.findall(r'\s(?:href|src)="([^"]*)"', text)):
            target = urlsplit(unescape(link))
            if target.scheme or target.netloc:
                continue
            path = (page.parent / unquote(target.path)).resolve() if target.path else page
            if path.is_dir():
                path /= "index.html"
            fragment = unquote(target.fragment)
            if not path.exists() or (fragment and path in places and fragment not in places[path]):
                found.append(f"{page.relative_to(folder.resolve())}: {link}")
    return sorted(found)


if __name__ == "__main__":
    missing = broken(Path(sys.argv[1]))
    print("\n".join(missing) or "all links are there")
    sys.exit(bool(missing))
