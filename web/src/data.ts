// The data of a page, as the package `unisono.viewing` writes them. Arrays of one object are columns of equal length.

export interface Page {
  title: string;
  form: string;
  /** The fact `summary` is the first line of the page. */
  facts: Record<string, string | number | boolean | null>;
  panels: Panel[];
  version: string;
}

export type Panel =
  | MapPanel
  | HeatPanel
  | TimelinePanel
  | CandidatesPanel
  | CurvesPanel
  | TablePanel
  | TextPanel
  | PicturePanel;

/** The unit of times: cycles of a wafer, nanoseconds of a run, or steps of a schedule without times. */
export type Unit = "cycles" | "ns" | "steps";

export interface MapPanel {
  kind: "map";
  title: string;
  note: string;
  unit: Unit;
  last: number;
  amount: "elements" | "bytes";
  nodes: { label: string[]; type: ("pe" | "rank" | "switch" | "idle")[]; x: number[]; y: number[]; root?: number | null };
  links: Links | null;
  phases: string[];
  /** Sorted by start. */
  moves: { source: number[]; target: number[]; amount: number[]; phase: number[]; start: number[]; end: number[] };
}

/** A large machine, cell by cell and row by row; a layer has a value for each cell, null for an unused one. */
export interface HeatPanel {
  kind: "heat";
  title: string;
  note: string;
  /** The name of one cell, such as that of a processing element. */
  cell: string;
  rows: number;
  columns: number;
  layers: { name: string; unit: string; values: (number | null)[] }[];
}

/** Links by the indices of their nodes; networks add the cables' rate and latency, probes their findings. */
export interface Links {
  source: number[];
  target: number[];
  load: number[] | null;
  unit: string;
  gbps?: number[];
  ns?: number[];
  state?: State[];
  /** The rate that a probe reached, and the rate that it expected, both in Gb/s. */
  reached?: (number | null)[];
  expected?: number[];
}

/** The state of a cable: slow, slow unless another cable is, as fast as expected, or used by no message. */
export type State = "slow" | "doubted" | "fast" | "untested";

export interface TimelinePanel {
  kind: "timeline";
  title: string;
  unit: Unit;
  last: number;
  tracks: string[];
  /** Sorted by track and start. */
  spans: { track: number[]; start: number[]; end: number[]; name: string[] };
}

export interface Point {
  shape: string;
  elements: number;
  bytes: number | null;
  candidates: { name: string; value: number; source: string | null }[];
  bound: { name: string; value: number } | null;
}

export interface CandidatesPanel {
  kind: "candidates";
  title: string;
  unit: "cycles" | "seconds";
  points: Point[];
  /** The point that is shown first. */
  chosen: number;
}

/** Times by size; a point is a size in bytes and a time in seconds. */
export interface CurvesPanel {
  kind: "curves";
  title: string;
  pictures: { name: string; lines: { name: string; points: [number, number][] }[] }[];
}

export interface TablePanel {
  kind: "table";
  title: string;
  columns: string[];
  rows: (string | number | boolean | null)[][];
}

/** A drawn figure, such as a part of a network that has too many cables for a map. */
export interface PicturePanel {
  kind: "picture";
  title: string;
  note: string;
  /** An address that begins with `data:`. */
  image: string;
}

export interface TextPanel {
  kind: "text";
  title: string;
  text: string;
  /** True for sentences, whose lines are wrapped. */
  wraps?: boolean;
}
