// The figure under the pointer, or that has the focus, in words.
const readout = document.getElementById("readout");
for (const mark of document.querySelectorAll(".mark")) {
  const say = () => { readout.textContent = mark.getAttribute("aria-label"); };
  mark.addEventListener("pointerenter", say);
  mark.addEventListener("focus", say);
}
for (const box of document.querySelectorAll("input[type=checkbox]")) {
  box.addEventListener("change", () => {
    for (const row of document.querySelectorAll(".mark")) {
      if (row.dataset.condition === box.value) row.style.opacity = box.checked ? 1 : 0.08;
    }
  });
}
