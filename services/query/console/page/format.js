// Formats numbers and times.

const UNKNOWN = "–";
const NO_FRACTION = /(?<=^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.0+Z$/;
const LONG_AGO_MS = 2 * 86_400_000;
/** Lists with more items are truncated to the first few. */
const [LONGEST, SHOWN] = [100, 10];
const exact = new Intl.NumberFormat("en-US");
const tight = new Intl.NumberFormat("en-US", { notation: "compact" });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** A whole number: exact up to 99,999, then short. */
export function count(number) {
  if (number === null || number === undefined) return UNKNOWN;
  return Math.abs(number) < 100_000 ? exact.format(Math.round(number)) : short.format(number);
}

/** A whole number where there is little room: of two or three digits. */
export function brief(number) {
  return number < 10_000 ? count(number) : tight.format(number);
}

/** A whole number, exact however large: a version is a name, not a size. */
export function whole(number) {
  return exact.format(number);
}

/** A number per second, without its unit. */
export function rate(number) {
  if (number === null || number === undefined) return UNKNOWN;
  if (number === 0) return "0";
  if (number < 100) return number < 0.05 ? "<0.1" : number.toFixed(1);
  return count(number);
}

/** Milliseconds in the unit that suits them. */
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return UNKNOWN;
  if (milliseconds < 1) return "<1 ms";
  if (milliseconds < 1000) return `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  const days = seconds / 86_400;
  return days < 730 ? `${Math.round(days)} d` : `${(days / 365.25).toFixed(1)} years`;
}

/** A time in ISO 8601, by the reader's clock, to the second. */
export function time(iso) {
  const date = new Date(iso ?? NaN);
  if (Number.isNaN(date.getTime())) return UNKNOWN;
  const pad = (part) => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** How long ago a time is. */
export function ago(iso) {
  const passed = Date.now() - new Date(iso ?? NaN).getTime();
  return Number.isNaN(passed) ? UNKNOWN : `${duration(Math.max(0, passed))} ago`;
}

/** The time of day of milliseconds since 1970, by the reader's clock, to the second. */
export function clock(milliseconds) {
  return new Date(milliseconds).toTimeString().slice(0, 8);
}

/** A time as one looks at it in a list: how long ago, or when, if that is days ago. */
export function when(iso) {
  return Date.now() - new Date(iso ?? NaN).getTime() > LONG_AGO_MS ? time(iso) : ago(iso);
}

/** Any value of a state in one line; of a long list, the beginning. */
export function value(any) {
  if (any === null || any === undefined) return UNKNOWN;
  if (typeof any === "string") return any.replace(NO_FRACTION, "Z");
  if (typeof any === "number") return Number.isInteger(any) ? String(any) : String(Number(any.toPrecision(8)));
  if (Array.isArray(any) && any.length > LONGEST) return `${JSON.stringify(any.slice(0, SHOWN)).slice(0, -1)}, … ${count(any.length)} items]`;
  return typeof any === "object" ? JSON.stringify(any) : String(any);
}
