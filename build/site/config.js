/**
 * VitePress's configuration, copied to `.vitepress/config.js` of the assembled pages. What depends on the pages is in
 * `site.json`, which assemble.ts writes beside it.
 *
 * @see https://vitepress.dev/reference/site-config
 */
import { readFileSync } from "node:fs";

const { base, nav, sidebar, version } = JSON.parse(readFileSync(new URL("site.json", import.meta.url), "utf8"));

/** The anchor that GitHub gives a heading, so that the links of docs/ work in both places. */
const slugify = (heading) => heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-");

/** Shows {{char}} and other macros of cards, which Vue would take for its own. In code blocks VitePress does that. */
function escapeBraces({ renderer: { rules } }) {
  for (const name of ["text", "code_inline"]) {
    const render = rules[name];
    rules[name] = (...args) => render(...args).replaceAll("{{", "&#123;&#123;");
  }
}

export default {
  title: "Parlor",
  titleTemplate: ":title · Parlor",
  description: "A self-hosted chat app for language models",
  base,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}icon.svg` }]],
  // The address of the example server, which may not run here.
  ignoreDeadLinks: [/^https?:\/\/localhost/],
  // Pages are plain Markdown: <x> and {x} are text.
  markdown: { html: false, attrs: { disable: true }, anchor: { slugify }, config: escapeBraces },
  themeConfig: {
    nav,
    sidebar,
    logo: "/icon.svg",
    outline: [2, 3],
    search: { provider: "local" },
    footer: { message: "MIT license", copyright: `Parlor ${version}` },
  },
};
