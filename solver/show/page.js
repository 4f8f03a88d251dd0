"use strict";
(() => {
  const root = document.documentElement;
  const by = (id) => document.getElementById(id);
  by("off").remove();
  const figures = JSON.parse(by("data-figures").textContent);
  const said = (text) => { by("said").textContent = text; };

  // ---- light and dark
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const button = by("theme");
  const named = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.hidden = false;
  named();
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    named();
    again();
  });
  system.addEventListener("change", () => { named(); again(); });

  // ---- tables
  const number = (text) => {
    const plain = text.replace(/,/g, "").trim();
    return /^<?-?[0-9.]+(e[+-]?[0-9]+)?$/i.test(plain) ? parseFloat(plain.replace("<", "")) : NaN;
  };
  const words = new Intl.Collator("en", { numeric: true });
  const compared = (one, two, sign) => {
    const a = number(one), b = number(two);
    if (!Number.isNaN(a) && !Number.isNaN(b)) return sign * (a - b);
    if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1; // what is no number comes last
    return sign * words.compare(one, two);
  };
  const sort = (head) => {
    const table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    const rows = [...body.rows].map((row) => [row.cells[at].textContent, row]);
    rows.sort((one, two) => compared(one[0], two[0], up ? 1 : -1));
    body.append(...rows.map((row) => row[1]));
    for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    said(`Sorted by ${head.textContent}, ${up ? "ascending" : "descending"}`);
  };
  for (const each of document.querySelectorAll("thead th button")) {
    each.addEventListener("click", () => sort(each.closest("th")));
  }

  // ---- figures
  const colours = () => {
    const style = getComputedStyle(root);
    return Object.fromEntries(["ink", "soft", "paper", "quiet"].map((n) => ["@" + n, style.getPropertyValue("--" + n).trim()]));
  };
  const coloured = (value, with_) => {
    if (typeof value === "string") return with_[value] ?? value;
    if (Array.isArray(value)) return value.map((one) => coloured(one, with_));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, coloured(one, with_)]));
  };
  const touch = matchMedia("(pointer: coarse)").matches;
  const specified = (key, width) => {
    const with_ = colours(), made = coloured(figures[key], with_);
    const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: with_["@ink"] };
    Object.assign(made.layout, {
      font, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: touch ? false : "zoom", autosize: true,
      hoverlabel: { bgcolor: with_["@paper"], bordercolor: with_["@quiet"], font: { ...font, size: 12 }, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: with_["@quiet"], activecolor: with_["@ink"], orientation: "v" },
    });
    if (width < 520) {
      for (const axis of ["xaxis", "yaxis"]) {
        if (made.layout[axis]) made.layout[axis].tickfont = { ...made.layout[axis].tickfont, size: 9 };
      }
      made.layout.legend.font = { size: 10 };
    }
    return made;
  };
  const config = {
    responsive: true, displaylogo: false, showTips: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { format: "svg" },
  };
  let library = null;
  const inflated = async () => {
    const packed = Uint8Array.from(atob(by("data-library").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    by("data-library").remove();
    return window.Plotly;
  };
  const drawn = new Set();
  const draw = async (box) => {
    const key = box.dataset.figure;
    if (drawn.has(key)) return;
    drawn.add(key);
    try {
      library ??= inflated();
      const plotly = await library;
      const made = specified(key, box.clientWidth);
      box.replaceChildren();
      await plotly.newPlot(box, made.data, made.layout, config);
      box.dataset.drawn = "yes";
    } catch (error) {
      box.innerHTML = "<p>This browser cannot draw the figure; its numbers are below.</p>";
      console.warn(error);
    }
  };
  const again = async () => {
    if (library === null) return;
    const plotly = await library;
    for (const box of document.querySelectorAll(".plot[data-drawn]")) {
      const made = specified(box.dataset.figure, box.clientWidth);
      await plotly.react(box, made.data, made.layout, config);
    }
  };
  const boxes = [...document.querySelectorAll(".plot")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "400px" });
  boxes.forEach((box) => seen.observe(box));
  // What is in view is drawn first, the rest of the open page when there is nothing else to do: printing does not wait.
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
  const onwards = async () => {
    const next = boxes.find((box) => box.offsetParent !== null && !drawn.has(box.dataset.figure));
    if (!next) return;
    await draw(next);
    idle(onwards);
  };
  addEventListener("load", () => idle(onwards));
  const all = () => Promise.all(boxes.filter((box) => box.offsetParent !== null).map(draw));
  addEventListener("beforeprint", all);
  window.certile = { drawAll: all };
})();
