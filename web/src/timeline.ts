// A timeline: a row for each track, a bar for each event; the wheel and the buttons change the visible span of time.

import { axisTop } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { clockOf } from "./clock";
import type { TimelinePanel } from "./data";
import { color, element, fit, redrawn } from "./dom";
import { number, time } from "./numbers";
import { player } from "./player";

const ROW = 18;
const LEFT = 92;
const TOP = 24;
/** The number of tracks drawn at once: a browser shows no canvas that is higher than some 32000 pixels. */
const PAGE = 256;
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999"];

export function timeline(panel: TimelinePanel, controls: boolean): HTMLElement {
  const { tracks, spans } = panel;
  const clock = clockOf(panel.unit, panel.last);
  const canvas = element("canvas", { class: "timeline", tabindex: 0, role: "img", "aria-label": `${panel.title}: ${tracks.length} tracks, ${spans.start.length} events` });
  canvas.style.height = `${TOP + ROW * Math.min(PAGE, tracks.length) + 4}px`;
  const axis = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  axis.classList.add("axis");
  const tip = element("div", { class: "tip", hidden: true });
  const kinds = [...new Set(spans.name.map(kind))];
  const first = firsts(spans.track, tracks.length);
  let seen: [number, number] = [0, panel.last || 1];
  let top = 0;

  const scale = () => scaleLinear(seen, [LEFT, Math.max(LEFT + 1, canvas.clientWidth - 8)]);

  function draw(): void {
    const { context, width, height } = fit(canvas);
    if (width === 0) return;
    const x = scale();
    select<SVGSVGElement, unknown>(axis)
      .attr("width", width)
      .attr("height", TOP)
      .call((svg) => svg.selectAll("g").remove())
      .append("g")
      .attr("transform", `translate(0,${TOP - 2})`)
      .call(axisTop(x).ticks(Math.max(2, width / 130)).tickFormat((value) => time(Number(value), panel.unit)));
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    tracks.slice(top, top + PAGE).forEach((name, row) => {
      const track = top + row;
      const y = TOP + ROW * row;
      context.fillStyle = color(row % 2 ? "row" : "background");
      context.fillRect(0, y, width, ROW);
      context.fillStyle = color("text");
      context.textAlign = "right";
      context.fillText(name.length > 15 ? `${name.slice(0, 14)}…` : name, LEFT - 6, y + ROW / 2);
      let right = -1;
      for (let k = first[track]; k < first[track + 1]; k++) {
        const [a, b] = [Math.max(LEFT, x(spans.start[k])), Math.min(width, x(spans.end[k]))];
        // A bar that ends within the previous bar would be hidden.
        if (b < LEFT || a > width || b <= right) continue;
        context.fillStyle = COLORS[kinds.indexOf(kind(spans.name[k])) % COLORS.length];
        context.fillRect(a, y + 3, Math.max(1, b - a - 0.5), ROW - 6);
        right = b;
      }
    });
    const at = x(clock.now);
    if (at >= LEFT) {
      context.fillStyle = color("busy");
      context.fillRect(at - 0.75, TOP, 1.5, height - TOP);
    }
  }

  function look(from: number, to: number): void {
    const span = Math.min(Math.max(to - from, panel.last / 1e5), panel.last || 1);
    const begin = Math.min(Math.max(from, 0), (panel.last || 1) - span);
    seen = [begin, begin + span];
    draw();
  }

  const closer = (factor: number, around = (seen[0] + seen[1]) / 2) =>
    look(around - (around - seen[0]) * factor, around + (seen[1] - around) * factor);

  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    closer(event.deltaY > 0 ? 1.25 : 0.8, scale().invert(event.offsetX));
  });
  canvas.addEventListener("pointermove", (event) => {
    const row = Math.floor((event.offsetY - TOP) / ROW);
    const track = top + row;
    const found = row >= 0 && row < PAGE && track < tracks.length ? at(track, scale().invert(event.offsetX)) : -1;
    tip.hidden = found < 0;
    if (found < 0) return;
    const [start, end] = [spans.start[found], spans.end[found]];
    tip.textContent = `${tracks[track]}\n${spans.name[found]}\n${time(start, panel.unit)} to ${time(end, panel.unit)}`;
    tip.style.left = `${Math.min(event.offsetX + 14, canvas.clientWidth - 190)}px`;
    tip.style.top = `${event.offsetY + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  canvas.addEventListener("click", (event) => event.offsetX > LEFT && clock.seek(scale().invert(event.offsetX)));

  function at(track: number, moment: number): number {
    for (let k = first[track]; k < first[track + 1]; k++) {
      if (spans.start[k] <= moment && moment <= spans.end[k]) return k;
    }
    return -1;
  }

  const button = (text: string, act: () => void) => element("button", { type: "button", click: act }, text);
  const shift = (by: number) => look(seen[0] + by * (seen[1] - seen[0]), seen[1] + by * (seen[1] - seen[0]));
  const shown = element("output", { class: "tracks" });
  const turn = (to: number) => {
    top = Math.max(0, Math.min(to, Math.floor((tracks.length - 1) / PAGE) * PAGE));
    const last = Math.min(top + PAGE, tracks.length);
    shown.textContent = `${tracks[top]} to ${tracks[last - 1]}, ${number(top + 1)} to ${number(last)} of ${number(tracks.length)} tracks`;
    draw();
  };
  const pages =
    tracks.length > PAGE
      ? [
          element(
            "div",
            { class: "below pages" },
            button("First tracks", () => turn(0)),
            button("Previous tracks", () => turn(top - PAGE)),
            shown,
            button("Next tracks", () => turn(top + PAGE)),
            button("Last tracks", () => turn(tracks.length)),
          ),
        ]
      : [];
  clock.listen(draw);
  redrawn(canvas, draw);
  if (pages.length > 0) turn(0);
  const keys = kinds.slice(0, COLORS.length).map((name, k) =>
    element("span", { class: "key" }, element("span", { class: "mark", style: `background: ${COLORS[k]}` }), name),
  );
  return element(
    "div",
    {},
    ...(controls ? [player(clock)] : []),
    ...pages,
    element("div", { class: "drawing" }, canvas, axis, tip),
    element(
      "div",
      { class: "below" },
      ...(kinds.length > 1 ? keys : []),
      button("Closer", () => closer(0.5)),
      button("Farther", () => closer(2)),
      button("Earlier", () => shift(-0.5)),
      button("Later", () => shift(0.5)),
    ),
  );
}

/** Returns the kind of an event: the first word of its name, since the other words differ between events. */
function kind(name: string): string {
  return name.split(/[ :]/, 1)[0];
}

function firsts(track: number[], tracks: number): number[] {
  const first = new Array<number>(tracks + 1).fill(track.length);
  for (let k = track.length - 1; k >= 0; k--) first[track[k]] = k;
  for (let t = tracks - 1; t >= 0; t--) first[t] = Math.min(first[t], first[t + 1]);
  return first;
}
