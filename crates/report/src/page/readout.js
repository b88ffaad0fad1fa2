"use strict";
// What a line says under the pointer. The page is complete without it.
(function () {
  var box = document.createElement("div");
  box.className = "readout";
  function axis(text) {
    var part = text.split(" ");
    var low = Number(part[3]), high = Number(part[4]);
    var warp = { linear: function (v) { return v; }, log: Math.log10, tail: function (v) { return -Math.log10(1 - v); } }[part[0]];
    var back = { linear: function (v) { return v; }, log: function (v) { return Math.pow(10, v); }, tail: function (v) { return 1 - Math.pow(10, -v); } }[part[0]];
    return { kind: part[0], from: Number(part[1]), to: Number(part[2]), unit: part.slice(5).join(" "),
      value: function (px) { return back(warp(low) + (px - this.from) / (this.to - this.from) * (warp(high) - warp(low))); } };
  }
  function show(value, at) {
    if (at.kind === "tail") { return (100 * value).toPrecision(4) + " %"; }
    var digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + " " + at.unit;
  }
  function points(path) {
    return path.getAttribute("d").split(/[ML]/).slice(1).map(function (text) { return text.split("h")[0].split(" ").map(Number); });
  }
  function nearest(list, x) {
    return list.reduce(function (best, point) { return Math.abs(best[0] - x) > Math.abs(point[0] - x) ? point : best; });
  }
  document.querySelectorAll("svg.chart .panel").forEach(function (panel) {
    var x = axis(panel.dataset.x), y = axis(panel.dataset.y);
    var lines = Array.from(panel.querySelectorAll("path.line:not(.steps)"), function (path) {
      return { name: path.dataset.name, points: points(path) };
    }).filter(function (line) { return line.name !== "" || panel.querySelectorAll("path.line").length === 1; });
    var svg = panel.ownerSVGElement;
    if (lines.length === 0) { return; }
    var hair = document.createElementNS(svg.namespaceURI, "line");
    hair.setAttribute("class", "hair");
    function leave() { box.remove(); hair.remove(); }
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("pointermove", function (event) {
      var at = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse());
      if (x.from > at.x || at.x > x.to) { leave(); return; }
      var near = nearest(lines[0].points, at.x)[0];
      var rows = lines.map(function (line) { return { name: line.name, point: nearest(line.points, near) }; })
        .filter(function (row) { return 8 > Math.abs(row.point[0] - near); })
        .sort(function (a, b) { return a.point[1] - b.point[1]; });
      hair.setAttribute("x1", near); hair.setAttribute("x2", near);
      hair.setAttribute("y1", y.to); hair.setAttribute("y2", y.from);
      panel.appendChild(hair);
      box.textContent = [show(x.value(near), x)].concat(rows.map(function (row) {
        return (row.name ? row.name + ": " : "") + show(y.value(row.point[1]), y);
      })).join("\n");
      document.body.appendChild(box);
      var room = document.documentElement.clientWidth - box.offsetWidth - 8;
      box.style.left = Math.max(4, Math.min(event.pageX + 14, window.scrollX + room)) + "px";
      box.style.top = event.pageY + 14 + "px";
    });
  });
})();
