"use strict";
// Tables stand in the file whole; this makes them sortable and filterable, and folds long ones.
(() => {
  const FIRST = 12;
  const make = (name, properties) => Object.assign(document.createElement(name), properties);
  const value = (row, column) => {
    const cell = row.cells[column];
    if (!cell || cell.dataset.v === undefined) return cell ? cell.textContent.trim().toLowerCase() : "";
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));

  for (const table of document.querySelectorAll("table.data")) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const words = rows.map((row) => row.textContent.toLowerCase());
    const wrapper = table.closest(".table");
    const title = wrapper.querySelector("h3");
    let all = rows.length <= FIRST + 3;
    let wanted = [];

    const top = make("div", { className: "top" });
    title.replaceWith(top);
    top.append(title);
    const found = make("output", {});
    found.setAttribute("aria-live", "polite");
    const more = make("button", { className: "more", type: "button" });
    const place = new Map(rows.map((row, i) => [row, i]));

    const show = () => {
      let fits = 0;
      let shown = 0;
      for (const row of body.rows) {
        const text = words[place.get(row)];
        const is = wanted.every((word) => text.includes(word));
        if (is) fits += 1;
        row.hidden = !is || (!all && shown >= FIRST);
        if (!row.hidden) shown += 1;
      }
      // A text that goes on below fades out, and a keyboard can reach it to scroll.
      for (const side of body.querySelectorAll("tr:not([hidden]) .sides > div")) {
        if (side.scrollHeight <= side.clientHeight + 1) continue;
        side.classList.add("cut");
        side.tabIndex = 0;
      }
      found.value = wanted.length > 0 ? `${fits} of ${rows.length}` : "";
      more.hidden = all || fits <= FIRST;
      more.textContent = `Show all ${fits}`;
    };
    more.addEventListener("click", () => {
      all = true;
      show();
      table.closest(".scroll").focus({ preventScroll: true });
    });

    if (rows.length > 3) {
      const input = make("input", { type: "search", placeholder: "Filter" });
      input.setAttribute("aria-label", `Filter: ${title.firstChild.textContent}`);
      input.setAttribute("aria-controls", table.id);
      input.addEventListener("input", () => {
        wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        show();
      });
      top.append(found, input);
    }
    wrapper.append(more);

    const heads = [...table.tHead.rows[0].cells];
    const sort = (column) => {
      const head = heads[column];
      // Numbers begin with the largest, words with A.
      const first = head.classList.contains("n") ? "descending" : "ascending";
      const other = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const keyed = rows.map((row) => [value(row, column), row]);
      // What is not known comes last, whatever the order; equal rows stay as they stood.
      keyed.sort(([a, x], [b, y]) => {
        if (a === null || b === null) return (a === null) - (b === null) || place.get(x) - place.get(y);
        return sign * compare(a, b) || place.get(x) - place.get(y);
      });
      body.append(...keyed.map(([, row]) => row));
      show();
    };
    if (rows.length > 1) {
      heads.forEach((head, column) => {
        if (head.textContent === "") return;
        const button = make("button", { type: "button", textContent: head.textContent });
        button.addEventListener("click", () => sort(column));
        head.replaceChildren(button);
      });
    }
    show();
  }

  // A table that goes on to the right fades out there, and says so.
  for (const scroll of document.querySelectorAll(".scroll")) {
    const look = () => {
      scroll.classList.toggle("aside", scroll.scrollLeft + scroll.clientWidth + 1 < scroll.scrollWidth);
    };
    scroll.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(scroll);
    if (scroll.firstElementChild) observer.observe(scroll.firstElementChild);
    look();
  }
})();
