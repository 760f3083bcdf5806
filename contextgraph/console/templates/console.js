// Keys and the light or dark look; every page can be read without this.
"use strict";
(() => {
  const root = document.documentElement;
  const stored = localStorage.getItem("theme");
  if (stored) root.dataset.theme = stored;

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  const reveal = (element) => {
    for (let e = element; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  };

  const goTo = (step) => {
    document.querySelectorAll("details.step.current").forEach((e) => e.classList.remove("current"));
    reveal(step);
    step.classList.add("current");
    history.replaceState(null, "", `#${step.querySelector("[id]").id}`);
    step.querySelector("summary").focus();
    step.scrollIntoView({ block: "center" });
  };

  const move = (selector, by) => {
    const steps = [...document.querySelectorAll("details.step")];
    const now = steps.findIndex((e) => e.classList.contains("current"));
    for (let i = now < 0 && by < 0 ? steps.length - 1 : now + by; i >= 0 && i < steps.length; i += by)
      if (steps[i].matches(selector)) return goTo(steps[i]);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("#theme");
    if (button) {
      button.hidden = false;
      button.addEventListener("click", () => {
        root.dataset.theme = isDark() ? "light" : "dark";
        localStorage.setItem("theme", root.dataset.theme);
      });
    }
    open();
  });

  const open = () => {
    const step = document.getElementById(location.hash.slice(1))?.closest("details.step");
    if (step) goTo(step);
  };
  addEventListener("hashchange", open);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) return;
    if (event.key === "/") {
      const search = document.querySelector("#search");
      if (search) { event.preventDefault(); search.focus(); }
    } else if (event.key === "j") move("details.step", 1);
    else if (event.key === "k") move("details.step", -1);
    else if (event.key === "n") move("[data-mark]", 1);
    else if (event.key === "p") move("[data-mark]", -1);
  });
})();
