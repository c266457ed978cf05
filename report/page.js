"use strict";
// Keys: j and k go to the next and previous finding, Enter opens it (as it does without this), / goes to the filter.
(() => {
  const root = document.documentElement;
  const findings = [...document.querySelectorAll("details.finding")];
  const filter = document.getElementById("filter");
  const none = document.getElementById("none");
  root.classList.add("js");

  const shown = () => findings.filter((f) => !f.hidden);

  function go(step) {
    const all = shown();
    if (!all.length) return;
    const at = all.findIndex((f) => f.contains(document.activeElement));
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step));
    const summary = all[next].querySelector("summary");
    summary.focus({ preventScroll: true });
    summary.scrollIntoView({ block: "start" });
  }

  // a wide picture is shown from its start, where its axis is, unless the failure is out of sight there
  function toFailure(finding) {
    if (!finding.open) return;
    for (const wide of finding.querySelectorAll(".scroll")) {
      const left = wide.getBoundingClientRect().left;
      const ends = [...wide.querySelectorAll("rect.bad, rect.wrong")].map((r) => r.getBoundingClientRect());
      if (!ends.length || ends.some((r) => r.left < left + wide.clientWidth - 24)) continue;
      const first = Math.min(...ends.map((r) => r.left));
      wide.scrollLeft += first - left - wide.clientWidth / 2;
    }
  }

  function narrow() {
    const words = filter.value.trim().toLowerCase();
    for (const f of findings) {
      const text = f.dataset.words.toLowerCase();
      // one letter or an id is about the clause, anything else about the words
      f.hidden = words !== "" && !(/^[a-z]\d*$/.test(words) ? text.startsWith(words) : text.includes(words));
    }
    none.hidden = shown().length > 0;
  }

  function open() {
    const named = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (named && named.matches("details.finding")) named.open = true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === filter) {
      if (event.key === "Escape") filter.blur();
      return;
    }
    if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else if (event.key === "/" && filter) {
      event.preventDefault();
      filter.focus();
    }
  });
  for (const f of findings) {
    f.addEventListener("toggle", () => toFailure(f), { once: true });
    toFailure(f);
  }
  if (filter) filter.addEventListener("input", narrow);
  window.addEventListener("hashchange", open);
  open();

  // on paper everything is open, and afterwards as it was
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const d of closed) d.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const d of closed) d.open = false;
  });
})();
