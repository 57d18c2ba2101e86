// The page of `fedbits serve`: the run that is played, its curves, the peers, what was refused and the runs that have ended.
"use strict";

class ServePage {
  constructor(main) {
    this.figures = new Figures(["Round", "Clients hosted", "Training loss", "Test accuracy", "Bits up", "Bits down", "Sockets in", "Sockets out", "Time left"]);
    this.charts = [
      new LiveChart({title: "Training loss", description: "Of the server's model after each measured round.", series: [{key: "train_loss", label: "training loss"}], format: short}),
      new LiveChart({title: "Test accuracy", description: "The share of test rows that the server's model labels correctly.", series: [{key: "test_accuracy", label: "test accuracy"}], format: percent, share: true}),
      new LiveChart({title: "Bits", description: "All clients together, as the ledger counts them.", series: [{key: "bits_up", label: "up"}, {key: "bits_down", label: "down"}], format: bits, fromZero: true}),
    ];
    this.peers = new LiveTable([{title: "clients"}, {title: "state"}, {title: "last round", number: true}, {title: "refused", number: true}, {title: "address"}, {title: "why it left"}], "Peers");
    this.more = element("p", {class: "note"});
    this.refused = new LiveTable([{title: "reason"}, {title: "times", number: true}], "Refused frames");
    this.ended = new LiveTable([{title: "run"}, {title: "seed", number: true}, {title: "status"}, {title: "rounds", number: true}, {title: "training loss", number: true},
      {title: "test accuracy", number: true}, {title: "bits up", number: true}, {title: "bits down", number: true}], "Runs that have ended");
    this.refusedPart = part("Refused frames", "What peers sent that the server did not take, by reason.", this.refused.node);
    this.endedPart = part("Runs that have ended", "", this.ended.node);
    this.whole = progressBar("Rounds of the run");
    this.whole.classList.add("whole");
    main.append(part("This run", "", this.figures.node, this.whole),
      part("Curves", "", element("div", {class: "panels"}, ...this.charts.map((chart) => chart.figure))),
      part("Peers", "Processes that host clients. A peer has answered last in its last round.", this.peers.node, this.more), this.refusedPart, this.endedPart);
  }

  show(status) {
    const {run, sockets} = status;
    this.figures.set("Round", String(run.round), `of ${run.rounds}`);
    this.figures.set("Clients hosted", String(status.clients_hosted), `of ${run.clients}`);
    this.figures.set("Training loss", short(run.train_loss));
    this.figures.set("Test accuracy", percent(run.test_accuracy));
    this.figures.set("Bits up", bits(run.bits_up));
    this.figures.set("Bits down", bits(run.bits_down));
    this.figures.set("Sockets in", bytes(sockets.bytes_in), `${sockets.frames_in} frames`);
    this.figures.set("Sockets out", bytes(sockets.bytes_out), `${sockets.frames_out} frames`);
    this.figures.set("Time left", duration(status.seconds_left), `after ${duration(status.seconds)}`);
    setBar(this.whole, run.rounds ? run.round / run.rounds : 0);
    for (const chart of this.charts) chart.update(status.curve.round, status.curve);
    this.peers.fill(status.peers.map((peer) => [peer.clients || "not said yet", {text: peer.state, kind: `state-${peer.state}`}, peer.last_round ? String(peer.last_round) : "–",
      String(peer.refusals), peer.address, {text: peer.why, kind: "text"}]));
    setText(this.more, status.num_peers > status.peers.length ? `${status.num_peers - status.peers.length} more are not listed.` : status.num_peers ? "" : "No peer has come yet.");
    this.refusedPart.hidden = status.refused.length === 0;
    this.refused.fill(status.refused.map(({reason, times}) => [{text: reason, kind: "text"}, String(times)]));
    this.endedPart.hidden = status.ended.length === 0;
    this.ended.fill([...status.ended].reverse().map((one) => [one.run, String(one.seed), {text: one.message ? `${one.status}: ${one.message}` : one.status, kind: `state-${one.status}`},
      String(one.rounds), short(one.train_loss), percent(one.test_accuracy), bits(one.bits_up), bits(one.bits_down)]));
  }

  facts(status) {
    const {run} = status;
    return [run.title, run.run && `run ${run.run}`, status.runs > 1 && `${status.runs_ended} of ${status.runs} runs have ended`].filter(Boolean).join(" · ");
  }
  say(status) {
    if (status.phase === "waiting") return `The server waits for peers: ${status.clients_hosted} of ${status.run.clients} clients are hosted.`;
    return `Round ${status.run.round} of ${status.run.rounds} is closed. Training loss ${short(status.run.train_loss)}, test accuracy ${percent(status.run.test_accuracy)}.`;
  }
}
