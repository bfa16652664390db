// Pan, zoom, collapse, search, and ways from pictures to texts. Pan and zoom are d3-zoom's.
"use strict";

// ---- pictures that are panned and zoomed

const views = new Map();

for (const figure of document.querySelectorAll(".figure")) {
  const picture = figure.querySelector("svg");
  const size = [picture.width.baseVal.value, picture.height.baseVal.value];
  const moved = document.createElementNS("http://www.w3.org/2000/svg", "g");
  moved.append(...picture.querySelectorAll(":scope > g"));
  picture.append(moved);
  picture.removeAttribute("viewBox");
  picture.setAttribute("width", "100%");
  picture.setAttribute("height", "100%");
  const zoom = d3.zoom().scaleExtent([0.02, 8]).on("zoom", (event) => moved.setAttribute("transform", event.transform));
  const shown = d3.select(picture).call(zoom).on("dblclick.zoom", null);
  const fit = () => {
    const scale = Math.min(figure.clientWidth / size[0], figure.clientHeight / size[1], 1);
    const left = (figure.clientWidth - scale * size[0]) / 2;
    shown.call(zoom.transform, d3.zoomIdentity.translate(left, 0).scale(scale));
  };
  const buttons = figure.previousElementSibling.querySelectorAll("button");
  buttons[0].onclick = fit;
  buttons[1].onclick = () => shown.call(zoom.scaleBy, 1.3);
  buttons[2].onclick = () => shown.call(zoom.scaleBy, 1 / 1.3);
  buttons[3].onclick = () => {
    const frames = [...picture.querySelectorAll("[data-members]")];
    const all = frames.some((frame) => !frame.classList.contains("collapsed"));
    frames.forEach((frame) => collapse(frame, all));
  };
  views.set(picture, (element) => {
    const box = element.getBBox();
    shown.call(zoom.translateTo, box.x + box.width / 2, box.y + box.height / 2);
  });
  fit();
}

// ---- kernels that are collapsed to their frames

// A collapsed frame is painted last, over what it holds; arrows end at its border then.
function collapse(frame, on) {
  if (on === frame.classList.contains("collapsed")) return;
  frame.classList.toggle("collapsed", on);
  if (on) {
    const mark = document.createComment("");
    frame.replaceWith(mark);
    mark.parentNode.append(frame);
    frame.mark = mark;
  } else {
    frame.mark.replaceWith(frame);
  }
}

for (const frame of document.querySelectorAll("svg [data-members]")) {
  frame.querySelector("rect").addEventListener("click", () => collapse(frame, !frame.classList.contains("collapsed")));
}

// ---- from a kernel to its source, from a class to its row, from a row to rules

function show(name) {
  const place = document.getElementById(name);
  if (place === null) return;
  document.querySelectorAll(".shown").forEach((old) => old.classList.remove("shown"));
  place.classList.add("shown");
  place.scrollIntoView({ block: "start" });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  const box = event.target.closest("svg [data-class]");
  if (link !== null) {
    event.preventDefault();
    show(link.getAttribute("href").slice(1));
  } else if (box !== null) {
    show(box.dataset.class);
  }
});

// ---- search

const field = document.querySelector("nav input");
const told = document.querySelector("nav output");
let found = [];
let place = -1;

function search() {
  const wanted = field.value.trim().toLowerCase();
  const boxes = [...document.querySelectorAll("svg g[id]:not([data-members])")];
  const rows = [...document.querySelectorAll("tr[id]")];
  const matches = (element) => wanted !== "" && element.textContent.toLowerCase().includes(wanted);
  for (const box of boxes) {
    box.classList.toggle("found", matches(box));
    box.classList.toggle("passed", wanted !== "" && !matches(box));
  }
  found = [...boxes, ...rows].filter(matches);
  place = -1;
  told.value = wanted === "" ? "" : `${found.length} found`;
}

field.addEventListener("input", search);
field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || found.length === 0) return;
  place = (place + 1) % found.length;
  const element = found[place];
  const picture = element.closest("svg");
  if (picture === null) {
    show(element.id);
  } else {
    picture.scrollIntoView({ block: "center" });
    views.get(picture)(element);
  }
  told.value = `${place + 1} of ${found.length}`;
});

// ---- dark mode

const button = document.querySelector("#dark");
const dark = (on) => {
  document.documentElement.classList.toggle("dark", on);
  button.textContent = on ? "light" : "dark";
};
dark(window.matchMedia("(prefers-color-scheme: dark)").matches);
button.onclick = () => dark(!document.documentElement.classList.contains("dark"));
