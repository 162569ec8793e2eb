// The page of the API's description: a filter, and the endpoint that the address names is opened. The page works without.
(function () {
  "use strict";
  function all(selector) { return Array.from(document.querySelectorAll(selector)); }

  function narrow(text) {
    var words = text.toLowerCase().split(/\s+/).filter(Boolean);
    all("[data-docs-op]").forEach(function (op) {
      op.hidden = !words.every(function (word) { return op.dataset.docsOp.includes(word); });
    });
    all("[data-docs-section], [data-docs-tag]").forEach(function (section) {
      section.hidden = !section.querySelector("[data-docs-op]:not([hidden])");
    });
  }

  function open() {
    var target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView();
  }

  document.addEventListener("DOMContentLoaded", function () {
    var find = document.querySelector("[data-docs-find]");
    find.addEventListener("input", function () { narrow(find.value); });
    document.addEventListener("keydown", function (event) {
      if (event.key !== "/" || event.target.closest("input")) return;
      event.preventDefault();
      find.focus();
    });
    window.addEventListener("hashchange", open);
    open();
  });
})();
