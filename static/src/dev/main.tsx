/** Entry of `deno task dev`: the page, and at /components every component in all its states. */
if (globalThis.location.pathname === "/components") {
  const { showComponents } = await import("./components_page.tsx");
  await (await import("../components/Lazy.tsx")).laterStyles();
  showComponents(globalThis.window);
} else {
  await import("../main.tsx");
}
