/** How the systems of packaging/ start the image, as arguments of `docker run`. */
import { dirname } from "node:path";
import { DOMParser } from "linkedom";
import { parse } from "yaml";
import { readPackaging } from "../../../build/packaging.ts";

/** What a system does before and at the start of the container. */
export interface StoreContainer {
  /** Arguments of `docker run`, without the published port. */
  args: string[];
  /** Folder that becomes the data folder, or contains it. */
  folder: string;
  /** Numbers of user and group whose files are in the data folder. */
  owner: [uid: number, gid: number];
}

interface Service {
  user?: string;
  init?: boolean;
  read_only?: boolean;
  tmpfs?: string[];
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  extra_hosts?: string[];
  environment: Record<string, string>;
  volumes: (string | { source: string; target: string })[];
}

/**
 * Writes the files of the stores into a folder, with the image's name filled in.
 *
 * @param image `"parlor:test"`
 */
export async function writeStores(folder: string, image: string): Promise<void> {
  const [name, version] = image.split(":");
  const sums = ["x64", "arm64"].map((machine) => `${"a".repeat(64)}  parlor-linux-${machine}\n`).join("");
  const release = { version: version!, home: "https://example.org/parlor", image: name! };
  for (const [path, text] of await readPackaging(new URL("../../../", import.meta.url), release, sums)) {
    await Deno.mkdir(dirname(`${folder}/${path}`), { recursive: true });
    await Deno.writeTextFile(`${folder}/${path}`, text);
  }
}

/** Umbrel: its folders belong to 1000:1000. */
export async function prepareUmbrel(folder: string): Promise<StoreContainer> {
  const { services } = parse(await Deno.readTextFile(`${folder}/umbrel/parlor-chat/docker-compose.yml`));
  const app = await makeFolder(`${folder}/umbrel-data`, 1000, 1000);
  await makeFolder(`${app}/data`, 1000, 1000);
  const variables = { APP_DATA_DIR: app, DEVICE_DOMAIN_NAME: "umbrel.local", NETWORK_IP: "172.30.0.0" };
  return { args: toRunArguments(services.web, variables), folder: `${app}/data`, owner: [1000, 1000] };
}

/** CasaOS: creates the folder as root, and sets PUID and PGID. */
export async function prepareCasaOs(folder: string): Promise<StoreContainer> {
  const { services } = parse(await Deno.readTextFile(`${folder}/casaos/docker-compose.yml`));
  const data = await makeFolder(`${folder}/casaos-data`, 0, 0);
  const service: Service = { ...services.parlor, volumes: [{ ...services.parlor.volumes[0], source: data }] };
  return { args: toRunArguments(service, { PUID: "1000", PGID: "1001" }), folder: data, owner: [1000, 1001] };
}

/** Unraid: creates the folder for 99:100, open to all. */
export async function prepareUnraid(folder: string): Promise<StoreContainer> {
  const text = await Deno.readTextFile(`${folder}/unraid/parlor.xml`);
  const template = new DOMParser().parseFromString(text, "text/xml");
  const data = await makeFolder(`${folder}/unraid-data`, 99, 100, 0o777);
  const args = template.querySelector("ExtraParams")!.textContent!.split(" ");
  for (const entry of template.querySelectorAll("Config")) {
    const target = entry.getAttribute("Target")!;
    if (entry.getAttribute("Type") === "Variable") args.push(`--env=${target}=${entry.textContent}`);
    if (entry.getAttribute("Type") === "Path") args.push(`--volume=${data}:${target}`);
  }
  return { args, folder: data, owner: [99, 100] };
}

/**
 * Home Assistant: its Supervisor writes the options into /data, which belongs to root, and mounts /ssl read-only.
 *
 * @param chosen Changes of the default options.
 * @param hasCertificate Whether there is a certificate in /ssl.
 */
export async function prepareHomeAssistant(
  folder: string,
  chosen: Record<string, unknown>,
  hasCertificate = false,
): Promise<StoreContainer> {
  const { options } = parse(await Deno.readTextFile(`${folder}/home-assistant/parlor/config.yaml`));
  const data = await makeFolder(`${folder}/home-assistant-data`, 0, 0);
  const certificates = await makeFolder(`${folder}/home-assistant-ssl`, 0, 0);
  await Deno.writeTextFile(`${data}/options.json`, JSON.stringify({ ...options, ...chosen }, null, 2));
  if (hasCertificate) {
    const files = ["-keyout", `${certificates}/privkey.pem`, "-out", `${certificates}/fullchain.pem`];
    const args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", ...files];
    const { success } = await new Deno.Command("openssl", { args, stderr: "null" }).output();
    if (!success) throw new Error("openssl failed");
    await Deno.chmod(`${certificates}/privkey.pem`, 0o600);
  }
  const mounts = [`--volume=${data}:/data`, `--volume=${certificates}:/ssl:ro`];
  return { args: ["--init", "--tmpfs=/tmp", ...mounts], folder: `${data}/parlor`, owner: [10_001, 10_001] };
}

async function makeFolder(path: string, uid: number, gid: number, mode = 0o755): Promise<string> {
  await Deno.mkdir(path, { recursive: true });
  await Deno.chmod(path, mode);
  await Deno.chown(path, uid, gid);
  return path;
}

/** Returns the arguments for a service of a Compose file, with variables replaced as Compose does. */
function toRunArguments(service: Service, variables: Record<string, string>): string[] {
  const fill = (text: string) => text.replace(/\$\{?(\w+)\}?/g, (_found, name) => variables[name]!);
  const each = (flag: string, values: string[] = []) => values.map((value) => `--${flag}=${value}`);
  return [
    ...each("user", service.user === undefined ? [] : [service.user]),
    ...(service.init ? ["--init"] : []),
    ...(service.read_only ? ["--read-only"] : []),
    ...each("tmpfs", service.tmpfs),
    ...each("cap-drop", service.cap_drop),
    ...each("cap-add", service.cap_add),
    ...each("security-opt", service.security_opt),
    ...each("add-host", service.extra_hosts),
    ...each("env", Object.entries(service.environment).map(([name, value]) => `${name}=${fill(`${value}`)}`)),
    ...each(
      "volume",
      service.volumes.map((volume) => typeof volume === "string" ? fill(volume) : `${volume.source}:${volume.target}`),
    ),
  ];
}
