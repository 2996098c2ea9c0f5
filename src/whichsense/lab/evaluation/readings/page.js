"use strict";
const form = JSON.parse(document.getElementById("form").textContent);
const groups = Array.from(document.querySelectorAll("fieldset"));
const reader = document.getElementById("reader");
// Another form has other marks.
const key = `whichsense ${document.title} ${form.provenance.when}`;

function buttons(group) {
  return Array.from(group.querySelectorAll("input"));
}

// A button's name is "question/reading/mark".
function fillIn() {
  form.reader = reader.value.trim();
  let given = 0;
  for (const group of groups) {
    const [question, reading, mark] = buttons(group)[0].name.split("/");
    const chosen = buttons(group).find((button) => button.checked);
    form.questions[question].readings[reading].marks[mark] =
      chosen ? chosen.value === "yes" : null;
    group.classList.toggle("open", !chosen);
    given += chosen ? 1 : 0;
  }
  document.getElementById("status").textContent =
    `${given} of ${groups.length} marks given`;
}

// Some browsers keep nothing for pages from a disk; the download works in any case.
function keep() {
  const chosen = {};
  for (const button of document.querySelectorAll("fieldset input:checked")) {
    chosen[button.name] = button.value;
  }
  try {
    localStorage.setItem(key, JSON.stringify({ reader: reader.value, chosen }));
  } catch (error) {
    console.warn(error);
  }
}

function restore() {
  try {
    const kept = JSON.parse(localStorage.getItem(key) || "{}");
    reader.value = kept.reader || "";
    for (const button of document.querySelectorAll("fieldset input")) {
      button.checked = (kept.chosen || {})[button.name] === button.value;
    }
  } catch (error) {
    console.warn(error);
  }
}

function download() {
  fillIn();
  const body = new Blob([JSON.stringify(form, null, 1) + "\n"], { type: "application/json" });
  const link = document.createElement("a");
  const stem = document.title.split(": ").pop();
  const name = form.reader.replace(/[^\p{L}\p{N}]+/gu, "-") || "filled";
  link.href = URL.createObjectURL(body);
  link.download = `${stem}.${name}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.addEventListener("change", () => {
  fillIn();
  keep();
});
document.addEventListener("keydown", (event) => {
  const group = event.target.closest("fieldset");
  const value = { y: "yes", n: "no" }[event.key];
  if (!group || !value || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  buttons(group).find((button) => button.value === value).checked = true;
  const next = groups[groups.indexOf(group) + 1];
  if (next) {
    const inside = buttons(next);
    (inside.find((button) => button.checked) || inside[0]).focus();
  }
  fillIn();
  keep();
});
document.getElementById("download").addEventListener("click", download);
restore();
fillIn();
