/** The files for the stores, as a release fills them in: what each store documents, and that they fit the program. */
import { DOMParser } from "linkedom";
import { expect, test } from "vitest";
import { parse } from "yaml";
import denoConfig from "../../deno.json" with { type: "json" };
import { readPackaging } from "../../build/packaging.ts";
import { type Config, loadConfig } from "../../services/config/config.ts";

const release = { version: "1.2.3", home: "https://github.com/Some-One/parlor", image: "ghcr.io/some-one/parlor" };
const IMAGE = "ghcr.io/some-one/parlor:1.2.3";
const SUMS = ["x64", "arm64"].map((machine, n) => `${`${n}`.repeat(64)}  parlor-linux-${machine}\n`).join("");
const ROOT = new URL("../../", import.meta.url);
const FILES = await readPackaging(ROOT, release, SUMS);

interface Service {
  image: string;
  user?: string;
  environment: Record<string, string>;
}

const textOf = (path: string) => FILES.get(path)!;
// deno-lint-ignore no-explicit-any -- The stores' files have many shapes.
const readYaml = (path: string): any => parse(textOf(path));
/** @throws {AppError} for a variable or a value that Parlor doesn't know */
const configOf = (environment: Record<string, string>): Config =>
  loadConfig({
    args: [],
    // As the image sets them.
    environment: { PARLOR_DATA_DIR: "/data", PARLOR_PAIRING: "code", ...environment },
    os: "linux",
    readTextFile: () => undefined,
  });
const { port: PORT } = configOf({});

/** Only variables of Parlor; the stores' own are replaced as the store does. */
function parlorVariables({ environment }: Service, own: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => name.startsWith("PARLOR_")).map(([name, value]) => [
      name,
      `${value}`.replace(/\$\{?(\w+)\}?/g, (_found, variable) => own[variable]!),
    ]),
  );
}

test("everything is filled in, and an unknown name isn't ignored", async () => {
  const texts = [...FILES.values()];
  expect(texts.filter((text) => /\{\{|\}\}/.test(text))).toEqual([]);
  const stores = new Set([...FILES.keys()].map((path) => path.split("/")[0]));
  expect([...stores].sort()).toEqual(["casaos", "home-assistant", "nix", "umbrel", "unraid"]);
  await expect(readPackaging(ROOT, release, "")).rejects.toThrow("SHA256SUMS has no parlor-linux-x64");
  // In the source, they say where something is to be filled in.
  expect(await Deno.readTextFile("packaging/unraid/parlor.xml")).toContain("{{image}}:{{version}}");
  for (const text of texts) expect(text).not.toContain(`"${denoConfig.version}"`);
});

test("the Unraid template has the fields that Community Applications reads", () => {
  const text = textOf("unraid/parlor.xml");
  const container = new DOMParser().parseFromString(text, "text/xml").documentElement!;
  expect(container.tagName).toBe("Container");
  const field = (name: string) => container.querySelector(name)?.textContent ?? "";
  // Minimum and recommended fields. https://ca.unraid.net/submit/help/xml-field-reference
  expect(field("Name")).toBe("parlor");
  expect(field("Repository")).toBe(IMAGE);
  for (const name of ["Category", "Icon", "Overview", "Project", "Support"]) {
    expect([name, field(name)]).not.toEqual([name, ""]);
  }
  expect(field("Icon")).toBe(`${release.home}/raw/v1.2.3/static/src/icons/icon-512.png`);
  expect(Deno.statSync("static/src/icons/icon-512.png").isFile).toBe(true);
  expect(field("WebUI")).toBe(`http://[IP]:[PORT:${PORT}]/`);
  // Their own save writes these attributes, on one line. https://wiki.unraid.net/DockerTemplateSchema
  expect(text).not.toMatch(/<!--|^ +\w+="/m);
  const attributes = ["Name", "Target", "Default", "Mode", "Description", "Type", "Display", "Required", "Mask"];
  const entries = [...container.querySelectorAll("Config")];
  for (const entry of entries) {
    expect([...entry.attributes].map(({ name }) => name)).toEqual(attributes);
    expect(entry.textContent).toBe(entry.getAttribute("Default"));
  }
  const targets = (type: string) =>
    entries.filter((entry) => entry.getAttribute("Type") === type).map((entry) =>
      [entry.getAttribute("Target")!, entry.textContent!] as const
    );
  expect(targets("Port")).toEqual([[`${PORT}`, `${PORT}`]]);
  expect(targets("Path")).toEqual([["/data", "/mnt/user/appdata/parlor"]]);
  expect(configOf(Object.fromEntries(targets("Variable"))).allowedHosts).toContain("localhost");
  // Unraid makes the folder for 99:100 (nobody:users).
  // https://github.com/unraid/webgui/blob/master/emhttp/plugins/dynamix.docker.manager/include/Helpers.php
  expect(field("ExtraParams").split(" ")).toContain("--user=99:100");
});

test("the Umbrel app has the fields that the store's linter requires", () => {
  expect(readYaml("umbrel/umbrel-app-store.yml")).toEqual({ id: "parlor", name: "Parlor" });
  const manifest = readYaml("umbrel/parlor-chat/umbrel-app.yml");
  // https://github.com/getumbrel/umbrel-apps/blob/master/.tools/lint-apps.mjs
  const required = [
    ...["manifestVersion", "id", "category", "name", "version", "tagline", "description", "developer", "website"],
    ...["dependencies", "repo", "support", "port", "gallery", "path", "submitter", "submission"],
  ];
  expect(Object.keys(manifest)).toEqual(expect.arrayContaining(required));
  expect(manifest).toMatchObject({ id: "parlor-chat", category: "ai", version: "1.2.3", website: release.home });
  // In a community store, the app's ID starts with the store's.
  expect(manifest.id).toMatch(/^parlor-[a-z-]+$/);
  // HTTPS, without which there are no passkeys, needs umbrelOS 2.0.
  // https://github.com/getumbrel/umbrel-apps/blob/master/.agents/skills/umbrel-package-app/SKILL.md
  expect(manifest).toMatchObject({ requiresHttps: true, manifestVersion: "2.0" });
  const { services, ...rest } = readYaml("umbrel/parlor-chat/docker-compose.yml");
  expect(rest).toEqual({});
  const { app_proxy: proxy, web } = services;
  expect(proxy.environment).toMatchObject({ APP_HOST: "parlor-chat_web_1", APP_PORT: PORT });
  expect(web).toMatchObject({ image: IMAGE, user: "1000:1000", restart: "on-failure", cap_drop: ["ALL"] });
  expect(web.volumes).toEqual(["${APP_DATA_DIR}/data:/data"]);
  expect(FILES.has("umbrel/parlor-chat/data/.gitkeep")).toBe(true);
  const config = configOf(parlorVariables(web, { DEVICE_DOMAIN_NAME: "umbrel.local", NETWORK_IP: "10.21.0.0" }));
  expect(config.allowedHosts).toContain("umbrel.local");
  expect(config.trustedProxies).toEqual(["10.21.0.0/16"]);
});

test("the CasaOS app has the fields that ZimaOS documents", () => {
  const { name, services, "x-casaos": store } = readYaml("casaos/docker-compose.yml");
  // https://github.com/IceWhaleTech/CasaOS-AppStore/blob/main/docs/specs/compose-and-x-casaos.md
  expect(name).toMatch(/^[a-z0-9_-]+$/);
  expect(store.id).toBe("com.github.some-one.parlor");
  expect(Object.keys(services)).toEqual([store.main]);
  expect(store).toMatchObject({ index: "/", port_map: `${PORT}`, scheme: "http", version: "1.2.3", category: "AI" });
  for (const field of ["title", "tagline", "description"]) expect([field, store[field].en_US]).not.toEqual([field, ""]);
  expect(store.tips.before_install.en_US).toContain("HTTPS");
  const { parlor } = services;
  // No tag "latest". https://github.com/IceWhaleTech/CasaOS-AppStore/blob/main/CONTRIBUTING.md
  expect(parlor).toMatchObject({ image: IMAGE, container_name: "parlor", cap_drop: ["ALL"] });
  expect(parlor.ports).toEqual([{ target: PORT, published: `${PORT}`, protocol: "tcp" }]);
  expect(parlor.volumes).toEqual([{ type: "bind", source: "/DATA/AppData/$AppID/data", target: "/data" }]);
  expect(parlor.environment).toMatchObject({ PUID: "$PUID", PGID: "$PGID" });
  expect(configOf(parlorVariables(parlor)).allowedHosts).toContain("localhost");
});

test("the Home Assistant app has the fields that its documentation lists, without ingress", () => {
  // https://developers.home-assistant.io/docs/apps/repository
  expect(readYaml("home-assistant/repository.yaml")).toMatchObject({ name: "Parlor", url: release.home });
  const config = readYaml("home-assistant/parlor/config.yaml");
  // Unknown keys are refused. https://github.com/frenck/action-addon-linter/blob/main/src/config.schema.json
  const known = [
    ...["name", "version", "slug", "description", "url", "arch", "webui", "watchdog", "ports", "ports_description"],
    ...["map", "tmpfs", "backup", "timeout", "options", "schema"],
  ];
  expect(known).toEqual(expect.arrayContaining(Object.keys(config)));
  // https://developers.home-assistant.io/docs/apps/configuration#required-configuration-options
  expect(config).toMatchObject({ version: "1.2.3", slug: "parlor", arch: ["aarch64", "amd64"] });
  expect(config.ingress).toBeUndefined();
  expect(config.ports).toEqual({ [`${PORT}/tcp`]: PORT });
  expect(config.webui).toBe(`[PROTO:ssl]://[HOST]:[PORT:${PORT}]`);
  expect(Object.keys(config.options)).toEqual(Object.keys(config.schema));
  expect(config.map).toEqual([{ type: "ssl", read_only: true }]);
  const { configuration, network } = readYaml("home-assistant/parlor/translations/en.yaml");
  expect(Object.keys(configuration)).toEqual(Object.keys(config.options));
  expect(Object.keys(network)).toEqual(Object.keys(config.ports));
  const dockerfile = textOf("home-assistant/parlor/Dockerfile");
  expect(dockerfile).toMatch(new RegExp(`^FROM ${IMAGE.replaceAll(".", "\\.")}$`, "m"));
  expect(dockerfile).toContain('io.hass.version="1.2.3" io.hass.type="app" io.hass.arch="aarch64|amd64"');
  const variables = [...textOf("home-assistant/parlor/run.sh").matchAll(/\b(PARLOR_\w+)=/g)].map(([, name]) => name!);
  expect(variables.length).toBeGreaterThan(3);
  configOf(Object.fromEntries(new Set(variables).values().map((name) => [name, ""])));
  // Each option is read.
  for (const option of Object.keys(config.options)) expect(textOf("home-assistant/parlor/run.sh")).toContain(option);
});

test("the flake downloads the files of the release with their checksums", () => {
  const text = textOf("nix/release.nix");
  expect(text).toContain('version = "1.2.3";\n  home = "https://github.com/Some-One/parlor";');
  const files = [...text.matchAll(/(\S+) = \{\s+name = "(.*)";\s+sha256 = "(.*)";/g)].map((match) => match.slice(1));
  expect(files).toEqual([
    ["x86_64-linux", "parlor-linux-x64", "0".repeat(64)],
    ["aarch64-linux", "parlor-linux-arm64", "1".repeat(64)],
  ]);
});

test("the module of NixOS hardens the service as the guide's unit does", async () => {
  const [, unit] = /```ini\n(\[Unit\][\s\S]*?)```/.exec(await Deno.readTextFile("docs/guide/install.md"))!;
  const [, service] = /\[Service\]\n([\s\S]*)\[Install\]/.exec(unit!)!;
  const wanted = service!.split("\n").filter((line) => /^(?!Environment|ExecStart)\w+=/.test(line)).map((line) => {
    const [, name, value] = /^(\w+)=(.*)$/.exec(line)!;
    return `${name} = ${value === "yes" ? "true" : /^\d{1,3}$/.test(value!) ? value : `"${value}"`};`;
  });
  const [, block] = /serviceConfig = \{\n([\s\S]*?)\n {6}\};/.exec(textOf("nix/module.nix"))!;
  const found = block!.split("\n").map((line) => line.trim()).filter((line) => !line.startsWith("ExecStart"));
  expect(found.sort()).toEqual(wanted.sort());
});
