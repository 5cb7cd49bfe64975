// The controls of a clock: play, a slider over the run, and the speed.

import type { Clock } from "./clock";
import { element } from "./dom";
import { time } from "./numbers";

const STEPS = 1000;
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];

export function player(clock: Clock): HTMLElement {
  const play = element("button", { type: "button", class: "play", click: () => clock.toggle() }, "Play");
  const slider = element("input", {
    type: "range",
    min: 0,
    max: STEPS,
    value: 0,
    "aria-label": "time of the run",
    input: () => {
      // Stopping shows the clock's moment in the slider, so its value is read first.
      const moment = (Number(slider.value) / STEPS) * clock.last;
      clock.stop();
      clock.seek(moment);
    },
  });
  const shown = element("output", { class: "moment" });
  const speed = element(
    "select",
    { "aria-label": "speed", change: () => (clock.speed = Number(speed.value)) },
    ...SPEEDS.map((s) => element("option", { value: s, selected: s === 1 }, `${s}x`)),
  );
  const step = (by: number) => () => {
    clock.stop();
    clock.seek(clock.unit === "ns" ? clock.now + (by * clock.last) / 100 : Math.round(clock.now) + by);
  };
  const made = element(
    "div",
    { class: "player" },
    play,
    element("button", { type: "button", "aria-label": "one step back", click: step(-1) }, "‹"),
    element("button", { type: "button", "aria-label": "one step forward", click: step(1) }, "›"),
    slider,
    shown,
    speed,
  );
  const show = () => {
    play.textContent = clock.playing ? "Pause" : "Play";
    slider.value = String(clock.last > 0 ? Math.round((clock.now / clock.last) * STEPS) : 0);
    shown.textContent = `${time(clock.now, clock.unit)} of ${time(clock.last, clock.unit)}`;
  };
  clock.listen(show);
  show();
  return made;
}

/** Space plays and stops, arrows step, Home and End go to the ends, where no control has the keyboard. */
export function keys(clock: Clock): void {
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    // The space key presses the button that has the focus.
    if (event.key === " " && target.tagName === "BUTTON") return;
    const small = clock.unit === "ns" ? clock.last / 100 : 1;
    if (event.key === " ") clock.toggle();
    else if (event.key === "ArrowRight") clock.seek(clock.now + small);
    else if (event.key === "ArrowLeft") clock.seek(clock.now - small);
    else if (event.key === "Home") clock.seek(0);
    else if (event.key === "End") clock.seek(clock.last);
    else return;
    event.preventDefault();
  });
}
