/** The whole server for tests: real services with a temporary data directory and a real listener. */
import { type App, createApp } from "../../../routes/app.ts";
import { type Listener, type ListenerLimits, openListener } from "../../../routes/server/listener.ts";
import { openTailnetListener } from "../../../routes/server/tailnet_listener.ts";
import { findUiFolder } from "../../../routes/ui.ts";
import { type Config, loadConfig } from "../../../services/config/config.ts";
import type { BackendLimits } from "../../../services/image_generation/backend.ts";
import { createLog } from "../../../services/log.ts";
import { openServices, type ServiceOptions, type Services } from "../../../services/services.ts";
import type { NodeTimes } from "../../../services/tailnet/node_state.ts";
import { answerInTime } from "../network/slow_answers.ts";

/** Options. */
export interface TestAppOptions {
  /** Configuration besides the defaults. `dataDir` is set by the helper. */
  config?: Partial<Config>;
  /** An existing data directory, which isn't deleted at the end. */
  dataDir?: string;
  /** Serve HTTPS with this certificate; PEM texts. */
  tls?: { cert: string; key: string };
  limits?: Partial<ListenerLimits>;
  /** Folder of the page; by default the built one, which may be missing. */
  uiFolder?: string;
  /** Address to listen on; 127.0.0.1 by default. */
  host?: string;
  /** A free one by default. */
  port?: number;
  /** Changes the listener's information about a request, such as the peer address or the tailnet listener. */
  connection?: { peerAddress?: string; listener?: "main" | "tailnet" };
  now?: () => number;
  /** Encrypts backups. */
  backupPassphrase?: string;
  /** Idle time before a title is generated. Without it, no titles are generated, since they need another call. */
  titleIdleMs?: number;
  /** Limits of calls to image backends. Fake backends are polled without a delay. */
  imageLimits?: Partial<BackendLimits>;
  tailnetTimes?: Partial<NodeTimes>;
  /** Additional tool sources. */
  toolSources?: ServiceOptions["toolSources"];
  toolLimits?: ServiceOptions["toolLimits"];
  /** Model servers are asked what they do when they're new or have changed. Without it only tests of connections ask. */
  probes?: ServiceOptions["probes"];
  /** Receives the server's terminal output. */
  announce?: (text: string) => void;
  /** Called when the server is asked to stop. */
  requestStop?: () => void;
}

/** How long replies wait for what a double says of itself: more than a busy machine stops a process for. */
const MODEL_FACTS_MS = 20_000;

/** An address where nothing listens. */
const NOWHERE = "http://127.0.0.1:9";

type Body = BodyInit | Record<string, unknown> | unknown[] | null;

/** A running server with request helpers. */
export interface TestApp extends AsyncDisposable {
  /** `http://localhost:PORT` */
  readonly url: string;
  readonly port: number;
  readonly services: Services;
  readonly app: App;
  readonly listener: Listener;
  readonly dataDir: string;
  /** Lines the server logged so far. */
  readonly logLines: string[];
  /** Sends a request. Objects and arrays are sent as JSON. */
  request(method: string, path: string, body?: Body, init?: RequestInit): Promise<Response>;
  get(path: string, init?: RequestInit): Promise<Response>;
  post(path: string, body?: Body, init?: RequestInit): Promise<Response>;
  put(path: string, body?: Body, init?: RequestInit): Promise<Response>;
  patch(path: string, body?: Body, init?: RequestInit): Promise<Response>;
  delete(path: string, init?: RequestInit): Promise<Response>;
  /** Closes everything and opens it again on the same data directory, under another port. @param between Runs while it is closed. */
  restart(between?: () => Promise<void>): Promise<void>;
}

/** Opens a server. Dispose of it by `await using`. */
export async function openTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const dataDir = options.dataDir ?? await Deno.makeTempDir({ prefix: "parlor-test-" });
  const logLines: string[] = [];
  let running = await open(options, dataDir, logLines);

  const request: TestApp["request"] = (method, path, body, init = {}) => {
    const headers = new Headers(init.headers);
    const isJson = body !== undefined && body !== null && (Array.isArray(body) || isPlainObject(body));
    if (isJson && !headers.has("content-type")) headers.set("content-type", "application/json");
    const sent = isJson ? JSON.stringify(body) : body as BodyInit | null | undefined;
    return fetch(running.listener.url + path, { ...init, method, headers, body: sent });
  };
  return {
    get url() {
      return running.listener.url;
    },
    get port() {
      return running.listener.port;
    },
    get services() {
      return running.services;
    },
    get app() {
      return running.app;
    },
    get listener() {
      return running.listener;
    },
    dataDir,
    logLines,
    request,
    get: (path, init) => request("GET", path, undefined, init),
    post: (path, body, init) => request("POST", path, body, init),
    put: (path, body, init) => request("PUT", path, body, init),
    patch: (path, body, init) => request("PATCH", path, body, init),
    delete: (path, init) => request("DELETE", path, undefined, init),
    async restart(between) {
      await close(running);
      await between?.();
      running = await open(options, dataDir, logLines);
    },
    async [Symbol.asyncDispose]() {
      await close(running);
      if (options.dataDir === undefined) await Deno.remove(dataDir, { recursive: true });
    },
  };
}

interface Running {
  services: Services;
  app: App;
  listener: Listener;
}

async function open(options: TestAppOptions, dataDir: string, logLines: string[]): Promise<Running> {
  const config = testConfig(dataDir, options.config);
  const log = createLog({
    level: config.logLevel as "info",
    asJson: true,
    write: (line) => void logLines.push(line),
    now: Date.now,
  });
  const { now, announce, titleIdleMs = Infinity, imageLimits = { pollMs: 20 }, tailnetTimes, toolSources, toolLimits } =
    options;
  const { probes = { isManual: true } } = options;
  const services = await openServices(config, {
    log,
    version: "0.0.0-test",
    now,
    announce,
    requestStop: options.requestStop,
    backupPassphrase: options.backupPassphrase,
    titleIdleMs,
    modelFactsMs: MODEL_FACTS_MS,
    imageLimits,
    tailnetTimes,
    probes,
    toolSources,
    toolLimits,
  });
  try {
    const app = createApp(services, { uiFolder: options.uiFolder ?? await findUiFolder() });
    const { ownListeners } = services;
    const listener = openListener({
      host: options.host ?? "127.0.0.1",
      port: options.port ?? 0,
      tls: options.tls,
      limits: { closeMs: 1_000, ...options.limits },
      handler: (request, connection) =>
        answerInTime(request, async () => await app.fetch(request, { ...connection, ...options.connection })),
      log,
      ownListeners,
    });
    services.start((tailnet) =>
      openTailnetListener({ handler: app.fetch, nodeUrl: () => tailnet.getStatus().url, log, ownListeners })
    );
    return { services, app, listener };
  } catch (error) {
    await services.close();
    throw error;
  }
}

/** The defaults of a new installation in a folder of the test, with the test's changes. */
export function testConfig(dataDir: string, changes: Partial<Config> = {}): Config {
  const config = loadConfig({
    // No test reaches a public site by accident; those that mean a hub, a card site or releases bring their own.
    args: [
      ...["--data-dir", dataDir, "--hub-url", NOWHERE, "--card-site-url", NOWHERE],
      ...["--discover-hosts", "127.0.0.1:9", "--releases-url", ""],
    ],
    environment: {},
    os: Deno.build.os,
    readTextFile: () => undefined,
  });
  return Object.freeze({ ...config, ...changes, dataDir });
}

async function close({ services, listener }: Running): Promise<void> {
  // As main.ts does: replies end while the listener drains.
  await Promise.all([listener.close(), services.stop()]);
  await services.close();
}

function isPlainObject(value: object | string): boolean {
  return typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
}
