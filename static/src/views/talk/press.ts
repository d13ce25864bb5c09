/** A press that opens the dictation bar. It's followed from its start, because the bar's code may still be loading. */

/** A press longer than this is a hold: releasing it ends the dictation. In milliseconds. */
const HOLD_MS = 400;

/** A press of a pointer. */
export interface Press {
  /** False after its release, and if the browser takes the pointer, for example to scroll. */
  readonly isDown: boolean;
  /** Called at the release of a hold. */
  onHoldEnd: (() => void) | undefined;
}

/**
 * Follows a press that has just begun. It lasts as long as the finger says: a busy page handles the release later.
 *
 * @param target Sees the events of the pointer wherever it is: the window.
 * @param down The event that began it.
 */
export function followPress(target: EventTarget, down: Event): Press {
  const press = { isDown: true, onHoldEnd: undefined as Press["onHoldEnd"] };
  const end = ({ type, timeStamp }: Event) => {
    target.removeEventListener("pointerup", end);
    target.removeEventListener("pointercancel", end);
    press.isDown = false;
    if (type === "pointerup" && timeStamp - down.timeStamp > HOLD_MS) press.onHoldEnd?.();
  };
  target.addEventListener("pointerup", end);
  target.addEventListener("pointercancel", end);
  return press;
}
