// Helpers that make elements, and canvases that fit the screen.

type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

/** Makes an element with attributes (functions are listeners, `true` is an attribute without a value) and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/** Returns the colour that a variable of the style sheet has in the current theme. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Fits the resolution of a canvas to its size on the screen, clears it, and returns its context in CSS pixels. */
export function fit(canvas: HTMLCanvasElement): { context: CanvasRenderingContext2D; width: number; height: number } {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** Calls `draw` whenever an element changes its size, and when the theme changes. */
export function redrawn(target: Element, draw: () => void): void {
  new ResizeObserver(draw).observe(target);
  document.addEventListener("themechange", draw);
}
