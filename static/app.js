// The keyboard, the palette, menus, copying and times. Every page works
// without this file; it only makes the pages quicker.
(function () {
  "use strict";
  var chord = 0;
  function all(selector, root) { return Array.from((root || document).querySelectorAll(selector)); }
  function one(selector) { return document.querySelector(selector); }
  function typing(target) { return target.closest("input, textarea, select, [contenteditable]"); }

  // Times: in UTC, the tenant's zone or the browser's.
  var zones = ["UTC", "tenant", "browser"];
  function zone() {
    try { return localStorage.getItem("zone") || "UTC"; } catch (e) { return "UTC"; }
  }
  function zoneName() {
    if (zone() === "tenant") return document.body.dataset.zone || "UTC";
    if (zone() === "browser") return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
    return "UTC";
  }
  function formatter(name) {
    var form = { timeZone: name, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
    try { return new Intl.DateTimeFormat("sv-SE", form); } catch (e) { form.timeZone = "UTC"; return new Intl.DateTimeFormat("sv-SE", form); }
  }
  function coarse(seconds) {
    if (seconds < 60) return Math.floor(seconds) + " s";
    if (seconds < 3600) return Math.floor(seconds / 60) + " min";
    if (seconds < 172800) return Math.floor(seconds / 3600) + " h";
    return Math.floor(seconds / 86400) + " d";
  }
  // The page's own clock is the server's: skew is what the browser is off by.
  var skew = 0;
  function times(root) {
    var now = Date.now() - skew;
    all("time[data-ago]", root).forEach(function (mark) {
      var seconds = (now - Date.parse(mark.dateTime)) / 1000;
      mark.textContent = seconds < -1 ? "in " + coarse(-seconds) : seconds < 2 ? "just now" : coarse(seconds) + " ago";
    });
  }
  function clocks(root) {
    var name = zoneName();
    var form = formatter(name);
    all("time[data-clock], time[data-ago]", root).forEach(function (mark) {
      var text = form.format(new Date(mark.dateTime));
      if ("clock" in mark.dataset) mark.textContent = text;
      mark.title = text + " " + name + " (" + mark.dateTime + ")";
    });
    all("[data-zone-name]").forEach(function (mark) { mark.textContent = zone() === "UTC" ? "UTC" : zone(); mark.title = name; });
  }

  // Rows: j, k, Enter.
  function rows() { return all("[data-row]"); }
  function chosen() { return one("[data-row].row-on"); }
  function choose(row) {
    all(".row-on").forEach(function (other) { other.classList.remove("row-on"); });
    if (!row) return;
    row.classList.add("row-on");
    row.scrollIntoView({ block: "nearest" });
    document.body.dataset.row = row.id;
  }
  function step(by) {
    var list = rows();
    if (!list.length) return;
    var at = list.indexOf(chosen());
    choose(list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + by))]);
  }
  function openRow() {
    var row = chosen();
    var link = row && (row.querySelector(".row-link") || row.querySelector("a, summary"));
    if (link) link.click();
  }

  // Ticked rows: x, and what is ticked stays so when the rows are drawn again.
  var ticked = new Set();
  function ticks() { return all("[data-tick]"); }
  function tell() {
    all("[data-ticked]").forEach(function (mark) { mark.textContent = ticked.size ? ticked.size + " chosen" : ""; });
    var boxes = ticks();
    all("[data-tick-all]").forEach(function (box) {
      box.checked = boxes.length > 0 && boxes.every(function (other) { return other.checked; });
    });
  }
  function noteTicks() {
    ticks().forEach(function (box) { if (box.checked) ticked.add(box.value); else ticked.delete(box.value); });
    tell();
  }
  function onTick(event) {
    if (event.target.matches("[data-tick-all]")) ticks().forEach(function (box) { box.checked = event.target.checked; });
    if (event.target.matches("[data-tick], [data-tick-all]")) noteTicks();
  }
  function tickRow() {
    var row = chosen();
    var box = row && row.querySelector("[data-tick]");
    if (box) { box.checked = !box.checked; noteTicks(); }
  }
  function retick() {
    var boxes = ticks();
    boxes.forEach(function (box) { box.checked = ticked.has(box.value); });
    ticked = new Set(boxes.filter(function (box) { return box.checked; }).map(function (box) { return box.value; }));
    tell();
  }

  // The palette.
  function palette() { return one("#palette"); }
  function openPalette() {
    var box = palette();
    if (!box || box.open) return;
    box.showModal();
    var line = box.querySelector("[data-palette-input]");
    line.value = "";
    narrow();
    line.focus();
  }
  function shown() { return all("[data-palette-item]", palette()).filter(function (item) { return !item.hidden; }); }
  function narrow() {
    var box = palette();
    var text = box.querySelector("[data-palette-input]").value.trim().toLowerCase();
    all("[data-palette-item]", box).forEach(function (item) {
      var search = item.classList.contains("palette-search");
      item.hidden = search ? !text : !item.textContent.toLowerCase().includes(text);
      item.classList.remove("palette-on");
    });
    box.querySelector("[data-palette-words]").textContent = text;
    var list = shown();
    if (list.length) list[0].classList.add("palette-on");
  }
  function movePalette(by) {
    var list = shown();
    if (!list.length) return;
    var at = list.findIndex(function (item) { return item.classList.contains("palette-on"); });
    if (at >= 0) list[at].classList.remove("palette-on");
    var next = list[(at + by + list.length) % list.length];
    next.classList.add("palette-on");
    next.scrollIntoView({ block: "nearest" });
  }
  var homes = { task: "/tasks/", wf: "/workflows/", wrk: "/workers/" };
  function takePalette(event) {
    event.preventDefault();
    var form = event.target;
    var text = form.elements.q.value.trim();
    var prefix = /^(task|wf|wrk)_[0-9a-z]+$/.exec(text);
    if (prefix) {
      var link = one(".side-link");
      location.href = homes[prefix[1]] + encodeURIComponent(text) + (link ? new URL(link.href).search : "");
      return;
    }
    var on = shown().find(function (item) { return item.classList.contains("palette-on"); });
    if (on && on.tagName === "A") on.click();
    else form.submit();
  }

  function copy(button) {
    var text = button.parentElement.querySelector("code").textContent;
    navigator.clipboard.writeText(text).then(function () {
      button.classList.add("copied");
      setTimeout(function () { button.classList.remove("copied"); }, 1200);
    });
  }

  function jump(key) {
    var link = one('.side-body [data-jump="' + CSS.escape(key) + '"]');
    if (link) link.click();
  }

  function onKey(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || one("dialog[open]")) return;
    if (Date.now() - chord < 1200) {
      chord = 0;
      jump(event.key);
      return;
    }
    switch (event.key) {
      case "g": chord = Date.now(); break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "x": tickRow(); break;
      case "Enter": if (event.target === document.body || event.target.id === "main") openRow(); break;
      case "o": var older = one("[data-next]"); if (older) older.click(); break;
      case "?": one("#keys").showModal(); break;
      case "/":
        event.preventDefault();
        var query = one("[data-query]");
        if (query) { query.focus(); query.select(); } else openPalette();
        break;
      case "Escape": all("details.ask[open], details[data-menu][open]").forEach(function (fold) { fold.open = false; }); break;
    }
  }

  function onClick(event) {
    var hit = function (selector) { return event.target.closest(selector); };
    if (hit("[data-theme-switch]")) window.nightshiftTheme();
    if (hit("[data-palette]")) openPalette();
    if (hit("[data-keys]")) one("#keys").showModal();
    if (hit("[data-copy]")) copy(hit("[data-copy]"));
    if (hit("[data-zone-switch]")) {
      var next = zones[(zones.indexOf(zone()) + 1) % zones.length];
      try { localStorage.setItem("zone", next); } catch (e) { /* private windows keep nothing */ }
      clocks();
    }
    all("details.ask[open], details[data-menu][open]").forEach(function (fold) {
      if (!fold.contains(event.target)) fold.open = false;
    });
    if (event.target.tagName === "DIALOG") event.target.close();
  }

  // A button acts once: a second press while the page loads does nothing.
  function onSubmit(event) {
    if (event.target.method !== "post" || event.defaultPrevented) return;
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    event.target.dataset.sent = "yes";
  }

  document.addEventListener("DOMContentLoaded", function () {
    skew = document.body.dataset.now ? Date.now() - Date.parse(document.body.dataset.now) : 0;
    clocks();
    setInterval(times, 5000);
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", onClick);
    document.addEventListener("submit", onSubmit);
    document.addEventListener("change", onTick);
    noteTicks();
    var box = palette();
    if (!box) return;
    box.querySelector("[data-palette-input]").addEventListener("input", narrow);
    box.querySelector("[data-palette-form]").addEventListener("submit", takePalette);
    box.addEventListener("keydown", function (event) {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      movePalette(event.key === "ArrowDown" ? 1 : -1);
    });
  });
  document.addEventListener("htmx:afterSettle", function (event) {
    clocks(event.target);
    if (ticked.size) retick();
    var row = document.body.dataset.row && document.getElementById(document.body.dataset.row);
    if (row) row.classList.add("row-on");
  });
  window.addEventListener("pageshow", function () {
    all("form[data-sent]").forEach(function (form) { delete form.dataset.sent; });
    noteTicks();
  });
})();
