/** The height that an on-screen keyboard leaves. Most browsers resize the page for it; those of iOS lay it over the page. */

/** Less than any keyboard, more than what browsers round. */
const KEYBOARD_PX = 120;

/** Keeps the page as high as what is seen of it, through `--visible-height`. */
export function followKeyboard(window: Window, root: HTMLElement): void {
  const view = window.visualViewport;
  view?.addEventListener("resize", () => {
    // Zooming in makes the view small as well, and there the page has to stay.
    const isCovered = view.scale === 1 && window.innerHeight - view.height > KEYBOARD_PX;
    if (isCovered) {
      root.style.setProperty("--visible-height", `${view.height}px`);
      window.scrollTo(0, 0);
    } else root.style.removeProperty("--visible-height");
  });
}
