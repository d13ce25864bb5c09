/** The style sheet of screens that load on demand. */

let loading: Promise<void> | undefined;

/** Loads the sheet once and resolves when it is applied. If it can't be loaded, the screen is shown without it. */
export function laterStyles(): Promise<void> {
  return loading ??= new Promise((resolve) => {
    const { document } = globalThis.window;
    const path = document.querySelector<HTMLMetaElement>('meta[name="later-style"]')?.content;
    if (!path) return resolve();
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = `/${path}`;
    sheet.addEventListener("load", () => resolve());
    sheet.addEventListener("error", () => {
      loading = undefined;
      sheet.remove();
      resolve();
    });
    document.head.append(sheet);
  });
}
