// A page of Unisono: the facts of its subject and one section for each panel.

import "./style.css";
import { candidates } from "./candidates";
import { clockOf } from "./clock";
import { curves } from "./curves";
import type { Page, Panel, PicturePanel, TablePanel } from "./data";
import { element } from "./dom";
import { heat } from "./heat";
import { map } from "./map";
import { fact, number } from "./numbers";
import { keys } from "./player";
import { timeline } from "./timeline";

function made(panel: Panel, page: Page): HTMLElement {
  switch (panel.kind) {
    case "map":
      return map(panel);
    case "heat":
      return heat(panel);
    case "timeline":
      return timeline(panel, !page.panels.some((other) => other.kind === "map"));
    case "candidates":
      return candidates(panel);
    case "curves":
      return curves(panel);
    case "table":
      return table(panel);
    case "picture":
      return picture(panel);
    case "text":
      return element("pre", { class: panel.wraps || !panel.text.trim().includes("\n") ? "wraps" : "" }, panel.text);
  }
}

function picture(panel: PicturePanel): HTMLElement {
  const broad = () => image.classList.toggle("broad", image.naturalWidth > 1.5 * image.naturalHeight);
  const image = element("img", { src: panel.image, alt: panel.title, load: broad });
  return element("div", {}, element("p", { class: "note" }, panel.note), element("div", { class: "wide" }, image));
}

function table(panel: TablePanel): HTMLElement {
  const cell = (value: string | number | boolean | null) =>
    element("td", { class: typeof value === "number" ? "number" : "" }, value === null ? "" : typeof value === "number" ? number(value) : String(value));
  const heads = panel.columns.map((name, k) => {
    const numbers = panel.rows.some((row) => typeof row[k] === "number");
    return element("th", { scope: "col", class: numbers ? "number" : "" }, name.replaceAll("_", " "));
  });
  const rows = panel.rows.map((row) => element("tr", {}, ...row.map(cell)));
  return element("div", { class: "wide" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)));
}

function theme(): HTMLElement {
  const root = document.documentElement;
  const dark = () => root.dataset.theme === "dark" || (root.dataset.theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
  const button = element("button", {
    type: "button",
    class: "theme",
    click: () => {
      root.dataset.theme = dark() ? "light" : "dark";
      name();
      document.dispatchEvent(new Event("themechange"));
    },
  });
  const name = () => (button.textContent = dark() ? "Light" : "Dark");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
  name();
  return button;
}

function facts(page: Page): HTMLElement {
  const rows = Object.entries(page.facts)
    .filter(([name, value]) => value !== null && name !== "summary")
    .map(([name, value]) => {
      const [of, text] = fact(name.replaceAll("_", " "), value!);
      return element("div", {}, element("dt", {}, of), element("dd", {}, text));
    });
  return element("dl", { class: "facts" }, ...rows);
}

function show(page: Page): void {
  const sections = page.panels.map((panel) => element("section", { class: panel.kind }, element("h2", {}, panel.title), made(panel, page)));
  const played = page.panels.find((panel) => (panel.kind === "map" || panel.kind === "timeline") && panel.last > 0);
  const summary = page.facts.summary == null ? [] : [element("p", { class: "summary" }, String(page.facts.summary))];
  const head = element("header", {}, element("h1", {}, page.title), element("span", { class: "form" }, page.form), theme());
  const foot = element("footer", {}, `Unisono ${page.version}.${played ? " Keys: space plays, arrows step, Home and End go to the ends." : ""}`);
  document.getElementById("page")!.replaceChildren(head, ...summary, facts(page), ...sections, foot);
  if (played && "last" in played) keys(clockOf(played.unit, played.last));
}

show(JSON.parse(document.getElementById("data")!.textContent!) as Page);
