/** What makes the page one that is installed and opens offline: its manifest, and the list that its service worker keeps. */
import { createHash } from "node:crypto";

/** Gives the manifest. @param iconPath The address of an icon by its file name in static/src/icons. */
export function manifestText(iconPath: (file: string) => string): string {
  const icon = (file: string, size: number, purpose: "any" | "maskable") => ({
    src: iconPath(file),
    sizes: `${size}x${size}`,
    type: "image/png",
    purpose,
  });
  const manifest = {
    id: "/",
    name: "Parlor",
    short_name: "Parlor",
    start_url: "/",
    scope: "/",
    display: "standalone",
    background_color: "#fdfcfa",
    theme_color: "#2b5f75",
    categories: ["productivity", "entertainment"],
    icons: [
      icon("icon-192.png", 192, "any"),
      icon("icon-512.png", 512, "any"),
      icon("icon-maskable-512.png", 512, "maskable"),
    ],
    shortcuts: [{ name: "New chat", url: "/new" }, { name: "Characters", url: "/characters" }],
    share_target: {
      action: "/share",
      method: "POST",
      enctype: "multipart/form-data",
      params: {
        title: "title",
        text: "text",
        url: "url",
        files: [{ name: "files", accept: ["image/*", "text/*", ".md", ".json", ".csv"] }],
      },
    },
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/**
 * Writes the list of files into the service worker.
 *
 * @param script The bundled worker, which names `SHELL_FILES` and `SHELL_VERSION` freely.
 * @param files Paths in static/dist with hashed names; the page itself goes in by its content.
 */
export function fillServiceWorker(script: string, files: readonly string[], page: string): string {
  const paths = ["/", ...files.map((path) => `/${path}`).sort()];
  const version = createHash("sha256").update(page).update(paths.join("\n")).digest("hex").slice(0, 16);
  const head = `const SHELL_FILES=${JSON.stringify(paths)},SHELL_VERSION=${JSON.stringify(version)};`;
  return `${head}\n${script}`;
}
