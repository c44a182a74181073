"use strict";
// The page is complete without this script. It marks the place of a finding, filters findings and copies commands.
const findings = [...document.querySelectorAll("details[data-finding]")];
for (const one of findings) {
  const parts = document.querySelectorAll(`[data-findings~="${one.dataset.finding}"]`);
  const mark = on => parts.forEach(part => part.classList.toggle("lit", on));
  for (const event of ["mouseenter", "focusin"]) one.addEventListener(event, () => mark(true));
  for (const event of ["mouseleave", "focusout"]) one.addEventListener(event, () => mark(false));
}
if (findings.length > 3) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Filter findings";
  field.setAttribute("aria-label", "Filter findings");
  field.addEventListener("input", () => findings.forEach(one => {
    one.hidden = !one.textContent.toLowerCase().includes(field.value.toLowerCase());
  }));
  findings[0].before(field);
}
if (navigator.clipboard) for (const code of document.querySelectorAll("code")) {
  const button = document.createElement("button");
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${code.textContent}`);
  button.addEventListener("click", () => navigator.clipboard.writeText(code.textContent).then(
    () => { button.textContent = "Copied"; }, () => { button.textContent = "Not allowed"; }));
  code.after(" ", button);
}
