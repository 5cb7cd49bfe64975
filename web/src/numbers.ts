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
