// What the runs sent: means over the runs of a method at a level, with the range of the runs.
{
  const UP = 6, DOWN = 7;  // places in a run
  const isTimed = () => DATA.cells.some((cell) => cell.paysBelow !== undefined);
  // The rate of an uplink below which a message of the method takes less time than one of the baseline.
  function paysBelow(cell) {
    if (!cell || cell.paysBelow === undefined) return "–";
    return cell.paysBelow === "inf" ? "at every rate" : cell.paysBelow === 0 ? "at no rate" : `${bits(cell.paysBelow)}/s`;
  }

  function fill(section, state) {
    const texts = (runs, value) => {
      const all = runs.map(value), low = Math.min(...all), high = Math.max(...all);
      const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
      return low === high ? bits(mean) : `${bits(mean)} (${bits(low)} to ${bits(high)})`;
    };
    const rows = DATA.panels.flatMap((_, p) => [...DATA.methods.keys()].filter((m) => shown(state, m)).map((m) => {
      const runs = DATA.runs.filter((run) => run[1] === p && run[2] === m);
      if (!runs.length) return null;
      return [levelName(p), methodName(m), String(runs.length), texts(runs, (run) => run[UP]), texts(runs, (run) => run[DOWN]), texts(runs, (run) => run[UP] + run[DOWN]), ...(isTimed() ? [paysBelow(cellOf(p, m))] : [])];
    })).filter((row) => row !== null);
    const columns = [{title: levelHead}, {title: DATA.methodKey}, {title: "runs", number: true}, ...["bits up", "bits down", "up and down", ...(isTimed() ? ["pays below"] : [])].map((title) => ({title, number: true}))];
    section.append(element("h2", {}, "What the runs sent"),
      element("p", {class: "note"}, "Exact bits of a whole run, all clients together: the mean over the runs, and the range in parentheses. What goes down is counted for each client that receives it."
        + (isTimed() ? ` “Pays below” is the rate of an uplink at which a message, with the time to make it, takes as long as one of ${methodName(DATA.baseline)}: compression pays on slower links.` : "")),
      tableWithCsv(columns, rows, "Bits of a run by method and level", fileName("bits")));
  }

  addSection({id: "costs", place: 95, fill});
}
