// Choosing a cell lists the items in it: which clips were taken for what.
const cells = JSON.parse(document.getElementById("cells").textContent);
const readout = document.getElementById("readout"), ids = document.getElementById("ids");

function choose(group) {
  document.querySelectorAll(".cell.chosen").forEach((other) => other.classList.remove("chosen"));
  group.classList.add("chosen");
  const cell = cells[Number(group.dataset.cell)];
  const more = cell.count - cell.ids.length;
  readout.textContent = `${cell.condition}: label ${cell.gold}, said ${cell.said}: ${cell.count} items`
    + (more > 0 ? `, the first ${cell.ids.length} below` : "");
  ids.replaceChildren(...cell.ids.map((id) => {
    const line = document.createElement("li");
    line.textContent = id;
    line.dir = "auto";
    return line;
  }));
}

for (const group of document.querySelectorAll(".cell")) {
  group.addEventListener("click", () => choose(group));
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(group); }
  });
}
