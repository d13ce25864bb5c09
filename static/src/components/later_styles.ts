/** The styles of screens that are loaded when they are first opened: a sheet of its own, named in the page. */

let loading: Promise<void> | undefined;

/** Loads them, once; resolves when they hold. Where they cannot be loaded the screen is shown without them. */
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
