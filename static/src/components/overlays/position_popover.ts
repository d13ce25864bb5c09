/** Places something that floats beside the control it belongs to. */

/** Distance to the control and to the edges of the window. */
const GAP_PX = 4;
const EDGE_PX = 8;

/** Puts `floating` (fixed) below `anchor`, above where there is no room, its end under the anchor's end where that fits. */
export function placeBeside(floating: HTMLElement, anchor: HTMLElement): void {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = floating;
  const view = document.documentElement;
  const isRtl = getComputedStyle(anchor).direction === "rtl";
  const wanted = isRtl ? at.left : at.right - width;
  const below = at.bottom + GAP_PX;
  const hasRoom = below + height <= view.clientHeight - EDGE_PX;
  const left = Math.max(EDGE_PX, Math.min(wanted < EDGE_PX ? at.left : wanted, view.clientWidth - width - EDGE_PX));
  const top = hasRoom ? below : Math.max(EDGE_PX, at.top - GAP_PX - height);
  floating.style.left = `${left}px`;
  floating.style.top = `${top}px`;
}
