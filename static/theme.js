// Sets the theme before the first paint, so that a dark page never flashes.
(function () {
  "use strict";
  var root = document.documentElement;
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function chosen() {
    try { return localStorage.getItem("theme") || "auto"; } catch (e) { return "auto"; }
  }
  function apply() {
    var choice = chosen();
    root.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
    root.dataset.bsTheme = root.dataset.theme;
    root.dataset.themeChoice = choice;
  }
  dark.addEventListener("change", apply);
  window.addEventListener("storage", function (event) { if (event.key === "theme") apply(); });
  window.nightshiftTheme = function () {
    var order = ["auto", "light", "dark"];
    var next = order[(order.indexOf(chosen()) + 1) % order.length];
    try { localStorage.setItem("theme", next); } catch (e) { /* private windows keep nothing */ }
    apply();
  };
  apply();
})();
