// A heat map of a large machine: a cell for each of its parts, or for a block of parts if cells would be too small.

import { max } from "d3-array";
import { interpolateCividis } from "d3-scale-chromatic";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomTransform } from "d3-zoom";
import type { HeatPanel } from "./data";
import { color, element, fit, redrawn } from "./dom";
import { number } from "./numbers";

const MARGIN = 10;
/** The least side of a drawn cell or block, and of a cell that shows its value, in pixels. */
const [LEAST, LETTERED] = [4, 44];

export function heat(panel: HeatPanel): HTMLElement {
  const { rows, columns } = panel;
  const canvas = element("canvas", { class: "map", role: "img", tabindex: 0, "aria-label": `${panel.title}: ${number(rows)} x ${number(columns)} ${panel.cell}s` });
  const tip = element("div", { class: "tip", hidden: true });
  const choice = element("select", { "aria-label": "value", change: () => draw() }, ...panel.layers.map((layer, k) => element("option", { value: String(k) }, layer.name)));
  const scale = element("span", { class: "key" });
  const blocks = element("output", { class: "counts" });
  let transform: ZoomTransform = zoomIdentity;
  let [side, x0, y0, block] = [1, 0, 0, 1];

  const layer = () => panel.layers[Number(choice.value)];

  /** Returns the largest value in the block whose first cell is given; null if no cell of the block has a value. */
  function largest(row: number, column: number): number | null {
    let found: number | null = null;
    for (let r = row; r < Math.min(row + block, rows); r++) {
      for (let c = column; c < Math.min(column + block, columns); c++) {
        const value = layer().values[r * columns + c];
        if (value != null && (found === null || value > found)) found = value;
      }
    }
    return found;
  }

  function draw(): void {
    const { context, width, height } = fit(canvas);
    if (width === 0) return;
    const fitting = Math.min((width - 2 * MARGIN) / columns, (height - 2 * MARGIN) / rows);
    side = fitting * transform.k;
    [x0, y0] = transform.apply([(width - fitting * columns) / 2, (height - fitting * rows) / 2]);
    block = 1;
    while (block * side < LEAST) block *= 2;
    const most = max(layer().values, (value) => value ?? 0) || 1;
    const step = block * side;
    const first = (from: number) => Math.max(0, Math.floor(-from / step)) * block;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    for (let row = first(y0); row < rows && y0 + row * side < height; row += block) {
      for (let column = first(x0); column < columns && x0 + column * side < width; column += block) {
        const value = largest(row, column);
        const share = (value ?? 0) / most;
        context.fillStyle = value === null ? color("idle") : interpolateCividis(share);
        const [x, y] = [x0 + column * side, y0 + row * side];
        const [wide, high] = [Math.min(block, columns - column) * side, Math.min(block, rows - row) * side];
        const gap = side > 12 ? 1 : 0;
        // Without a gap, cells overlap by half a pixel: edges within a pixel would be light seams.
        context.fillRect(x, y, wide - gap + (gap ? 0 : 0.5), high - gap + (gap ? 0 : 0.5));
        if (side < LETTERED || value === null) continue;
        context.fillStyle = share > 0.55 ? "#1c2530" : "#ffffff";
        context.fillText(number(value), x + side / 2, y + side / 2);
      }
    }
    const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => interpolateCividis(share)).join(", ");
    scale.replaceChildren("0 ", element("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops})` }), ` ${number(most)} ${layer().unit}`);
    blocks.textContent = block === 1 ? `each cell is one ${panel.cell}` : `the largest value of each ${block} x ${block} ${panel.cell}s; zoom in for single ones`;
  }

  function about(row: number, column: number): string {
    const [bottom, right] = [Math.min(row + block, rows) - 1, Math.min(column + block, columns) - 1];
    const name = block === 1 ? `${panel.cell} ${row},${column}` : `${panel.cell}s ${row},${column} to ${bottom},${right}`;
    const value = largest(row, column);
    const text = value === null ? "takes no part" : `${number(value)} ${layer().unit}`;
    return `${name}\n${layer().name}: ${text}`;
  }

  canvas.addEventListener("pointermove", (event) => {
    const at = (position: number, from: number) => Math.floor((position - from) / (side * block)) * block;
    const [row, column] = [at(event.offsetY, y0), at(event.offsetX, x0)];
    tip.hidden = row < 0 || column < 0 || row >= rows || column >= columns;
    if (tip.hidden) return;
    tip.textContent = about(row, column);
    tip.style.left = `${Math.max(0, Math.min(event.offsetX + 14, canvas.clientWidth - 260))}px`;
    tip.style.top = `${event.offsetY + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => (tip.hidden = true));
  const zoomed = zoom<HTMLCanvasElement, unknown>().scaleExtent([1, 200]);
  zoomed.filter((event: Event) => event.type !== "wheel" || (event as WheelEvent).ctrlKey || document.activeElement === canvas);
  select(canvas).call(zoomed.on("zoom", (event: { transform: ZoomTransform }) => ((transform = event.transform), draw())));
  const by = (factor: number) => () => select(canvas).call(zoomed.scaleBy, factor);
  const nearer = element("button", { type: "button", click: by(2) }, "Zoom in");
  const farther = element("button", { type: "button", click: by(0.5) }, "Zoom out");
  const whole = element("button", { type: "button", click: () => select(canvas).call(zoomed.transform, zoomIdentity) }, "Whole");
  redrawn(canvas, draw);
  return element(
    "div",
    {},
    element("p", { class: "note" }, panel.note),
    element("div", { class: "player" }, choice, scale, nearer, farther, whole),
    element("div", { class: "drawing" }, canvas, tip),
    element("div", { class: "below" }, blocks),
  );
}
