// Rows carry their verdict, groups their paper; a choice hides what has another one. Sorting stays inside a group.
(function () {
  for (const ledger of document.querySelectorAll(".ledger:not(.ready)")) {
    ledger.classList.add("ready");
    const chosen = by => ledger.querySelector(`select[data-by=${by}]`).value;
    const filter = () => {
      let left = 0;
      for (const group of ledger.querySelectorAll("tbody")) {
        const paper = !chosen("paper") || group.dataset.paper === chosen("paper");
        let some = 0;
        for (const row of group.querySelectorAll("[data-verdict]")) {
          row.hidden = !paper || !!chosen("verdict") && row.dataset.verdict !== chosen("verdict");
          some += !row.hidden;
        }
        group.hidden = !some;
        left += some;
      }
      ledger.querySelector("output").textContent = `${left} claims`;
    };
    ledger.addEventListener("change", filter);
    ledger.querySelectorAll("thead button").forEach((button, column) => button.addEventListener("click", () => {
      const text = row => row.cells[column].innerText;
      const down = button.classList.toggle("down") ? 1 : -1;
      for (const group of ledger.querySelectorAll("tbody")) {
        const rows = [...group.querySelectorAll("[data-verdict]")];
        rows.sort((a, b) => down * text(a).localeCompare(text(b), undefined, {numeric: true}));
        group.append(...rows);
      }
    }));
  }
})();
