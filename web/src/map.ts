// Nodes and links of a machine, with the transfers of a schedule played over them.

import { bisectLeft, bisectRight, max } from "d3-array";
import { interpolateCividis } from "d3-scale-chromatic";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomTransform } from "d3-zoom";
import { clockOf } from "./clock";
import type { Links, MapPanel, State } from "./data";
import { color, element, fit, redrawn } from "./dom";
import { bytes, number } from "./numbers";
import { player } from "./player";

const MARGIN = 28;
/** The colours of phases, from the palette of Okabe and Ito; the legend names the phases. */
const PHASES = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/** The lines of cables by their state after a probe: slow ones are thickest, uncertain and untested ones dashed. */
const STATES: Record<State, { name: string; color: string; width: number; dash: number[] }> = {
  slow: { name: "slow", color: "busy", width: 4, dash: [] },
  doubted: { name: "it or another one is slow", color: "doubt", width: 3, dash: [8, 4] },
  fast: { name: "in time", color: "fast", width: 1.5, dash: [] },
  untested: { name: "not tested", color: "line", width: 1, dash: [2, 3] },
};
/** The largest number of slow cables whose rates are written beside them. */
const LABELLED = 12;
/** If there are more cables, the lines of fast ones are faint. */
const MANY = 150;
/** From this number of cables on, those of a machine are faint until one zooms in. */
const CROWDED = 1000;

export function map(panel: MapPanel): HTMLElement {
  const { nodes, moves, links } = panel;
  const clock = clockOf(panel.unit, panel.last);
  const canvas = element("canvas", { class: "map", role: "img", tabindex: 0, "aria-label": describe(panel) });
  const tip = element("div", { class: "tip", hidden: true });
  const counts = element("output", { class: "counts", "aria-live": "off" });
  const most = links?.load ? (max(links.load) ?? 0) : 0;
  const ends = Float64Array.from(moves.end).sort();
  const longest = moves.start.reduce((most, start, k) => Math.max(most, moves.end[k] - start), 0);
  const bends = links ? bendsOf(nodes, links) : [];
  // Slow cables are drawn over the others.
  const rank: Record<State, number> = { untested: 0, fast: 1, doubted: 2, slow: 3 };
  const order = links ? links.source.map((_, k) => k) : [];
  if (links?.state) order.sort((a, b) => rank[links.state![a]] - rank[links.state![b]]);
  let transform: ZoomTransform = zoomIdentity;
  let places: [number, number][] = [];
  let unit = 1;

  function arrange(width: number, height: number): void {
    const [left, right] = [Math.min(...nodes.x), Math.max(...nodes.x)];
    const [top, bottom] = [Math.min(...nodes.y), Math.max(...nodes.y)];
    const wide = (width - 2 * MARGIN) / Math.max(right - left, 1);
    const high = (height - 2 * MARGIN) / Math.max(bottom - top, 1);
    // Both directions have one scale, unless the picture would be a thin line.
    const [sx, sy] = wide < high ? [wide, Math.min(high, 4 * wide)] : [Math.min(wide, 4 * high), high];
    const flat = Math.max(wide / high, high / wide) > 4;
    const least = Math.min(wide, high, 90);
    unit = least * transform.k;
    const [mx, my] = flat ? [sx, sy] : [least, least];
    const [x0, y0] = [(width - mx * (right - left)) / 2, (height - my * (bottom - top)) / 2];
    places = nodes.x.map((x, k) => transform.apply([x0 + mx * (x - left), y0 + my * (nodes.y[k] - top)]));
  }

  /** Returns the indices of the transfers that are under way. */
  function active(): number[] {
    const found: number[] = [];
    const from = bisectRight(moves.start, clock.now - longest - 1e-9);
    for (let k = Math.max(0, from - 1); k < moves.start.length && moves.start[k] <= clock.now; k++) {
      if (moves.end[k] > clock.now) found.push(k);
    }
    return found;
  }

  function draw(): void {
    const { context, width, height } = fit(canvas);
    if (width === 0) return;
    arrange(width, height);
    const radius = Math.max(1.5, Math.min(11, unit * 0.28));
    context.lineCap = "round";
    if (links) {
      const plain = !links.load && !links.state && order.length > CROWDED ? Math.min(1, Math.max(0.2, unit / 40)) : 1;
      for (const k of order) {
        const load = links.load ? links.load[k] : 0;
        const share = most > 0 ? load / most : 0;
        const state = links.state ? STATES[links.state[k]] : null;
        context.strokeStyle = state ? color(state.color) : load > 0 ? interpolateCividis(share) : color("line");
        context.lineWidth = state ? state.width : load > 0 ? 1 + 3 * share : 1;
        context.setLineDash(state ? state.dash : []);
        context.globalAlpha = links.state && links.state[k] === "fast" && order.length > MANY ? 0.3 : plain;
        line(context, places[links.source[k]], places[links.target[k]], links.load ? radius * 0.25 : 0, bends[k] * unit);
      }
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
    const now = active();
    for (const k of now) {
      const [a, b] = [places[moves.source[k]], places[moves.target[k]]];
      const done = (clock.now - moves.start[k]) / Math.max(moves.end[k] - moves.start[k], 1e-9);
      context.strokeStyle = context.fillStyle = PHASES[moves.phase[k] % PHASES.length];
      context.globalAlpha = 0.55;
      context.lineWidth = 2;
      line(context, a, b, radius * 0.5);
      context.globalAlpha = 1;
      disc(context, [a[0] + (b[0] - a[0]) * done, a[1] + (b[1] - a[1]) * done], Math.max(2.5, radius * 0.4));
    }
    const sending = new Set(now.map((k) => moves.source[k]));
    for (let k = 0; k < places.length; k++) {
      const at = places[k];
      context.fillStyle = color(sending.has(k) ? "busy" : nodes.type[k] === "idle" ? "idle" : "node");
      context.strokeStyle = color("text");
      context.lineWidth = 1;
      if (nodes.type[k] === "switch") {
        context.fillRect(at[0] - radius, at[1] - radius, 2 * radius, 2 * radius);
        context.strokeRect(at[0] - radius, at[1] - radius, 2 * radius, 2 * radius);
      } else {
        disc(context, at, radius);
        context.stroke();
      }
      if (k === nodes.root) {
        context.strokeStyle = color("accent");
        context.lineWidth = 2;
        ring(context, at, radius + Math.max(2, radius * 0.3));
      }
      const text = nodes.label[k].replace(/^\D*(\d+(,\d+)?).*$/, "$1");
      if (radius >= 9) label(context, at, text, sending.has(k), 2 * radius);
    }
    if (links) rates(context, links, places, (k) => bends[k] * unit, width);
    const ended = bisectRight(ends, clock.now);
    counts.textContent =
      moves.start.length > 0 ? `${number(now.length)} under way, ${number(ended)} of ${number(moves.start.length)} done` : "";
  }

  canvas.addEventListener("pointermove", (event) => {
    const found = nearest(places, [event.offsetX, event.offsetY], Math.max(12, unit * 0.4));
    tip.hidden = found < 0;
    if (found >= 0) {
      tip.textContent = about(panel, found);
      tip.style.left = `${Math.min(event.offsetX + 14, canvas.clientWidth - 180)}px`;
      tip.style.top = `${event.offsetY + 14}px`;
    }
  });
  canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  const zoomed = zoom<HTMLCanvasElement, unknown>().scaleExtent([0.5, 60]);
  zoomed.filter((event: Event) => event.type !== "wheel" || (event as WheelEvent).ctrlKey || document.activeElement === canvas);
  select(canvas).call(zoomed.on("zoom", (event: { transform: ZoomTransform }) => ((transform = event.transform), draw())));
  const whole = element("button", { type: "button", click: () => select(canvas).call(zoomed.transform, zoomIdentity) }, "Whole");

  clock.listen(draw);
  redrawn(canvas, draw);
  const controls = moves.start.length > 0 ? [player(clock)] : [];
  return element(
    "div",
    {},
    element("p", { class: "note" }, panel.note),
    ...controls,
    element("div", { class: "drawing" }, canvas, tip),
    element("div", { class: "below" }, counts, ...legend(panel, most), whole),
  );
}

function describe(panel: MapPanel): string {
  return `${panel.title}: ${number(panel.nodes.label.length)} nodes, ${number(panel.moves.start.length)} transfers`;
}

function legend(panel: MapPanel, most: number): HTMLElement[] {
  const made = kinds(panel);
  if (panel.links?.load) {
    const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => interpolateCividis(share)).join(", ");
    const bar = element("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops})` });
    made.push(element("span", { class: "key" }, "load of each link in the whole run: 0 ", bar, ` ${number(most)} ${panel.links.unit}`));
  }
  if (panel.links?.state) {
    const found = new Set(panel.links.state);
    for (const [state, { name, color, dash }] of Object.entries(STATES)) {
      if (!found.has(state as State)) continue;
      const mark = element("span", { class: "stroke", style: `border-top: 3px ${dash.length ? "dashed" : "solid"} var(--${color})` });
      made.push(element("span", { class: "key" }, mark, name));
    }
  }
  if (panel.nodes.root != null) made.push(element("span", { class: "key" }, element("span", { class: "ring" }), "root"));
  if (panel.phases.length > 1) {
    panel.phases.forEach((name, k) => {
      const mark = element("span", { class: "mark", style: `background: ${PHASES[k % PHASES.length]}` });
      made.push(element("span", { class: "key" }, mark, name));
    });
  }
  return made;
}

/** The meaning of the shapes and colours of nodes, in the words of their labels. */
function kinds(panel: MapPanel): HTMLElement[] {
  const { label, type } = panel.nodes;
  const key = (shape: string, words: string) => element("span", { class: "key" }, element("span", { class: `node ${shape}` }), words);
  const made = [...new Set(type)].map((of) => {
    const name = label[type.indexOf(of)].replace(/\s*\d.*$/, "");
    return key(of, of === "idle" ? `${name} without a rank` : name);
  });
  return panel.moves.start.length > 0 ? [...made, key("busy", "sends")] : made;
}

function about(panel: MapPanel, node: number): string {
  const { moves, links } = panel;
  let [sent, received] = [0, 0];
  for (let k = 0; k < moves.start.length; k++) {
    if (moves.source[k] === node) sent += moves.amount[k];
    if (moves.target[k] === node) received += moves.amount[k];
  }
  const amount = (value: number) => (panel.amount === "bytes" ? bytes(value) : `${number(value)} elements`);
  const words = [panel.nodes.label[node]];
  if (moves.start.length > 0) words.push(`sends ${amount(sent)}`, `receives ${amount(received)}`);
  if (links?.load) {
    const out = links.load.filter((_, k) => links.source[k] === node);
    words.push(`largest link out: ${number(max(out) ?? 0)} ${links.unit}`);
  }
  if (node === panel.nodes.root) words.push("root");
  if (links?.gbps) {
    const cables = new Map<string, number>();
    links.gbps.forEach((rate, k) => {
      const other = links.source[k] === node ? links.target[k] : links.target[k] === node ? links.source[k] : -1;
      if (other < 0) return;
      const text = `to ${panel.nodes.label[other]}: ` + (links.state ? probed(links, k) : `${rate} Gb/s, ${links.ns?.[k]} ns`);
      cables.set(text, (cables.get(text) ?? 0) + 1);
    });
    const texts = [...cables].map(([text, count]) => (count > 1 ? `${count} cables ${text}` : text));
    words.push(...texts.slice(0, 8));
    if (texts.length > 8) words.push(`and ${texts.length - 8} more`);
  }
  return words.join("\n");
}

/** Describes the rate that a probe found for a cable. */
function probed(links: Links, k: number): string {
  const [reached, expected] = [links.reached?.[k], links.expected?.[k]];
  if (reached == null || expected == null) return STATES.untested.name;
  return `${rate(reached)} of ${rate(expected)} Gb/s, ${STATES[links.state![k]].name}`;
}

function rate(gbps: number): string {
  return number(Number(gbps.toPrecision(3)));
}

/** Writes the rates of slow cables beside the middles of their lines. */
function rates(context: CanvasRenderingContext2D, links: Links, places: [number, number][], bend: (k: number) => number, wide: number): void {
  const slow = links.state ? links.state.flatMap((state, k) => (state === "slow" || state === "doubted" ? [k] : [])) : [];
  const taken: [number, number, number][] = [];
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const k of slow.slice(0, LABELLED)) {
    const [a, b] = [places[links.source[k]], places[links.target[k]]];
    const text = `${rate(links.reached?.[k] ?? 0)} of ${rate(links.expected?.[k] ?? 0)} Gb/s`;
    const width = context.measureText(text).width + 8;
    // Beside the middle of the cable, first on the outer side of the picture, or outside of its bend.
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
    const [side, length] = [dx < 0 || (dx === 0 && dy < 0) ? -bend(k) : bend(k), Math.hypot(dx, dy) || 1];
    const [middle, high] = [(a[0] + b[0]) / 2 - (dy / length) * side, (a[1] + b[1]) / 2 + (dx / length) * side];
    const flat = side !== 0 && Math.abs(dx) > Math.abs(dy);
    const y = flat ? high + 14 : high;
    const isFree = (at: number) => taken.every(([x, other, own]) => Math.abs(other - y) > 20 || Math.abs(x - at) > (own + width) / 2 + 4);
    const besides = middle < wide / 2 ? [-1, 1] : [1, -1];
    const x = (flat ? [middle] : besides.map((sign) => middle + sign * (width / 2 + 12))).find(isFree);
    if (x === undefined) continue;
    taken.push([x, y, width]);
    context.fillStyle = color("background");
    context.fillRect(x - width / 2, y - 9, width, 18);
    context.strokeStyle = color(STATES[links.state![k]].color);
    context.lineWidth = 1;
    context.strokeRect(x - width / 2, y - 9, width, 18);
    context.fillStyle = color("text");
    context.fillText(text, x, y);
  }
}

function nearest(places: [number, number][], [x, y]: [number, number], most: number): number {
  let [found, best] = [-1, most * most];
  places.forEach(([px, py], k) => {
    const far = (px - x) ** 2 + (py - y) ** 2;
    if (far < best) [found, best] = [k, far];
  });
  return found;
}

/**
 * Draws a line, bent by `bend` pixels at its middle. A shift by `aside` pixels to the right of its direction keeps both
 * directions of a cable visible.
 */
function line(context: CanvasRenderingContext2D, a: [number, number], b: [number, number], aside: number, bend = 0): void {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [-dy / length, dx / length];
  const [ox, oy] = [ux * aside, uy * aside];
  // Both directions of a cable bend to the same side.
  const side = dx < 0 || (dx === 0 && dy < 0) ? -2 * bend : 2 * bend;
  context.beginPath();
  context.moveTo(a[0] + ox, a[1] + oy);
  if (bend === 0) context.lineTo(b[0] + ox, b[1] + oy);
  else context.quadraticCurveTo((a[0] + b[0]) / 2 + ox + ux * side, (a[1] + b[1]) / 2 + oy + uy * side, b[0] + ox, b[1] + oy);
  context.stroke();
}

/** Returns the bend of each link, in units of node positions: links along a row or column bend around nodes between. */
function bendsOf(nodes: MapPanel["nodes"], links: NonNullable<MapPanel["links"]>): number[] {
  const lines = (at: number[], along: number[]) => {
    const made = new Map<number, number[]>();
    at.forEach((value, k) => made.set(value, [...(made.get(value) ?? []), along[k]]));
    made.forEach((values) => values.sort((a, b) => a - b));
    return made;
  };
  const [rows, columns] = [lines(nodes.y, nodes.x), lines(nodes.x, nodes.y)];
  const between = (line: number[] | undefined, a: number, b: number) => {
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    return line !== undefined && bisectLeft(line, high) > bisectRight(line, low);
  };
  return links.source.map((a, k) => {
    const b = links.target[k];
    const [dx, dy] = [Math.abs(nodes.x[a] - nodes.x[b]), Math.abs(nodes.y[a] - nodes.y[b])];
    const inRow = dy === 0 && between(rows.get(nodes.y[a]), nodes.x[a], nodes.x[b]);
    const inColumn = dx === 0 && between(columns.get(nodes.x[a]), nodes.y[a], nodes.y[b]);
    return inRow || inColumn ? Math.min(0.1 + 0.07 * (dx + dy), 0.9) : 0;
  });
}

function ring(context: CanvasRenderingContext2D, at: [number, number], radius: number): void {
  context.beginPath();
  context.arc(at[0], at[1], radius, 0, 2 * Math.PI);
  context.stroke();
}

function disc(context: CanvasRenderingContext2D, at: [number, number], radius: number): void {
  context.beginPath();
  context.arc(at[0], at[1], radius, 0, 2 * Math.PI);
  context.fill();
}

/** Writes the text of a node in the largest font, of 6 to 10 pixels, that fits into `room` pixels, if any. */
function label(context: CanvasRenderingContext2D, at: [number, number], text: string, busy: boolean, room: number): void {
  context.fillStyle = color(busy ? "on-busy" : "on-node");
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const size of [10, 9, 8, 7, 6]) {
    context.font = `${size}px system-ui, sans-serif`;
    if (context.measureText(text).width > room) continue;
    context.fillText(text, at[0], at[1]);
    return;
  }
}
