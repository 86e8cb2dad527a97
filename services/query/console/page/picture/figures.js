// The metrics of each node of the diagram: pure.

import { count, duration, rate } from "../format.js";

/** The metrics of a node, by its name: {figure, unit, lines}. */
export const nodeFigures = {
  devices: ({ topics }) => ({ figure: rate(topics.events.rate), unit: "/s", lines: [] }),
  events: ({ topics }) => topic(topics.events),
  feedback: ({ topics }) => topic(topics.feedback),
  snapshots: ({ topics }) => topic(topics.snapshots),
  dead_letters: ({ topics }) => ({ figure: count(topics.dead_letters.end), unit: "", lines: [] }),
  job,
  workers,
  query,
};

function topic({ rate: records, end }) {
  return { figure: rate(records), unit: "/s", lines: [end === null ? "unknown" : `${count(end)} records`] };
}

function job(now) {
  if (!now.job.length) return { figure: "not monitored", lines: ["add it to", "STATELOOP_SCRAPE_TARGETS"] };
  const one = now.job.find((part) => part.up);
  if (!one) return { figure: "unreachable", lines: [now.job[0].error ?? ""] };
  if (one.starting) return { figure: "starting", lines: ["resumes from its checkpoint"] };
  const snapshots = now.topics.snapshots.rate === null ? "" : `${rate(now.topics.snapshots.rate)} snapshots/s`;
  if (one.batch_s === null) return { figure: "up", lines: ["no batch committed yet", snapshots] };
  const pause = one.pause_s === null ? "" : `, pause ${duration(Math.max(0, one.pause_s) * 1000)}`;
  const keys = one.keys === null ? { figure: "up" } : { figure: count(one.keys), unit: "keys" };
  return { ...keys, lines: [`lag ${count(one.lag)} records`, `batch ${duration(one.batch_s * 1000)}${pause}`, snapshots] };
}

function workers(now) {
  if (!now.workers.length) return { figure: "not monitored", lines: ["add them to", "STATELOOP_SCRAPE_TARGETS"] };
  const up = now.workers.filter((one) => one.up);
  if (!up.length) return { figure: "unreachable", lines: [now.workers[0].error ?? ""] };
  const calls = sum(up.map((one) => one.calls));
  return {
    figure: rate(calls),
    unit: "calls/s",
    lines: [
      `${up.length} of ${now.workers.length} up`,
      `lag ${count(sum(up.map((one) => one.lag)))}`,
      `${count(sum(up.map((one) => one.in_flight)))} in flight`,
    ],
  };
}

function query(now) {
  const partitions = now.states.flatMap((state) => Object.entries(state.roles));
  const inRole = (role) => sum(partitions.filter(([name]) => name === role).map(([, number]) => number)) ?? 0;
  const lines = [`${now.states.length} named ${now.states.length === 1 ? "state" : "states"}`];
  lines.push(`${now.instances.length} ${now.instances.length === 1 ? "instance" : "instances"}`);
  lines.push(inRole("catching_up") ? `${inRole("catching_up")} partitions catching up` : `${inRole("owner")} partitions here`);
  return { figure: count(sum(now.states.map((state) => state.lag))), unit: "behind", lines };
}

function sum(numbers) {
  const known = numbers.filter((one) => one !== null && one !== undefined);
  return known.length ? known.reduce((total, one) => total + one, 0) : null;
}
