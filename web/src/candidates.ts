// Candidates of a plan as bars, beside the bound; a slider chooses the size.

import type { CandidatesPanel, Point } from "./data";
import { element } from "./dom";
import { bytes, number, time } from "./numbers";

/** The candidates that are shown first. */
const SHOWN = 10;

export function candidates(panel: CandidatesPanel): HTMLElement {
  const shapes = [...new Set(panel.points.map((point) => point.shape))];
  const chart = element("div", { class: "bars" });
  const size = element("output", { class: "size" });
  const shape = element("select", { "aria-label": "shape", change: () => choose() }, ...shapes.map((s) => element("option", { value: s }, s)));
  const slider = element("input", { type: "range", min: 0, value: 0, "aria-label": "size", input: () => show() });
  const more = element("button", { type: "button", click: () => ((all = !all), show()) });
  let points: Point[] = [];
  let all = false;

  function choose(): void {
    points = panel.points.filter((point) => point.shape === shape.value).sort((a, b) => a.elements - b.elements);
    slider.max = String(points.length - 1);
    slider.value = String(Math.max(0, points.indexOf(panel.points[panel.chosen])));
    show();
  }

  function show(): void {
    const point = points[Number(slider.value)];
    size.textContent = `${number(point.elements)} elements${point.bytes === null ? "" : `, ${bytes(point.bytes)}`}`;
    const listed = point.candidates.slice(0, all ? undefined : SHOWN);
    const most = Math.max(...listed.map((c) => c.value), point.bound?.value ?? 0, Number.MIN_VALUE);
    const rows = listed.map((candidate) => bar(candidate.name, candidate.value, most, point, candidate.source, "candidate"));
    if (point.bound) rows.push(bar(`no schedule takes less (${point.bound.name})`, point.bound.value, most, point, null, "bound"));
    chart.replaceChildren(...rows);
    more.textContent = all ? `The first ${SHOWN}` : `All ${number(point.candidates.length)} candidates`;
    more.hidden = point.candidates.length <= SHOWN;
  }

  function bar(name: string, value: number, most: number, point: Point, source: string | null, kind: string): HTMLElement {
    const ratio = point.bound && point.bound.value > 0 && kind !== "bound" ? `, ${(value / point.bound.value).toFixed(2)} times the bound` : "";
    const text = `${time(value, panel.unit)}${ratio}`;
    return element(
      "div",
      { class: `bar ${kind}`, title: source === null ? "" : `from ${source}` },
      element("span", { class: "name" }, name),
      element("span", { class: "track" }, element("span", { class: "fill", style: `width: ${(100 * value) / most}%` })),
      element("span", { class: "value" }, text),
    );
  }

  shape.value = panel.points[panel.chosen].shape;
  choose();
  const several = panel.points.length > shapes.length;
  const controls = element("div", { class: "player" });
  if (shapes.length > 1) controls.append("shape ", shape);
  if (several) controls.append("size ", slider);
  controls.append(size);
  return element("div", {}, controls, chart, element("div", { class: "below" }, more));
}
