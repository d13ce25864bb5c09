/** Puts the pages of the site together: docs/, the changelog, a home page made from README.md, the API reference. */
import { dirname, join, posix } from "node:path";
import { pathToFileURL } from "node:url";
import { filesBelow } from "../files.ts";
import { type OpenApiDocument, type ReferencePage, renderReference } from "./reference.ts";

/** Pages outside of docs/, and their paths in the site. */
const OTHER_PAGES: Record<string, string> = {
  "README.md": "index.md",
  "CHANGELOG.md": "changelog.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security.md",
};
/** Sections of README.md below the features on the home page; the others are for readers of the source. */
const HOME_SECTIONS = ["Start", "How it compares"];

/** An entry of VitePress's sidebar or navigation. */
interface SiteLink {
  text: string;
  link?: string;
  items?: SiteLink[];
  collapsed?: boolean;
}

/** How a site is made. */
export interface SiteOptions {
  /** Path at which the site is served: `/` or, for example, `/parlor/`. */
  base: string;
  version: string;
  /** The project's address, to which links to its source files lead; without one they become text. */
  repositoryUrl?: string;
}

/**
 * Writes the pages and VitePress's configuration to a folder.
 *
 * @param root The repository.
 * @param folder Exists and is empty.
 * @returns The paths of all pages from the folder, such as `guide/voice.md`.
 */
export async function assembleSite(
  root: string,
  folder: string,
  document: OpenApiDocument,
  options: SiteOptions,
): Promise<string[]> {
  const sources = await listSources(root);
  const texts = new Map<string, string>();
  for (const [source, path] of sources) {
    if (path.endsWith(".md")) {
      const text = await Deno.readTextFile(join(root, source));
      texts.set(path, rewriteLinks(source === "README.md" ? renderHome(text) : text, source, sources, options));
    } else {
      // Only Markdown links lead to other files, and VitePress serves those of `public` unchanged.
      const isImage = /\.(png|svg)$/.test(path);
      await copyFile(join(root, source), join(folder, isImage ? path : `public/${path}`));
    }
  }
  const decisions = [...texts].filter(([path]) => path.startsWith("decisions/")).sort();
  texts.set("decisions/index.md", renderDecisions(decisions));
  const reference = renderReference(document);
  for (const { path, text } of reference) texts.set(path, text);

  for (const [path, text] of texts) await writeFile(join(folder, path), text);
  await copyFile(join(root, "static/src/icon.svg"), join(folder, "public/icon.svg"));
  await copyFile(join(root, "build/site/config.js"), join(folder, ".vitepress/config.js"));
  // The page's own fonts, as in Parlor: none is loaded.
  await writeFile(
    join(folder, ".vitepress/theme/index.js"),
    'export { default } from "vitepress/theme-without-fonts";\nimport "./style.css";\n',
  );
  await copyFile(join(root, "build/site/style.css"), join(folder, ".vitepress/theme/style.css"));
  const { base, version } = options;
  const sidebar = buildSidebar(texts, reference);
  await writeFile(join(folder, ".vitepress/site.json"), JSON.stringify({ base, version, nav: NAV, sidebar }, null, 2));
  return [...texts.keys()].sort();
}

const NAV: SiteLink[] = [
  { text: "Guide", link: "/guide/" },
  { text: "Configuration", link: "/configuration" },
  { text: "API", link: "/reference/" },
  { text: "Changelog", link: "/changelog" },
];

/** Finds what the site has of the repository: paths in it, and their paths in the site. */
async function listSources(root: string): Promise<Map<string, string>> {
  const sources = new Map(Object.entries(OTHER_PAGES));
  for (const path of await filesBelow(pathToFileURL(`${root}/docs/`))) {
    if (!posix.basename(path).startsWith(".")) sources.set(`docs/${path}`, path.replace(/README\.md$/, "index.md"));
  }
  return sources;
}

/** Makes relative links lead to pages of the site, and those to other files of the repository to its address. */
function rewriteLinks(
  text: string,
  source: string,
  sources: ReadonlyMap<string, string>,
  options: SiteOptions,
): string {
  const here = sources.get(source)!;
  const rewrite = (whole: string, mark: string, label: string, target: string): string => {
    if (/^[a-z]+:|^#/.test(target)) return whole;
    const [file = "", anchor] = target.split("#", 2);
    const path = posix.join(posix.dirname(source), file).replace(/\/$/, "");
    const page = path === "docs/decisions" ? "decisions/index.md" : sources.get(path);
    if (page !== undefined) {
      const isPublic = !/\.(md|png|svg)$/.test(page);
      const to = isPublic ? `/${page}` : posix.relative(posix.dirname(here), page);
      const link = isPublic || to.startsWith(".") ? to : `./${to}`;
      return `${mark}[${label}](${link}${anchor === undefined ? "" : `#${anchor}`})`;
    }
    if (options.repositoryUrl === undefined) return label;
    return `[${label}](${options.repositoryUrl}/blob/main/${path})`;
  };
  // Code blocks and code outside of labels have no links.
  return text.replace(
    /^ *```.*?^ *```$|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)|`[^`\n]+`/gms,
    (whole, mark, label, target) => target === undefined ? whole : rewrite(whole, mark, label, target),
  );
}

/** Makes the home page of README.md: its first paragraph and its features in VitePress's layout, then some sections. */
function renderHome(readme: string): string {
  const [intro = "", ...sections] = readme.split(/^## /m);
  const find = (name: string) => sections.find((section) => section.startsWith(`${name}\n`)) ?? "";
  const [, tagline = ""] = /^# .*\n\n((?:.+\n)+)/.exec(intro) ?? [];
  const toLine = (text: string) => text.replace(/\s+/g, " ").trim();
  const features = [...find("Features").matchAll(/^- \*\*(.+?)\.?\*\*(.*(?:\n {2}.*)*)/gm)];
  const matter = {
    layout: "home",
    hero: {
      name: "Parlor",
      tagline: toLine(tagline),
      image: { src: "/icon.svg", alt: "" },
      actions: [
        { theme: "brand", text: "Install", link: "/guide/install" },
        { theme: "alt", text: "Guide", link: "/guide/" },
        { theme: "alt", text: "Screenshots", link: "/screenshots" },
      ],
    },
    features: features.map(([, title, details]) => ({ title, details: toLine(details!) })),
  };
  const pictures = intro.slice(intro.indexOf("!["));
  // JSON is YAML.
  return [
    `---\n${JSON.stringify(matter)}\n---\n`,
    pictures,
    ...HOME_SECTIONS.map((name) => `## ${find(name)}`),
  ].join("\n");
}

/** Returns the title of a page: its first heading. */
const findTitle = (text: string) => /^# (.+)$/m.exec(text)?.[1] ?? "";

function renderDecisions(pages: [path: string, text: string][]): string {
  const links = pages.map(([path, text]) => `- [${findTitle(text)}](./${posix.basename(path)})`);
  return `# Decisions\n\nHard choices: context, decision and consequences.\n\n${links.join("\n")}\n`;
}

/** The groups of the guide's list, then everything else. */
function buildSidebar(texts: ReadonlyMap<string, string>, reference: readonly ReferencePage[]): SiteLink[] {
  const link = (path: string): SiteLink => ({
    text: findTitle(texts.get(path) ?? ""),
    link: `/${path.replace(/(index)?\.md$/, "")}`,
  });
  const groups = [...(texts.get("guide/index.md") ?? "").matchAll(/^(\w.*):\n\n((?:- .*\n(?: {2}.*\n)*)+)/gm)];
  const guide = groups.map(([, text, list]) => ({
    text: text!,
    items: [...list!.matchAll(/^- \[[^\]]+\]\(\.?\/?([\w-]+\.md)\)/gm)].map(([, file]) => link(`guide/${file}`)),
  }));
  const below = (folder: string) =>
    [...texts.keys()].filter((path) => path.startsWith(`${folder}/`) && !path.endsWith("/index.md")).sort();
  return [
    ...guide,
    {
      text: "Reference",
      items: [
        link("configuration.md"),
        link("api.md"),
        { ...link("reference/index.md"), collapsed: true, items: reference.slice(1).map(({ path }) => link(path)) },
        link("screenshots.md"),
        link("changelog.md"),
      ],
    },
    {
      text: "Inside",
      items: [
        link("architecture.md"),
        link("benchmarks.md"),
        link("security-cases.md"),
        { ...link("protocols/index.md"), collapsed: true, items: below("protocols").map(link) },
        { ...link("decisions/index.md"), collapsed: true, items: below("decisions").map(link) },
        link("contributing.md"),
        link("security.md"),
      ],
    },
  ];
}

async function writeFile(path: string, text: string): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true });
  await Deno.writeTextFile(path, text);
}

async function copyFile(from: string, to: string): Promise<void> {
  await Deno.mkdir(dirname(to), { recursive: true });
  await Deno.copyFile(from, to);
}
