// Times by size on logarithmic axes: measured ones as dots on a line, expected ones and the ceiling as lines.

import { extent } from "d3-array";
import { axisBottom, axisLeft } from "d3-axis";
import { scaleLog } from "d3-scale";
import { select } from "d3-selection";
import type { CurvesPanel } from "./data";
import { element, redrawn } from "./dom";
import { bytes, seconds } from "./numbers";

const HEIGHT = 380;
const MARGIN = { left: 74, right: 16, top: 10, bottom: 44 };
/** The colours of logs, from the palette of Okabe and Ito; the legend also has their names. */
const COLORS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES: Record<string, string> = { expected: "7 4", plan: "7 4", ceiling: "2 3" };
/** The largest number of lines that the legend names. */
const NAMED = 12;

export function curves(panel: CurvesPanel): HTMLElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.classList.add("curves");
  svg.setAttribute("role", "img");
  const legend = element("div", { class: "below" });
  const names = panel.pictures.map((picture, k) => element("option", { value: String(k) }, picture.name));
  const chosen = element("select", { "aria-label": "collective", change: () => show() }, ...names);

  function show(): void {
    const picture = panel.pictures[Number(chosen.value || 0)];
    const width = svg.clientWidth;
    if (!picture || width === 0) return;
    svg.setAttribute("aria-label", `${panel.title}: ${picture.name}`);
    const points = picture.lines.flatMap((line) => line.points).filter(([size, time]) => size > 0 && time > 0);
    const [first, last] = extent(points, ([size]) => size);
    const [least, most] = extent(points, ([, time]) => time);
    const x = scaleLog([first ?? 1, Math.max(last ?? 2, 2 * (first ?? 1))], [MARGIN.left, width - MARGIN.right]).base(2);
    const y = scaleLog([(least ?? 1) / 1.3, (most ?? 1) * 1.3], [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const root = select<SVGSVGElement, unknown>(svg).attr("height", HEIGHT);
    root.selectAll("*").remove();
    const columns = Math.max(2, Math.floor(width / 90));
    root
      .append("g")
      .attr("class", "grid")
      .attr("transform", `translate(0,${HEIGHT - MARGIN.bottom})`)
      .call(axisBottom(x).ticks(columns).tickFormat((size) => bytes(Number(size))).tickSize(-(HEIGHT - MARGIN.top - MARGIN.bottom)).tickPadding(8));
    root
      .append("g")
      .attr("class", "grid")
      .attr("transform", `translate(${MARGIN.left},0)`)
      .call(axisLeft(y).tickValues(ticks(y.domain())).tickFormat((time) => seconds(Number(time))).tickSize(-(width - MARGIN.left - MARGIN.right)).tickPadding(8));
    const axes = root.append("g").attr("fill", "currentColor").attr("text-anchor", "middle").attr("font-size", 12);
    axes.append("text").attr("x", (MARGIN.left + width) / 2).attr("y", HEIGHT - 6).text("size");
    const keys: HTMLElement[] = [];
    let logs = 0;
    for (const { name, points } of picture.lines) {
      const dash = DASHES[name];
      const color = dash ? "currentColor" : COLORS[logs++ % COLORS.length];
      const seen = points.filter(([size, time]) => size > 0 && time > 0);
      const path = seen.map(([size, time], k) => `${k ? "L" : "M"}${x(size)},${y(time)}`).join("");
      root.append("path").attr("d", path).attr("fill", "none").attr("stroke", color).attr("stroke-width", 1.6).attr("stroke-dasharray", dash ?? null);
      if (!dash) {
        const dots = root.append("g").attr("fill", color);
        for (const [size, time] of seen) {
          dots.append("circle").attr("cx", x(size)).attr("cy", y(time)).attr("r", 3).append("title").text(`${name}: ${bytes(size)}, ${seconds(time)}`);
        }
      }
      const kind = name === "ceiling" ? "dotted" : dash ? "dashed" : "solid";
      const mark = element("span", { class: "stroke", style: `border-top: 3px ${kind} ${color}` });
      keys.push(element("span", { class: "key" }, mark, name === "ceiling" ? "no schedule takes less" : name));
    }
    const more = keys.length > NAMED ? [element("span", { class: "key" }, `and ${keys.length - NAMED} more`)] : [];
    legend.replaceChildren(...keys.slice(0, NAMED), ...more);
  }

  /** Returns the powers of ten between two times; of at most 5 powers, also their multiples by 2 and 5. */
  function ticks([least, most]: number[]): number[] {
    const powers = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) powers.push(power);
    const steps = powers.length > 5 ? [1] : [1, 2, 5];
    return powers.flatMap((power) => steps.map((step) => step * 10 ** power)).filter((time) => time >= least && time <= most);
  }

  redrawn(svg, show);
  const controls = element("div", { class: "player" });
  if (panel.pictures.length > 1) controls.append(chosen);
  else controls.append(panel.pictures[0]?.name ?? "no times");
  return element("div", {}, controls, element("div", {}, svg), legend);
}
