/**
 * Draws Mermaid diagrams inside of a sandboxed frame, which has no origin and can't load anything. Plain JavaScript:
 * the build puts it into diagram.html behind Mermaid. The page sends `{id, source, isDark}` and gets `{id, svg, width, height}` or
 * `{id, error}`.
 */
addEventListener("message", async ({ source: sender, data: { id, source, isDark } }) => {
  if (sender !== parent) return;
  try {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      htmlLabels: false,
      flowchart: { htmlLabels: false },
      suppressErrorRendering: true,
      maxTextSize: 20_000,
      maxEdges: 300,
      theme: isDark ? "dark" : "neutral",
      fontFamily: "system-ui, sans-serif",
    });
    const { svg } = await mermaid.render(`diagram-${id}`, source);
    // Parsed here, where styles are allowed; an image needs XML and a size.
    const root = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
    const [, , width, height] = root.getAttribute("viewBox").split(/[\s,]+/).map(Number);
    root.setAttribute("width", width);
    root.setAttribute("height", height);
    root.style.removeProperty("max-width");
    // Safari doesn't inherit it, and would set the names of actors too high.
    for (const line of root.querySelectorAll("text[dominant-baseline] tspan")) {
      line.setAttribute("dominant-baseline", line.closest("text").getAttribute("dominant-baseline"));
    }
    parent.postMessage({ id, svg: new XMLSerializer().serializeToString(root), width, height }, "*");
  } catch (error) {
    parent.postMessage({ id, error: String(error).slice(0, 300) }, "*");
  }
});
parent.postMessage({ isReady: true }, "*");
