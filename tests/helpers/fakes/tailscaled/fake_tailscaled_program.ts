/** The fake of tailscaled as a program: flags, LocalAPI over its Unix socket, end by signal; a side socket for the test. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { openForwarders } from "./fake_tailscaled_forwarder.ts";
import { FakeNode, Refusal } from "./fake_tailscaled_node.ts";
import type { NodeFacts, Switches } from "./fake_tailscaled_types.ts";

const KNOWN_FLAGS = ["--tun", "--statedir", "--socket", "--port", "--no-logs-no-support"];

if (import.meta.main) await main(Deno.args[0]!, Deno.args.slice(1));

/** @param folder Where the test put `switches.json` and finds what happened. */
async function main(folder: string, args: string[]): Promise<void> {
  const flags = new Map(args.map((arg) => arg.split("=", 2) as [string, string]));
  const unknown = [...flags.keys()].filter((flag) => !KNOWN_FLAGS.includes(flag));
  if (unknown.length > 0) fail(2, `flag provided but not defined: ${unknown[0]}`);
  const switches = (): Switches => JSON.parse(Deno.readTextFileSync(`${folder}/switches.json`));
  const { exitsWith, isMute, isStubborn } = switches();
  Deno.writeTextFileSync(`${folder}/starts`, `${Deno.pid}\n`, { append: true });
  if (exitsWith !== undefined) fail(exitsWith, "cannot visit https://login.example/a/secret with tskey-auth-secret");
  const socketPath = flags.get("--socket")!;
  const stop = () => {
    if (isStubborn) return;
    remove(socketPath);
    Deno.exit(0);
  };
  Deno.addSignalListener("SIGTERM", stop);
  if (isMute) return void setInterval(() => {}, 1_000);

  const watchers = new Set<ServerResponse>();
  const node = new FakeNode({
    stateFolder: flags.get("--statedir")!,
    switches,
    onNotice: (notice) => watchers.forEach((watcher) => tell(watcher, notice)),
    note: (fault) => Deno.writeTextFileSync(`${folder}/faults`, `${fault}\n`, { append: true }),
  });
  Deno.writeTextFileSync(`${folder}/ports.json`, JSON.stringify(await openForwarders(node)));
  await takeSocket(socketPath);
  await listen(folder, "test.sock", (req, res) => void answerTest(node, watchers, args, req, res));
  const api = createServer((req, res) => void answer(node, watchers, folder, switches, req, res));
  api.listen(socketPath, () => Deno.chmodSync(socketPath, 0o666));
}

function fail(code: number, words: string): never {
  console.error(words);
  Deno.exit(code);
}

/** A stale socket is removed, a live one refused. */
async function takeSocket(path: string): Promise<void> {
  const isAlive = await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => resolve(true));
    socket.on("error", () => resolve(false));
  });
  if (isAlive) fail(1, `safesocket.Listen: ${path}: address already in use`);
  remove(path);
}

function remove(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

async function listen(
  folder: string,
  name: string,
  handler: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<void> {
  remove(`${folder}/${name}`);
  const server = createServer(handler);
  await new Promise<void>((resolve) => void server.listen(`${folder}/${name}`, resolve));
}

/** Lines come in two pieces, as they may. */
function tell(watcher: ServerResponse, notice: Record<string, unknown>): void {
  const text = `${JSON.stringify(notice)}\n`;
  watcher.write(text.slice(0, 5));
  watcher.write(text.slice(5));
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of req) chunks.push(chunk);
  return new TextDecoder().decode(await new Blob(chunks as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

async function answer(
  node: FakeNode,
  watchers: Set<ServerResponse>,
  folder: string,
  switches: () => Switches,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const url = new URL(req.url!, "http://local-tailscaled.sock");
  const call = `${req.method} ${url.pathname.replace("/localapi/v0/", "")}`;
  const body = await bodyOf(req);
  const record = (status: number) => {
    const isObject = body.startsWith("{") && call !== "POST serve-config";
    const line = JSON.stringify({ call, status, ...(isObject ? { body: JSON.parse(body) } : {}) });
    Deno.writeTextFileSync(`${folder}/calls`, `${line}\n`, { append: true });
  };
  if (switches().hangs) return;
  const { host, origin, referer } = req.headers;
  try {
    if (host !== "local-tailscaled.sock" || origin !== undefined || referer !== undefined) {
      throw new Refusal(403, "invalid localapi request");
    }
    if (call === "GET watch-ipn-bus") {
      record(200);
      res.writeHead(200);
      tell(res, node.firstNotice());
      watchers.add(res);
      return void res.on("close", () => watchers.delete(res));
    }
    const [status, text] = await answerTo(node, call, body, switches());
    record(status);
    res.writeHead(status, { "tailscale-version": "1.102.5-double", "tailscale-cap": "142" }).end(text);
  } catch (error) {
    const { status, answer } = error instanceof Refusal ? error : { status: 500, answer: String(error) };
    record(status);
    res.writeHead(status).end(typeof answer === "string" ? answer : JSON.stringify(answer));
  }
}

async function answerTo(node: FakeNode, call: string, body: string, switches: Switches): Promise<[number, string]> {
  if (call.startsWith("GET cert/")) return [200, await certificate(node, call, switches)];
  switch (call) {
    case "GET status":
      return [200, JSON.stringify(node.status())];
    case "GET prefs":
      return [200, JSON.stringify(node.prefs)];
    case "PATCH prefs":
      node.patch(JSON.parse(body));
      return [200, JSON.stringify(node.prefs)];
    case "POST start":
      node.start(JSON.parse(body).UpdatePrefs);
      return [204, ""];
    case "POST login-interactive":
      node.login();
      return [204, ""];
    case "POST logout":
      await node.logout();
      return [204, ""];
    case "GET serve-config":
      return [200, JSON.stringify(node.served)];
    case "POST serve-config":
      node.serve(body);
      return [200, ""];
  }
  throw new Refusal(404, "not found");
}

async function certificate(node: FakeNode, call: string, { certificate: given, certificateMs }: Switches) {
  if (certificateMs !== undefined) await new Promise((resolve) => setTimeout(resolve, certificateMs));
  if (call !== `GET cert/${node.fqdn}`) throw new Refusal(500, "invalid domain");
  if (given === "good") return "-----BEGIN CERTIFICATE-----\n";
  if (given === "limited") throw new Refusal(429, "too many certificates already issued");
  throw new Refusal(500, "your Tailscale account does not support getting TLS certs");
}

/** Requests of the test on the side socket. */
async function answerTest(
  node: FakeNode,
  watchers: Set<ServerResponse>,
  args: string[],
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const body = await bodyOf(req);
  const doings: Record<string, () => void> = {
    "/facts": () => {},
    "/approve": () => node.approve(),
    "/admit": () => node.admit(),
    "/expire": () => node.expire(),
    "/complain": () => node.complain(body),
    "/serve": () => node.serve(body, true),
    "/fall-behind": () =>
      watchers.forEach((watcher) => {
        tell(watcher, { ErrMessage: "watcher fell behind; closing" });
        watcher.end();
      }),
    "/die": () => Deno.exit(Number(body)),
  };
  try {
    const { pathname } = new URL(req.url!, "http://node.test");
    doings[pathname]!();
    res.end(JSON.stringify(factsOf(node, args)));
  } catch (error) {
    res.writeHead(500).end(String(error));
  }
}

function factsOf(node: FakeNode, args: string[]): NodeFacts {
  const web = node.served?.Web ?? {};
  return {
    pid: Deno.pid,
    args,
    environment: Deno.env.toObject(),
    state: node.state,
    prefs: node.prefs,
    servedPorts: Object.keys(node.served?.TCP ?? {}).length,
    servedNames: Object.keys(web),
    target: Object.values(web)[0]?.Handlers["/"]?.Proxy ?? null,
  };
}
