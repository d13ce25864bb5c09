/** Bundles static/src into a folder, with the web app manifest and the service worker. */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** Options of `buildUi`. */
export interface UiBuildOptions {
  /** Folder with static/src, ending with a slash. */
  root: URL;
  /** Empty folder for the built files, ending with a slash. */
  dist: URL;
  /** Whether to write readable code with its source map instead of minified code. */
  isDev: boolean;
  /** Whether to omit the compressed copies, which take most of the time. */
  isPlain?: boolean;
}

/** One file of a build. */
export interface BuiltFile {
  /** Path within the build folder. */
  path: string;
  sizeBytes: number;
  /** Size after gzip, in which browsers load it over plain HTTP. */
  gzipBytes: number;
}

/** Name of the service worker. Its URL must never change and must be above all screens. */
const WORKER_FILE = "service_worker.js";

/** Compressing smaller files saves too little to be worth a second file. */
const MIN_COMPRESSED_BYTES = 1024;

/**
 * Bundles static/src into a folder. The names of scripts and styles contain the hash of their content.
 *
 * @returns The files of the build, without their compressed copies.
 * @throws {Error} if the bundler fails; its output is on stderr
 */
export async function buildUi(options: UiBuildOptions): Promise<BuiltFile[]> {
  const source = new URL("static/src/", options.root);
  const { dist } = options;
  await Deno.mkdir(new URL("assets/", dist), { recursive: true });

  // Developers also get the page that shows every component; see static/src/dev.
  const entry = options.isDev ? "dev/main.tsx" : "main.tsx";
  const scripts = await bundleScripts(new URL(entry, source), options);
  const style = new TextEncoder().encode(await joinStyles(new URL("styles/main.css", source)));
  const laterStyle = new TextEncoder().encode(await joinStyles(new URL("styles/later.css", source)));
  const icon = await Deno.readFile(new URL("icon.svg", source));
  // An audio worklet must be a separate file in plain JavaScript.
  const worklet = await Deno.readFile(new URL("microphone_worklet.js", source));
  // Modules run after the first frame.
  const theme = await Deno.readFile(new URL("early_theme.js", source));

  const built: BuiltFile[] = [];
  const place = async (path: string, content: Uint8Array) => {
    built.push(await writeWithCopies(dist, path, content, options.isPlain ?? false));
  };
  for (const [name, content] of scripts.chunks) await place(`assets/${name}`, content);
  const scriptPath = `assets/${toHashedName("app", "js", scripts.entry)}`;
  const stylePath = `assets/${toHashedName("app", "css", style)}`;
  const laterStylePath = `assets/${toHashedName("later", "css", laterStyle)}`;
  const workletPath = `assets/${toHashedName("microphone", "js", worklet)}`;
  const iconPath = `assets/${toHashedName("icon", "svg", icon)}`;
  await place(scriptPath, scripts.entry);
  await place(stylePath, style);
  await place(laterStylePath, laterStyle);
  await place(iconPath, icon);
  await place(workletPath, worklet);
  const themePath = `assets/${toHashedName("theme", "js", theme)}`;
  await place(themePath, theme);

  await place(DIAGRAM_FILE, new TextEncoder().encode(await createDiagramPage(options.root)));

  const iconPaths = new Map<string, string>();
  for await (const { name } of Deno.readDir(new URL("icons/", source))) {
    const content = await Deno.readFile(new URL(`icons/${name}`, source));
    const path = `assets/${toHashedName(name.replace(/\.png$/, ""), "png", content)}`;
    iconPaths.set(name, `/${path}`);
    await place(path, content);
  }

  const preloads = [...findStaticImports(scripts.entry, scripts.chunks)].map((name) => `assets/${name}`);
  const unnamedPage = (await Deno.readTextFile(new URL("index.html", source)))
    .replace("%script%", `/${scriptPath}`)
    .replace("%preload%", preloads.map((path) => `<link rel="modulepreload" href="/${path}">`).join(""))
    .replace("%theme%", `/${themePath}`)
    .replace("%style%", `/${stylePath}`)
    // Without its slash, because it isn't part of the first load.
    .replace("%later-style%", laterStylePath)
    .replace("%microphone-worklet%", workletPath)
    .replace("%icon%", `/${iconPath}`)
    .replace("%touch-icon%", iconPaths.get("icon-apple-180.png")!);
  // It has the hashed names of all first files, which have those of the others.
  const build = createHash("sha256").update(unnamedPage).digest("hex").slice(0, 16);
  const page = unnamedPage.replace("%build%", build);
  await place("manifest.webmanifest", new TextEncoder().encode(createManifest((file) => iconPaths.get(file)!)));
  await place("index.html", new TextEncoder().encode(page));
  if (scripts.worker !== undefined) {
    const files = built.map(({ path }) => path).filter((path) => path.startsWith("assets/"));
    await place(WORKER_FILE, new TextEncoder().encode(fillServiceWorker(scripts.worker, files, page)));
  }
  return built;
}

/**
 * Returns the files of a build that a browser loads before it shows anything: the script, its static imports, and the
 * style sheet.
 *
 * @param dist Folder of the build, ending with a slash.
 */
export async function findFirstLoad(files: readonly BuiltFile[], dist: URL): Promise<BuiltFile[]> {
  const page = await Deno.readTextFile(new URL("index.html", dist));
  return files.filter(({ path }) => /\.(?:js|css)$/.test(path) && page.includes(`"/${path}"`));
}

/** Returns the names of the chunks that a script imports statically, directly or through others. */
function findStaticImports(
  script: Uint8Array,
  chunks: Map<string, Uint8Array>,
  found = new Set<string>(),
): Set<string> {
  const text = new TextDecoder().decode(script);
  // Written by the bundler: import{a as b}from"./chunk-X.js"; export*from"./chunk-X.js"; import"./chunk-X.js".
  for (const [, name] of text.matchAll(/(?:\bfrom|\bimport)\s*"\.\/([\w.-]+\.js)"/g)) {
    const chunk = chunks.get(name!);
    if (chunk === undefined || found.has(name!)) continue;
    found.add(name!);
    findStaticImports(chunk, chunks, found);
  }
  return found;
}

/** Bundles the page, and the service worker for itself: browsers load the worker as one classic script without imports. */
async function bundleScripts(
  entry: URL,
  options: UiBuildOptions,
): Promise<{ entry: Uint8Array; chunks: Map<string, Uint8Array>; worker: string | undefined }> {
  // The worker comes after the page: on a new machine the first `deno bundle` installs the bundler, and two that do so at
  // once remove it from under each other.
  const [chunks, worker] = await bundle(entry, "bundle/page/", options).then((pieces) =>
    Promise.all([
      options.isDev ? pieces : joinFirstLoad(pieces, options),
      // Developers get every build immediately, without intermediate caches.
      options.isDev ? undefined : bundle(new URL("service_worker.ts", entry), "bundle/worker/", options),
    ])
  ).finally(() => Deno.remove(new URL("bundle/", options.dist), { recursive: true }).catch(() => {}));
  const main = chunks.get("main.js");
  if (main === undefined) throw new Error(`Can't bundle "${fileURLToPath(entry)}": the output has no main.js`);
  chunks.delete("main.js");
  const script = worker?.get(WORKER_FILE);
  return { entry: main, chunks, worker: script && new TextDecoder().decode(script) };
}

/**
 * Runs `deno bundle` and returns its output by file name; chunks keep the bundler's hashed names.
 *
 * @param folder Where the output is written first: below the build folder, so that a killed build leaves nothing elsewhere
 */
async function bundle(
  entry: URL,
  folder: string,
  { root, dist, isDev }: UiBuildOptions,
): Promise<Map<string, Uint8Array>> {
  const outDir = new URL(folder, dist);
  const flags = isDev ? ["--sourcemap=inline"] : ["--minify"];
  const command = new Deno.Command(Deno.execPath(), {
    args: [
      "bundle",
      "--quiet",
      "--platform",
      "browser",
      "--code-splitting",
      ...flags,
      "--outdir",
      fileURLToPath(outDir),
      fileURLToPath(entry),
    ],
    cwd: root,
    stdout: "null",
    stderr: "inherit",
  });
  const { code } = await command.output();
  if (code !== 0) throw new Error(`Can't bundle "${fileURLToPath(entry)}": deno bundle ended with code ${code}`);
  const files = new Map<string, Uint8Array>();
  for await (const { name } of Deno.readDir(outDir)) files.set(name, await Deno.readFile(new URL(name, outDir)));
  return files;
}

/**
 * Joins the chunks that a browser loads first into one.
 *
 * The bundler makes a chunk for each set of files that share modules: dozens of small ones for the first load, which
 * compress badly. Here every other file imports those modules from one file, so that only one set is left, and the
 * bundler runs again.
 *
 * @param pieces Minified output of the bundler.
 */
async function joinFirstLoad(
  pieces: Map<string, Uint8Array>,
  options: UiBuildOptions,
): Promise<Map<string, Uint8Array>> {
  const folder = new URL("bundle/pieces/", options.dist);
  await Deno.mkdir(folder, { recursive: true });
  const first = new Set(["main.js", ...findStaticImports(pieces.get("main.js")!, pieces)]);
  // Without the hashes of the first run, because the second run adds its own.
  const stems = new Map(
    [...pieces.keys()].sort().map((name, n) => [name, `${name.replace(/(?:-\w+)?\.js$/, "")}_${n}`]),
  );
  const toExport = (from: string, name: string) => `${stems.get(from)!.replaceAll("-", "_")}_${name}`;

  let firstText = "";
  for (const [name, content] of pieces) {
    let text = new TextDecoder().decode(content);
    if (first.has(name)) {
      const path = `"./${stems.get(name)}.js"`;
      const list = splitList(/\bexport\{([^}]*)\};?\s*$/.exec(text)?.[1]);
      firstText += `import${path};export{${
        list.map(([, as]) => `${as} as ${toExport(name, as)}`).join(",")
      }}from${path};`;
    } else {
      text = text.replace(
        /\bimport(?:\{([^}]*)\}from)?"\.\/([\w.-]+)";/g,
        (all, list: string | undefined, from: string) => {
          if (!first.has(from)) return all;
          return `import{${
            splitList(list).map(([item, as]) => `${toExport(from, item)} as ${as}`).join(",")
          }}from"./first.js";`;
        },
      );
    }
    text = text.replace(/"\.\/([\w.-]+)"/g, (all, path: string) => stems.has(path) ? `"./${stems.get(path)}.js"` : all);
    await Deno.writeTextFile(new URL(`${stems.get(name)}.js`, folder), text);
  }
  await Deno.writeTextFile(new URL("first.js", folder), firstText);
  // It exports nothing, unlike first.js, whose names would be part of the first load.
  await Deno.writeTextFile(new URL("main.js", folder), 'import"./first.js";');
  return await bundle(new URL("main.js", folder), "bundle/joined/", options);
}

/** Splits the list of an import or export: `a as b,c` is `[["a", "b"], ["c", "c"]]`. */
function splitList(list = ""): [name: string, as: string][] {
  return list.split(",").filter(Boolean).map((item) => {
    const [name, as] = item.split(" as ");
    return [name!, as ?? name!];
  });
}

/** Joins the files that a style sheet imports, in order, without comments and indentation. */
async function joinStyles(main: URL): Promise<string> {
  const list = await Deno.readTextFile(main);
  const parts: string[] = [];
  for (const [, path] of list.matchAll(/@import "([^"]+)";/g)) {
    parts.push(await Deno.readTextFile(new URL(path!, main)));
  }
  return parts.join("\n").replace(/\/\*[\s\S]*?\*\//g, "").replace(/\n\s*/g, "\n").trim();
}

function toHashedName(stem: string, extension: string, content: Uint8Array): string {
  const hash = createHash("sha256").update(content).digest("base64url").slice(0, 12).replace(/[-_]/g, "0");
  return `${stem}-${hash}.${extension}`;
}

async function writeWithCopies(dist: URL, path: string, content: Uint8Array, isPlain: boolean): Promise<BuiltFile> {
  await Deno.writeFile(new URL(path, dist), content);
  const gzip = gzipSync(content, { level: 9 });
  if (!isPlain && content.length >= MIN_COMPRESSED_BYTES) {
    await Deno.writeFile(new URL(`${path}.gz`, dist), gzip);
    // The best quality takes many seconds per megabyte and saves little.
    const quality = { [constants.BROTLI_PARAM_QUALITY]: content.length > 1_000_000 ? 9 : 11 };
    await Deno.writeFile(new URL(`${path}.br`, dist), brotliCompressSync(content, { params: quality }));
  }
  return { path, sizeBytes: content.length, gzipBytes: gzip.length };
}

/** Page of the sandboxed frame that draws diagrams. */
const DIAGRAM_FILE = "diagram.html";

/**
 * Creates the page of the frame as one file, because a frame without an origin can't load another one. Its policy
 * allows only its own script.
 */
async function createDiagramPage(root: URL): Promise<string> {
  const mermaid = await Deno.readTextFile(
    new URL("../node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js", import.meta.url),
  );
  const frame = await Deno.readTextFile(new URL("static/src/diagram_frame.js", root));
  const script = `${mermaid}\n${frame}`.replaceAll(/<\/(?=script)/gi, "<\\/");
  const hash = createHash("sha256").update(script).digest("base64");
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">` +
    `<meta http-equiv="Content-Security-Policy" content="${policy}"><title>Mermaid</title></head>` +
    `<body><script>${script}</script></body></html>`;
}

/** Returns the manifest. @param iconPath Returns the URL of an icon in static/src/icons by its file name */
function createManifest(iconPath: (file: string) => string): string {
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
    // Of the icon, because the start of an installed app knows no theme: the page's color would flash in the other one.
    background_color: "#2b5f75",
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
 * @param script The bundled worker, which uses `SHELL_FILES` and `SHELL_VERSION` as free variables
 * @param files Paths in static/dist with hashed names; the page itself is identified by its content
 */
function fillServiceWorker(script: string, files: readonly string[], page: string): string {
  const paths = ["/", ...files.map((path) => `/${path}`).sort()];
  const version = createHash("sha256").update(page).update(paths.join("\n")).digest("hex").slice(0, 16);
  const head = `const SHELL_FILES=${JSON.stringify(paths)},SHELL_VERSION=${JSON.stringify(version)};`;
  return `${head}\n${script}`;
}
