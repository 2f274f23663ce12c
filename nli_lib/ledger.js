// At first the claims that were judged. Rows carry their verdict, groups their paper; a choice hides what has another one. Sorting stays inside a group.
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
          const verdict = chosen("verdict"), own = row.dataset.verdict;
          row.hidden = !paper || (verdict === "judged" ? own === "not judged" : !!verdict && own !== verdict);
          some += !row.hidden;
        }
        group.hidden = !some;
        left += some;
      }
      ledger.querySelector("output").textContent = `${left} claims`;
    };
    ledger.addEventListener("change", filter);
    const asked = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const show = () => {  // a link to a claim that is folded away unfolds it
      if (ledger.contains(asked()) && asked().hidden) {
        ledger.querySelector("select[data-by=verdict]").value = "";
        filter();
        asked().scrollIntoView();
      }
    };
    addEventListener("hashchange", show);
    filter();
    show();
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
