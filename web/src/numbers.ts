// Numbers and times as people read them.

import { format } from "d3-format";
import type { Unit } from "./data";

const plain = format(",.4~r");
const whole = format(",d");

export function number(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? whole(value) : plain(value);
}

/** Formats seconds in s, ms, µs or ns, with few digits before the point. */
export function seconds(value: number): string {
  const [scale, unit] = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e3, "ms"] : value >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${plain(value * scale)} ${unit}`;
}

export function time(value: number, unit: Unit | "seconds"): string {
  if (unit === "ns") return value === 0 ? "0 ns" : seconds(value * 1e-9);
  if (unit === "seconds") return seconds(value);
  return `${number(Math.round(value * 100) / 100)} ${unit}`;
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${plain(value)} ${units[at]}`;
}

/** The last words of names of facts that are a unit. Longer names of units come first. */
const UNITS: [string, string][] = [
  ["ns per byte", "ns/B"],
  ["gb per second", "GB/s"],
  ["cycles", "cycles"],
  ["gbps", "Gb/s"],
  ["tflops", "Tflop/s"],
  ["mhz", "MHz"],
  ["usd", "$"],
  ["microseconds", "µs"],
  ["us", "µs"],
  ["ns", "ns"],
];

/** The name of a fact and its value in words; a unit at the end of the name is written after the value. */
export function fact(name: string, value: string | number | boolean): [string, string] {
  if (typeof value !== "number") return [name, String(value)];
  if (name === "seconds") return ["time", seconds(value)];
  if (name.endsWith(" seconds")) return [name.slice(0, -" seconds".length), time(value, "seconds")];
  if (name.includes("bytes per second")) return [name.replace("bytes per second", "bandwidth"), `${plain(value / 1e9)} GB/s`];
  if (name.endsWith(" bytes")) return [name.slice(0, -" bytes".length), bytes(value)];
  const found = UNITS.find(([words]) => name.endsWith(` ${words}`));
  return found ? [name.slice(0, -found[0].length - 1), `${number(value)} ${found[1]}`] : [name, number(value)];
}
