// All runs, as a table.
{
  function fill(section) {
    const measures = DATA.measures.map((measure) => measureName(measure));
    const columns = [{title: "run"}, {title: levelHead}, {title: DATA.methodKey}, {title: "seed", number: true}, {title: "status"}, {title: "rounds", number: true},
      {title: "bits up", number: true}, {title: "bits down", number: true}, {title: "ζ²", number: true}, {title: "refused", number: true}, ...[...measures, ...DATA.payments].map((title) => ({title, number: true}))];
    const place = (run) => [run[1] === null ? "replaced by a later run" : levelName(run[1]), run[2] === null ? "" : methodName(run[2])];
    const plain = DATA.runs.map((run) => [run[0], ...place(run), ...run.slice(3)]);
    const order = (run) => [run[1] ?? Infinity, run[2] ?? Infinity, run[3]];
    const sorted = [...DATA.runs].sort((a, b) => order(a).map((value, i) => value - order(b)[i]).find((difference) => difference !== 0) || 0);
    const rows = sorted.map((run) => [run[0].slice(0, 12), ...place(run), String(run[3]), element("span", {class: `status-${run[4]}`}, run[4]), String(run[5]), bits(run[6]), bits(run[7]),
      short(run[8]), String(run[9]), ...run.slice(10).map((value) => short(value))]);
    const list = table(columns, rows);
    const search = element("input", {type: "search", placeholder: "level, method, status …", "aria-label": "Show only runs that contain these words"});
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/);
      for (const row of list.tBodies[0].rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
    const count = (status) => DATA.runs.filter((run) => run[4] === status).length;
    const statuses = ["done", "diverged", "interrupted", "failed"].filter((status) => count(status)).map((status) => `${count(status)} ${status}`);
    section.append(element("h2", {}, "Runs"),
      element("p", {class: "note"}, `${plural(DATA.runs.length, "run")}: ${joined(statuses)}. fedbits explain HASH --out FOLDER, with the beginning of a hash, prints the exact scenario of a run. `
        + "The columns after “refused” hold the last value that each run measured, which decides nothing above, and how the bits are spread over the clients (“–”: nothing of it was sent)."),
      search, scrolling(list, "All runs", true),
      element("div", {class: "tools"}, element("button", {type: "button", "aria-label": "Download the list of runs as CSV",
        onclick: () => download(`${fileName("runs")}.csv`, "text/csv", csv(columns.map((column) => column.title), plain))}, "CSV")));
  }

  addSection({id: "runs", place: 130, every: "study", fill});
}
