/**
 * A page that is nothing but its size: as much script and style as Parlor's, whose script shows one word.
 * `deno run -A empty_page.ts SCRIPT_BYTES STYLE_BYTES` prints where it listens.
 */

/** Serves until the process ends. */
function serveEmptyPage(scriptBytes: number, styleBytes: number): void {
  const html = `<!doctype html><html lang="en"><title>Empty</title><link rel="stylesheet" href="/style.css">
<script type="module" src="/script.js"></script><body><div id="app"></div></body></html>`;
  const code =
    `const p = document.createElement("p"); p.textContent = "Ready"; const t = document.createElement("textarea");
document.getElementById("app").append(p, t);\n`;
  const files: Record<string, { type: string; text: string }> = {
    "/script.js": { type: "text/javascript", text: code + padding(scriptBytes - code.length) },
    "/style.css": { type: "text/css", text: padding(styleBytes) },
  };
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, (request) => {
    const { type, text } = files[new URL(request.url).pathname] ?? { type: "text/html", text: html };
    return new Response(text, { headers: { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-store" } });
  });
}

/** Filler that is a comment in both languages. */
function padding(bytes: number): string {
  const line = "/* .......................................................................... */\n";
  return line.repeat(Math.max(0, Math.floor(bytes / line.length)));
}

if (import.meta.main) serveEmptyPage(Number(Deno.args[0]), Number(Deno.args[1]));
