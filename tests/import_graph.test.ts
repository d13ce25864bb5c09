import { expect, test } from "vitest";
import { dirname, join, relative, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname!, "..");
/** What every folder of services/ may build on; these import only each other, services/errors.ts and services/log.ts. */
const FLOOR = ["async", "config", "crypto", "events", "http", "jobs", "json", "platform", "process", "storage"];
/** Which other folders of services/ each folder may import, besides the floor. */
const FOLDERS: Record<string, string[]> = {
  attachments: ["speech"],
  auth: [],
  backup: ["attachments", "documents", "integrity"],
  characters: ["attachments", "llm", "lorebooks"],
  chat: [
    "attachments",
    "characters",
    "conversations",
    "documents",
    "llm",
    "lorebooks",
    "memories",
    "personas",
    "presets",
    "prompts",
    "regex_scripts",
    "tools",
  ],
  cli: ["backup", "diagnostics", "import_export", "integrity", "releases"],
  conversations: ["attachments", "documents", "llm", "prompts"],
  documents: ["attachments", "llm"],
  diagnostics: ["auth", "backup", "integrity", "models", "tailnet"],
  image_generation: ["attachments", "characters"],
  import_export: [
    ...[
      "attachments",
      "characters",
      "conversations",
      "documents",
      "image_generation",
      "mcp",
      "llm",
      "lorebooks",
      "memories",
      "personas",
      "presets",
    ],
    ...["prompts", "push", "regex_scripts", "settings", "speech", "tools", "transcription", "usage"],
  ],
  integrity: ["backup", "characters"],
  llm: [],
  lorebooks: [],
  mcp: ["tools"],
  memories: ["llm", "tools"],
  metrics: [],
  models: [],
  openai_api: ["characters", "conversations", "llm"],
  personas: ["attachments", "characters"],
  presets: [],
  prompts: ["characters", "documents", "llm", "lorebooks", "memories", "personas", "presets", "regex_scripts"],
  push: [],
  releases: [],
  regex_scripts: [],
  server_search: ["image_generation", "llm", "speech", "transcription"],
  settings: ["attachments"],
  speech: [],
  tailnet: [],
  tools: ["documents"],
  transcription: ["llm", "speech"],
  usage: ["llm"],
};

/** The same for the page. Views may import everything; nothing else imports views, and only views import components. */
const PAGE_ROOMS: Record<string, string[]> = {
  api: ["state", "texts"],
  components: ["markdown", "state", "texts"],
  markdown: ["texts"],
  speech: ["api", "markdown", "state", "texts"],
  state: ["api", "speech", "texts"],
  texts: [],
  views: ["api", "components", "markdown", "speech", "state", "texts"],
};

/** The composition root and its parts: `services/chat/open_chat.ts` puts the services of its folder together. */
const COMPOSITION = /^services\/(core\/\w+|(\w+)\/open_\2)\.ts$/;

interface Import {
  from: string;
  to: string;
  /** Type imports load nothing, and `import("…")` loads only when it runs. */
  isLoaded: boolean;
  isType: boolean;
}

async function* sources(folder: string): AsyncGenerator<string> {
  if (folder.endsWith(".ts")) return yield folder;
  for await (const entry of Deno.readDir(join(ROOT, folder))) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory && entry.name !== "dist") yield* sources(path);
    else if (/\.tsx?$/.test(entry.name)) yield path;
  }
}

async function importsOf(folders: string[]): Promise<Import[]> {
  const found: Import[] = [];
  for (const folder of folders) {
    for await (const from of sources(folder)) {
      const text = await Deno.readTextFile(join(ROOT, from));
      const add = (path: string, kind: { isLoaded: boolean; isType: boolean }) =>
        found.push({ from, to: relative(ROOT, resolve(ROOT, dirname(from), path)), ...kind });
      for (const match of text.matchAll(/^\s*(?:import|export)\b([^;"'=]*?)["'](\.[^"']+)["']/gm)) {
        const hasNames = /^ (?!type\b)/.test(match[1]!) && !/^ \{( *type [^,}]+,?)+\}/.test(match[1]!);
        const isLoaded = match[1] === " " || hasNames;
        add(match[2]!, { isLoaded, isType: !isLoaded });
      }
      for (const match of text.matchAll(/\bimport\(\s*["'](\.[^"']+)["']/g)) {
        add(match[1]!, { isLoaded: false, isType: false });
      }
    }
  }
  return found;
}

const imports = await importsOf(["routes", "middleware", "services", "static/src"]);
const folder = (path: string) => path.split("/")[1]!;
const isFileInServices = (path: string) => /^services\/[^/]+\.ts$/.test(path);

test("imports were found at all", () => {
  expect(imports.length).toBeGreaterThan(100);
});

test("routes import middleware and services, middleware imports services, services import services", () => {
  const allowed: Record<string, RegExp> = {
    routes: /^(routes|middleware|services)\//,
    middleware: /^(middleware|services)\//,
    services: /^(services\/|project\.json$)/,
  };
  const wrong = imports.filter(({ from, to }) => allowed[from.split("/")[0]!]?.test(to) === false);
  expect(wrong).toEqual([]);
});

test("services know no web framework", async () => {
  for await (const path of sources("services")) {
    expect(await Deno.readTextFile(join(ROOT, path)), path).not.toMatch(/from "(hono|@hono)/);
  }
});

test("the floor of services imports only itself, the error type and the log", () => {
  const wrong = imports.filter(({ from, to }) =>
    from.startsWith("services/") && FLOOR.includes(folder(from)) && !isFileInServices(to) &&
    !FLOOR.includes(folder(to)) && to !== "project.json"
  );
  expect(wrong).toEqual([]);
});

test("a folder of services imports only the folders listed for it", () => {
  const wrong = imports.filter(({ from, to }) => {
    if (!from.startsWith("services/") || isFileInServices(from) || FLOOR.includes(folder(from))) return false;
    if (COMPOSITION.test(from)) return to === "services/services.ts";
    if (isFileInServices(to)) return to === "services/services.ts";
    return ![folder(from), ...FLOOR, ...FOLDERS[folder(from)] ?? []].includes(folder(to));
  });
  expect(wrong).toEqual([]);
});

test("services/errors.ts and services/log.ts import nothing of the services", () => {
  const wrong = imports.filter(({ from, to }) =>
    isFileInServices(from) && from !== "services/services.ts" && !isFileInServices(to)
  );
  expect(wrong).toEqual([]);
});

test("no file loads one that loads it", () => {
  const loads = Map.groupBy(imports.filter(({ isLoaded }) => isLoaded), ({ from }) => from);
  const reaches = (start: string) => {
    const reached = new Set<string>();
    const ahead = [start];
    for (const path of ahead) {
      for (const { to } of loads.get(path) ?? []) if (!reached.has(to)) ahead.push(to), reached.add(to);
    }
    return reached;
  };
  expect([...loads.keys()].filter((path) => reaches(path).has(path))).toEqual([]);
});

/** The only modules that server and page both load. build/ui_builds.ts names them, too. */
const SHARED = ["services/http/address_scheme.ts", "services/json/search_fold.ts"];
/** A page may have one policy of Trusted Types, so all rooms share it. */
const PAGE_POLICY = "static/src/trusted_types.ts";

test("on the page a room imports only the rooms named for it, but for their types", () => {
  const roomOnPage = (path: string) => /^static\/src\/([^/]+)\//.exec(path)?.[1];
  const wrong = imports.filter(({ from, to, isType }) => {
    const [own, other] = [roomOnPage(from), roomOnPage(to)];
    if (isType || own === undefined || own === "dev" || own === other) return false;
    if (SHARED.includes(to) || to === PAGE_POLICY) return false;
    return other === undefined || PAGE_ROOMS[own]?.includes(other) !== true;
  });
  expect(wrong).toEqual([]);
});

test("only the composition root loads its parts", () => {
  const wrong = imports.filter(({ from, to, isType }) =>
    !isType && (to === "services/services.ts" || COMPOSITION.test(to)) &&
    from !== "services/services.ts" && !COMPOSITION.test(from) && !from.startsWith("routes/")
  );
  expect(wrong).toEqual([]);
});

test("a start loads what a first answer rests on, and no room, schema or command beside", async () => {
  const all = [...imports, ...await importsOf(["main.ts"])];
  const loaded = new Set(["main.ts"]);
  for (const path of loaded) {
    for (const { from, to, isLoaded } of all) if (isLoaded && from === path) loaded.add(to);
  }
  const eager = [...loaded];
  expect(eager).toEqual(
    expect.arrayContaining(["services/auth/access_policy.ts", "services/storage/database/database.ts"]),
  );
  expect(eager.filter((path) => path.startsWith("routes/schemas/"))).toEqual([]);
  expect(eager.filter((path) => COMPOSITION.test(path)).sort()).toEqual(["services/core/open_core.ts"]);
  const texts = await Promise.all(
    eager.map((path) => Deno.readTextFile(join(ROOT, path)).then((text) => [path, text])),
  );
  // Loading each of these takes longer than all of our own code that a start needs.
  const heavy = /^import (?!type)[^;]*"(@hono\/zod-openapi|zod|node:crypto|node:process|@simplewebauthn\/server)"/m;
  expect(texts.filter(([, text]) => heavy.test(text!)).map(([path]) => path)).toEqual([]);
});

test("the page imports only types of the server, from routes/schemas in its API client, and how it folds searches", async () => {
  const outside = imports.filter(({ from, to }) =>
    from.startsWith("static/src/") && !to.startsWith("static/src/") && !SHARED.includes(to)
  );
  const wrong = outside.filter(({ from, to, isType }) =>
    !isType || !from.startsWith("static/src/api/") || !to.startsWith("routes/schemas/")
  );
  expect(wrong).toEqual([]);
  expect(outside.length).toBeGreaterThan(0);
  // `import { type … }` would load the module for its side effects.
  const valueImport = /^(?:import|export) (?!type )[^;]*"(?:\.\.\/)+routes\//m;
  for (const from of new Set(outside.map((each) => each.from))) {
    expect(await Deno.readTextFile(join(ROOT, from)), from).not.toMatch(valueImport);
  }
});
