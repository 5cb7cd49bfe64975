// Clocks: the moment of a run that several panels of a page show, and its playback.

import type { Unit } from "./data";

const WHOLE_RUN_MS = 8000;

export class Clock {
  now = 0;
  playing = false;
  speed = 1;
  private listeners: (() => void)[] = [];
  private frame = 0;
  private before = 0;

  constructor(
    readonly unit: Unit,
    readonly last: number,
  ) {}

  listen(listener: () => void): void {
    this.listeners.push(listener);
  }

  seek(moment: number): void {
    this.now = Math.min(Math.max(moment, 0), this.last);
    this.tell();
  }

  toggle(): void {
    if (this.playing) {
      this.stop();
    } else {
      if (this.now >= this.last) this.now = 0;
      this.playing = true;
      this.before = performance.now();
      this.frame = requestAnimationFrame((moment) => this.advance(moment));
      this.tell();
    }
  }

  stop(): void {
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.tell();
  }

  private advance(moment: number): void {
    const elapsed = Math.max(0, moment - this.before);
    this.before = moment;
    this.now = Math.min(this.last, this.now + (elapsed * this.speed * this.last) / WHOLE_RUN_MS);
    if (this.now >= this.last) this.playing = false;
    else this.frame = requestAnimationFrame((next) => this.advance(next));
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

const clocks = new Map<string, Clock>();

/** Returns the clock that all panels with the same unit and the same last moment share. */
export function clockOf(unit: Unit, last: number): Clock {
  const key = `${unit} ${last}`;
  let found = clocks.get(key);
  if (!found) clocks.set(key, (found = new Clock(unit, last)));
  return found;
}
