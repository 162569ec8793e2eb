// One event stream a browser. The tab that holds the lock reads it and tells
// the others over a channel; each tab draws again, at most once a second, the
// regions that a hint names. A hint carries no data, only what moved:
// {"scope": "7", "topics": ["tasks"], "ids": ["task_…"], "more": false}
(function () {
  "use strict";
  var pace = 1000;
  var waiting = new Set();
  var timer = null;
  var drawn = 0;
  var open = new Map();
  var lastDrawn = new Map();

  function matches(region, hint) {
    return region.dataset.live.split(" ").some(function (word) {
      if (hint.topics && hint.topics.includes(word)) return true;
      if (!word.includes("_")) return false;
      return hint.more || (hint.ids && hint.ids.includes(word));
    });
  }

  // A region in use is left alone: an open form, a field being typed in, text
  // being selected. It catches up with the next hint or tick.
  function inUse(region) {
    if (region.querySelector("details.ask[open]")) return true;
    var focus = document.activeElement;
    if (focus && region.contains(focus) && focus.matches("input, textarea, select")) return true;
    var picked = window.getSelection();
    return Boolean(picked && !picked.isCollapsed && region.contains(picked.anchorNode));
  }

  // A costly region names a longer pace of its own.
  function tooSoon(region) {
    var least = Number(region.dataset.pace || 0);
    if (Date.now() - (lastDrawn.get(region.id) || 0) < least) return true;
    lastDrawn.set(region.id, Date.now());
    return false;
  }

  function draw() {
    timer = null;
    if (document.hidden) return;
    drawn = Date.now();
    Array.from(waiting).forEach(function (id) {
      var region = document.getElementById(id);
      if (region && (inUse(region) || tooSoon(region))) return;
      waiting.delete(id);
      if (region && window.htmx) window.htmx.trigger(region, "refresh");
    });
    if (waiting.size) soon();
  }

  function soon() {
    if (timer === null) timer = setTimeout(draw, Math.max(0, drawn + pace - Date.now()));
  }

  function take(hint) {
    if (hint.scope && hint.scope !== document.body.dataset.scope) return;
    document.querySelectorAll("[data-live]").forEach(function (region) {
      if (matches(region, hint)) waiting.add(region.id);
    });
    if (waiting.size) soon();
  }

  function all() {
    document.querySelectorAll("[data-live]").forEach(function (region) { waiting.add(region.id); });
    if (waiting.size) soon();
  }

  function show(state) {
    document.querySelectorAll("[data-live-state]").forEach(function (mark) {
      mark.dataset.liveState = state;
      mark.querySelector(".live-word").textContent = state === "on" ? "live" : "not live";
    });
  }

  function listen(tell) {
    var source = new EventSource("/ui/stream");
    source.addEventListener("open", function () { tell({ live: "on" }); });
    source.addEventListener("error", function () { tell({ live: "off" }); });
    source.addEventListener("hint", function (event) { tell({ hint: JSON.parse(event.data) }); });
    source.addEventListener("reset", function () { tell({ reset: true }); });
    return source;
  }

  function heard(message) {
    if (message.live) show(message.live);
    if (message.hint) take(message.hint);
    if (message.reset) all();
  }

  function start() {
    if (!document.querySelector("[data-live]") || !window.EventSource) return;
    if (!window.BroadcastChannel || !navigator.locks) {
      listen(heard);
      return;
    }
    var channel = new BroadcastChannel("nightshift");
    var last = "off";
    var leads = false;
    var late = []; // what was heard of late: a tab that opens now may have been drawn before it
    var me = String(Math.random());
    function recall() {
      late = late.filter(function (entry) { return Date.now() - entry.at < 15000; });
      if (late.length > 100) late = [{ at: Date.now(), reset: true }];
      return late;
    }
    channel.addEventListener("message", function (event) {
      var message = event.data;
      if (message.ask && leads) {
        channel.postMessage({ live: last });
        recall().forEach(function (entry) { channel.postMessage({ to: message.ask, hint: entry.hint, reset: entry.reset }); });
      }
      if (!message.to || message.to === me) heard(message);
    });
    channel.postMessage({ ask: me });
    var asked = Date.now();
    navigator.locks.request("nightshift-stream", function () {
      leads = true;
      if (Date.now() - asked > pace) all(); // the tab that led before is gone, and hints with it
      listen(function (message) {
        if (message.live) last = message.live;
        else recall().push({ at: Date.now(), hint: message.hint, reset: message.reset });
        heard(message);
        channel.postMessage(message);
      });
      return new Promise(function () { /* held until the tab closes */ });
    });
  }

  // What was unfolded by hand stays so when its region is drawn again.
  // A region that came into use while its new drawing was under way keeps the
  // old one for now.
  document.addEventListener("htmx:beforeSwap", function (event) {
    var region = event.detail.target;
    if ("live" in region.dataset && inUse(region)) {
      event.detail.shouldSwap = false;
      waiting.add(region.id);
      soon();
      return;
    }
    region.querySelectorAll("details[id]").forEach(function (fold) { open.set(fold.id, fold.open); });
  });
  document.addEventListener("htmx:afterSettle", function (event) {
    event.target.querySelectorAll("details[id]").forEach(function (fold) {
      if (open.has(fold.id)) fold.open = open.get(fold.id);
      open.delete(fold.id);
    });
  });
  document.addEventListener("visibilitychange", function () { if (!document.hidden && waiting.size) soon(); });
  document.addEventListener("DOMContentLoaded", start);
})();
