/** compose.yaml, and its result with the changes in docs/guide/docker.md. */
import ipaddr from "ipaddr.js";
import { expect, test } from "vitest";
import { parseDocument, Scalar, visit } from "yaml";
import { composeFile } from "../build/release.ts";
import { type Config, loadConfig } from "../services/config/config.ts";
import { startChildServer } from "./helpers/app/child_server.ts";
import { readDocBlocks } from "./helpers/files/doc_blocks.ts";
import { tempFolder } from "./helpers/files/storage_folder.ts";
import { tryParlor } from "./helpers/processes/doc_commands.ts";

/** The fields of a service that the tests read. */
interface Service {
  image?: string;
  build?: string;
  command?: string | string[];
  environment?: Record<string, string>;
  extra_hosts?: string[];
  hostname?: string;
  labels?: Record<string, string>;
  network_mode?: string;
  networks?: Record<string, { ipv4_address?: string } | null>;
  ports?: string[];
  restart?: string;
  secrets?: string[];
  volumes?: string[];
}

/** A compose file. */
interface Compose {
  services: Record<string, Service>;
  networks?: Record<string, { ipam: { config: { subnet: string; ip_range: string }[] } }>;
  secrets?: Record<string, { file: string }>;
  volumes?: Record<string, null>;
}

const DOCKERFILE = await Deno.readTextFile("Dockerfile");
/** What an override removes from the file below it. @see https://docs.docker.com/reference/compose-file/merge/#reset-value */
const RESET = Symbol("!reset");

function parseCompose(text: string): unknown {
  const document = parseDocument(text);
  expect(document.errors).toEqual([]);
  visit(document, { Node: (_key, node) => "tag" in node && node.tag === "!reset" ? new Scalar(RESET) : undefined });
  return document.toJS();
}

/** Merges as Compose does: keys of maps one by one, lists one after the other, anything else is replaced. */
function merge(below: unknown, above: unknown): unknown {
  if (Array.isArray(below) && Array.isArray(above)) return [...below, ...above];
  if (!isMap(below) || !isMap(above)) return above;
  const keys = [...new Set([...Object.keys(below), ...Object.keys(above)])].filter((key) => above[key] !== RESET);
  return Object.fromEntries(
    keys.map((key) => [key, key in above && key in below ? merge(below[key], above[key]) : above[key] ?? below[key]]),
  );
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The configuration of the server in the container. @throws {AppError} for a variable that Parlor doesn't know */
function configOf({ environment }: Service): Config {
  const [, block = ""] = /^ENV ((?:.*\\\n)*.*)$/m.exec(DOCKERFILE)!;
  const image = Object.fromEntries([...block.matchAll(/(\w+)=(\S*)/g)].map(([, name, value]) => [name, value]));
  return loadConfig({
    args: [],
    environment: { ...image, ...environment },
    os: "linux",
    readTextFile: () => undefined,
  });
}

const source = await Deno.readTextFile("compose.yaml");
const shown = (await readDocBlocks()).filter(({ language, text }) => language === "yaml" && /^services:$/m.test(text));
const overrides = shown.map(({ text }) => text);
const [user = "", backups = "", caddy = "", traefik = "", tailscale = "", proxy = ""] = overrides;
/** Files by what they are for. */
const FILES: Record<string, string[]> = {
  "compose.yaml": [source],
  "a release": [composeFile(source, { version: "1.2.3", image: "ghcr.io/some-one/parlor" })],
  "compose.secret.yaml": [source, await Deno.readTextFile("compose.secret.yaml")],
  "PUID and PGID": [source, user],
  backups: [source, backups],
  Caddy: [source, caddy],
  // It replaces the service of Caddy, as the page says.
  Traefik: [source, caddy.replace(/^ {2}caddy:\n( {4}.*\n)+/m, ""), traefik],
  Tailscale: [source, tailscale],
  "a proxy on this machine": [source, proxy],
};

test("docker.md shows six changes", () => {
  expect(shown.map(({ page }) => page)).toEqual(Array(6).fill("docs/guide/docker.md"));
  const marks = /PUID|PARLOR_BACKUP_DIR|caddy:2|traefik:3|tailscale:stable|172\.18\.0\.1/;
  expect(overrides.map((text) => marks.exec(text)?.[0])).toEqual(
    ["PUID", "PARLOR_BACKUP_DIR", "caddy:2", "traefik:3", "tailscale:stable", "172.18.0.1"],
  );
});

test.each(Object.entries(FILES))("the file for %s has everything that it names", (name, texts) => {
  const file = texts.map(parseCompose).reduce(merge) as Compose;
  const services = Object.values(file.services);
  const parlor = file.services.parlor!;
  const config = configOf(parlor);

  // What compose.yaml says about the container stays.
  expect(parlor).toMatchObject({
    init: true,
    restart: "unless-stopped",
    read_only: true,
    tmpfs: ["/tmp"],
    cap_drop: ["ALL"],
    security_opt: ["no-new-privileges:true"],
  });
  const backupVolumes = config.backupDir === null ? [] : [expect.stringMatching(`^/.*:${config.backupDir}$`)];
  expect(parlor.volumes).toEqual([`parlor:${config.dataDir}`, ...backupVolumes]);
  expect(config).toMatchObject({ host: "0.0.0.0", pairing: "code", loopbackAuthBypass: false });
  expect(config.allowedHosts).toContain("localhost");
  expect(parlor.image).toMatch(/^\$\{PARLOR_IMAGE:-\S+\}$/);
  expect([name, parlor.build]).toEqual([name, name === "a release" ? undefined : "."]);
  for (const service of services) {
    expect(service.image).toMatch(/:\S/);
    expect(service.restart).toBe("unless-stopped");
  }

  // Names that a service uses are declared, and the other way round.
  const volumes = services.flatMap((service) => service.volumes ?? []).filter((volume) => !volume.startsWith("/"));
  const used = (names: string[]) => [...new Set(names)].sort();
  expect(used(volumes.map((volume) => volume.split(":")[0]!))).toEqual(used(Object.keys(file.volumes ?? {})));
  expect(used(services.flatMap(({ networks }) => Object.keys(networks ?? {})))).toEqual(
    used(Object.keys(file.networks ?? {})),
  );
  expect(parlor.secrets ?? []).toEqual(Object.keys(file.secrets ?? {}));
  for (const secret of parlor.secrets ?? []) expect(config.storageKeyFile).toBe(`/run/secrets/${secret}`);

  // The port is published to this machine only. A container in the network of another one has nothing of its own.
  const [, other] = /^service:(\w+)$/.exec(parlor.network_mode ?? "") ?? [];
  const owner = other === undefined ? parlor : file.services[other]!;
  const own = Object.keys(parlor).filter((key) => /^(ports|networks|extra_hosts|hostname)$/.test(key));
  if (other === undefined) expect(parlor.ports).toEqual([`127.0.0.1:${config.port}:${config.port}`]);
  else expect(own).toEqual([]);
  // The first start suggests a service of this name.
  expect(config.discoverHosts).toContain("llama");
  const hosts = config.discoverHosts.filter((host) => host !== "llama");
  expect(owner.extra_hosts).toEqual(hosts.map((host) => `${host}:host-gateway`));

  // A proxy in a container has the trusted address, and forwards the allowed name to the port.
  for (const service of services.filter((service) => service !== parlor)) {
    const addresses = Object.entries(service.networks ?? {}).map(([network, entry]) => {
      const { subnet, ip_range: range } = file.networks![network]!.ipam.config[0]!;
      expect(ipaddr.parse(entry!.ipv4_address!).match(ipaddr.parseCIDR(subnet))).toBe(true);
      // A container that starts before it doesn't get its address.
      expect(ipaddr.parse(entry!.ipv4_address!).match(ipaddr.parseCIDR(range))).toBe(false);
      expect(ipaddr.parseCIDR(range)[0].match(ipaddr.parseCIDR(subnet))).toBe(true);
      expect(Object.keys(parlor.networks!)).toContain(network);
      return entry!.ipv4_address!;
    });
    expect(config.trustedProxies).toEqual(service === owner ? ["127.0.0.1"] : addresses);
    const text = JSON.stringify([service.command, parlor.labels]);
    for (const [, port] of text.matchAll(/(?:--to parlor:|server\.port":")(\d+)/g)) {
      expect(Number(port)).toBe(config.port);
    }
    for (const [, from, rule] of text.matchAll(/--from (\S+)|Host\(`(.*?)`\)/g)) {
      expect(config.allowedHosts).toContain(from ?? rule);
    }
  }
});

const hasCompose = await new Deno.Command("docker", { args: ["compose", "version"] }).output()
  .then(({ success }) => success, () => false);

test.skipIf(!hasCompose).each(Object.entries(FILES))("Docker Compose accepts the file for %s", async (_name, texts) => {
  await using folder = await tempFolder();
  for (const [n, text] of texts.entries()) await Deno.writeTextFile(folder.file(`${n}.yaml`), text);
  const files = texts.flatMap((_text, n) => ["--file", folder.file(`${n}.yaml`)]);
  const { stdout, stderr } = await new Deno.Command("docker", {
    args: ["compose", "--project-directory", folder.path, ...files, "config", "--format", "json"],
  }).output();
  expect(new TextDecoder().decode(stderr)).toBe("");
  const merged = texts.map(parseCompose).reduce(merge) as Compose;
  const { services } = JSON.parse(new TextDecoder().decode(stdout)) as Compose;
  const summary = (all: Compose["services"]) =>
    Object.entries(all).map(([name, service]) => [name, service.environment ?? {}, (service.ports ?? []).length])
      .sort();
  expect(summary(services)).toEqual(summary(merged.services));
});

test("the image's health check passes while the server responds, and asks the program otherwise", async () => {
  const [, list = ""] = /^HEALTHCHECK .* CMD (\[(?:.*\\\n)*.*\])$/m.exec(DOCKERFILE)!;
  const [shell, ...args] = JSON.parse(list.replaceAll("\\\n", "")) as string[];
  expect(args.at(-1)).toMatch(/ \|\| exec parlor health$/);
  await using folder = await tempFolder();
  await Deno.mkdir(folder.file("bin"));
  await Deno.writeTextFile(folder.file("bin/parlor"), '#!/bin/sh\n[ "$*" = health ] && exit 7\n', { mode: 0o755 });
  const check = async (port: string) => {
    const env = { PATH: `${folder.file("bin")}:${Deno.env.get("PATH")}`, PARLOR_PORT: port };
    return (await new Deno.Command(shell!, { args, env, stderr: "null" }).output()).code;
  };
  await using server = await startChildServer({ dataDir: folder.file("data") });
  const { port } = new URL(server.url);
  expect(await check(port)).toBe(0);
  await server.kill("SIGTERM");
  expect(await check(port)).toBe(7);
  await tryParlor(["health"]);
});

test("the build arguments that the page names are in the Dockerfile", async () => {
  const page = await Deno.readTextFile("docs/guide/docker.md");
  const named = [...page.matchAll(/--build-arg (\w+)=/g)].map(([, name]) => name!);
  const known = [...DOCKERFILE.matchAll(/^ARG (\w+)/gm)].map(([, name]) => name);
  expect(known).toEqual(expect.arrayContaining(named));
  expect(named.length).toBeGreaterThan(3);
});
