"""The page of a compiled function in headless Chromium: it opens, moves, collapses, searches, and leads on.

These tests run where Chromium is; ``make browser-check`` installs it.
"""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import esat

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--window-size=1300,900", "--virtual-time-budget=5000",
)  # fmt: skip
TIME = r"[\d.]+ (us|ms|s)"
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

# Runs in the page after its own script; what it finds comes back as the text of an element.
PROBE = """
<script>
const faults = [];
window.addEventListener("error", (event) => faults.push(event.message));
console.error = (...words) => faults.push(words.join(" "));
</script>
"""
ACTIONS = """
<script>
window.addEventListener("load", () => {
  const found = {};
  const options = { bubbles: true, cancelable: true };
  const click = (element) => element.dispatchEvent(new MouseEvent("click", options));
  const [graph, egraph] = document.querySelectorAll(".figure svg");
  const moved = graph.querySelector(":scope > g");
  found.fitted = moved.getAttribute("transform");
  graph.dispatchEvent(new WheelEvent("wheel", { ...options, deltaY: -200, clientX: 300, clientY: 300 }));
  found.zoomed = moved.getAttribute("transform");
  const frame = graph.querySelector("[data-members]");
  click(frame.querySelector("rect"));
  found.collapsed = frame.parentNode.lastElementChild === frame;
  click(frame.querySelector("rect"));
  found.expanded = frame.parentNode.lastElementChild !== frame;
  click(frame.querySelector("a text"));
  found.kernel = document.querySelector(".shown").id;
  const rows = [...document.querySelectorAll("#steps tr")].slice(1);
  found.steps = rows.map((row) => [...row.cells].map((cell) => cell.textContent));
  click(rows.find((row) => row.querySelector("a")).querySelector("a"));
  found.stepped = document.querySelector(".shown").id;
  click(egraph.querySelector("[data-class] text"));
  found.row = document.querySelector(".shown").id;
  click(document.querySelector(".rules a"));
  found.rule = document.querySelector(".shown").id;
  const field = document.querySelector("nav input");
  field.value = "sigmoid";
  field.dispatchEvent(new Event("input"));
  found.boxes = document.querySelectorAll("svg .found").length;
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  found.told = document.querySelector("nav output").value;
  click(document.querySelector("#dark"));
  found.dark = document.documentElement.classList.contains("dark");
  found.faults = faults;
  const report = document.createElement("pre");
  report.id = "found-by-the-test";
  report.textContent = JSON.stringify(found);
  document.body.append(report);
});
</script>
"""


def test_the_page_opens_and_can_be_used(tmp_path) -> None:
    x, w = esat.matrix("x"), esat.vector("w")
    scores = x @ w
    f = esat.compile(esat.Graph([x, w], [(esat.sigmoid(scores) - 1.0).sum(), esat.log(esat.sigmoid(scores))]))
    f.measure()
    f(np.ones((3, 2)), np.ones(2))
    f.save_html(tmp_path / "f.html")
    page = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert re.search(rf"{TIME} a call, measured; {TIME} predicted", page)
    begin, end = page.index("<body>") + len("<body>"), page.index("</body>")
    probed = tmp_path / "probed.html"
    probed.write_text(page[:begin] + PROBE + page[begin:end] + ACTIONS + page[end:], encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'user'}", "--dump-dom", probed.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    text = done.stdout.partition('<pre id="found-by-the-test">')[2].partition("</pre>")[0]
    found = json.loads(text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    assert found["faults"] == []
    assert found["fitted"].startswith("translate(")
    assert found["zoomed"] != found["fitted"]
    assert found["collapsed"]
    assert found["expanded"]
    assert found["kernel"].startswith("kernel_")
    assert len(found["steps"]) == len(f.steps)
    for _, _, measured, predicted, ratio, share in found["steps"]:
        assert re.fullmatch(TIME, measured)
        assert re.fullmatch(TIME, predicted)
        assert float(ratio) > 0.0
        assert share.endswith("%")
    assert found["stepped"].startswith("kernel_")
    assert found["row"].startswith("class")
    assert found["rule"].startswith("rule-")
    assert found["boxes"] > 0
    assert found["told"].startswith("1 of ")
    assert found["dark"] is True
