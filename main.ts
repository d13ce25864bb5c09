/** Entry point: selects the command; opens the services, serves requests, and stops cleanly. */
import { dirname } from "node:path";
import denoConfig from "./deno.json" with { type: "json" };
import { createApp } from "./routes/app.ts";
import { openListener } from "./routes/server/listener.ts";
import { openTailnetListener } from "./routes/server/tailnet_listener.ts";
import { openUiFolder } from "./routes/ui.ts";
import { removeRunningServer, saveRunningServer } from "./services/diagnostics/running_server.ts";
import { type DataCommand, type DataCommandContext, PASSPHRASE_VARIABLE } from "./services/cli/cli_environment.ts";
import type { ImportCommandContext, RestoreItemContext } from "./services/cli/data_commands.ts";
import type { Healing } from "./services/integrity/healer.ts";
import { type Config, formatConfig, loadConfig } from "./services/config/config.ts";
import { type ConfigKeyName, renderHelp } from "./services/config/config_keys.ts";
import { SANDBOX_COMMAND } from "./services/platform/sandbox/child.ts";
import { containDefects, isHangupIgnored } from "./services/process/process_events.ts";
import { AppError, getErrorMessage, getErrorTrace } from "./services/errors.ts";
import { createLog, createProcessLog, type Log, type LogLevel, writeLine } from "./services/log.ts";
import type { ImportReport } from "./services/import_export/import_report.ts";
import { dropProxyEnvironment } from "./services/http/guard/target_policy.ts";
import { openServices } from "./services/services.ts";
import { explainDenial } from "./services/storage/data_dir.ts";

const VERSION: string = denoConfig.version;
/** Maximum duration of a stop in milliseconds. Replies that aren't saved by then are in the journals. */
const STOP_WITHIN_MS = 10_000;
/** Delay after startup in milliseconds, so that the first requests aren't slowed down. */
const PREPARE_AFTER_MS = 500;
/** Commands on the data folder, which need no running server. Each may return an exit code. */
const DATA_COMMANDS = new Map<string, () => Promise<{ help: string; run: DataCommand }>>([
  ["backup", async () => {
    const { BACKUP_HELP, runBackup } = await import("./services/cli/data_commands.ts");
    return { help: BACKUP_HELP, run: runBackup };
  }],
  ["doctor", async () => {
    const { DOCTOR_HELP, runDoctor } = await import("./services/cli/doctor.ts");
    const backupPassphrase = Deno.env.get(PASSPHRASE_VARIABLE) || undefined;
    const run: DataCommand = (args, { print }) => runDoctor(args, { readConfig, backupPassphrase, print });
    return { help: DOCTOR_HELP, run };
  }],
  ["health", async () => {
    const { HEALTH_HELP, runHealth } = await import("./services/cli/doctor.ts");
    return { help: HEALTH_HELP, run: (args, { print }) => runHealth(readConfig([...args]), print) };
  }],
  ["import", async () => {
    const { IMPORT_HELP, runImport } = await import("./services/cli/data_commands.ts");
    return {
      help: IMPORT_HELP,
      run: (args, { print }) => runImport(args, { importPath, print, showProgress: writeOver }),
    };
  }],
  ["key", async () => {
    const { KEY_HELP, runKey } = await import("./services/cli/data_commands.ts");
    return { help: KEY_HELP, run: runKey };
  }],
  ["licenses", async () => {
    const { LICENSES_HELP, readLicenseNotices } = await import("./services/diagnostics/license_notices.ts");
    return { help: LICENSES_HELP, run: async (_args, { print }) => print(await readLicenseNotices()) };
  }],
  ["restore", async () => {
    const { BACKUP_HELP, runRestore, runRestoreItem } = await import("./services/cli/data_commands.ts");
    const run: DataCommand = (args, context) =>
      args.includes("--item") ? runRestoreItem(args, { heal, print: context.print }) : runRestore(args, context);
    return { help: BACKUP_HELP, run };
  }],
  ["stop", async () => {
    const { STOP_HELP, runStop } = await import("./services/cli/stop.ts");
    return { help: STOP_HELP, run: (args, { print }) => runStop(readConfig([...args]), print) };
  }],
  ["upgrade", async () => {
    const { UPGRADE_HELP, runUpgrade } = await import("./services/cli/upgrade.ts");
    return { help: UPGRADE_HELP, run: (args, { print }) => runUpgrade(args, { readConfig, version: VERSION, print }) };
  }],
]);
const encoder = new TextEncoder();

// Without an explicit exit, a command that waits for a line on standard input would keep waiting.
if (import.meta.main) Deno.exit(await run(Deno.args));

/**
 * Runs one command and returns its exit code.
 *
 * @param beforeServing Called with a valid configuration before a server opens anything; a start from source builds the page.
 */
export async function run(args: string[], beforeServing = async () => {}): Promise<number> {
  const [command, ...rest] = toCommand(args);
  try {
    if (command === SANDBOX_COMMAND && Deno.build.standalone) return await runSandboxChild(rest[0] ?? "");
    const isHelp = rest.includes("--help") || rest.includes("-h");
    if (command === "auth") {
      const { AUTH_HELP, runAuth } = await import("./services/cli/auth.ts");
      if (isHelp) return print(AUTH_HELP);
      await runAuth(rest, Deno.env.toObject(), readConfig);
      return 0;
    }
    const dataCommand = await DATA_COMMANDS.get(command!)?.();
    if (dataCommand !== undefined) {
      if (isHelp) return print(dataCommand.help);
      return await dataCommand.run(rest, createDataCommandContext()) ?? 0;
    }
    if (isHelp && command === "serve") {
      return print(renderHelp(VERSION));
    }
    if (rest.includes("--version")) return print(`Parlor ${VERSION}`);
    if (command !== "serve") {
      throw new AppError("invalid_request", `Unknown command "${command}". See parlor --help`);
    }
    const config = readConfig(rest.filter((arg) => arg !== "--print-config"));
    if (rest.includes("--print-config")) {
      return print(formatConfig(config));
    }
    await beforeServing();
    await serve(config);
    return 0;
  } catch (error) {
    reportEnd(error, command === "serve");
    return 1;
  }
}

/**
 * Runs a file of the executable as a child of the sandbox: the hidden command `sandbox`. From source, these files are
 * started themselves.
 */
async function runSandboxChild(name: string): Promise<number> {
  if (!/^\w+$/.test(name)) throw new AppError("invalid_request", `Unknown sandbox "${name}"`);
  // Not in one expression, which the bundler would take for every file of the folder.
  const { href } = new URL(`${name}.js`, import.meta.url);
  await import(href);
  return 0;
}

/** Reports why a command failed. A server reports it in its log, which is JSON unless it's on a terminal. */
function reportEnd(error: unknown, isServer: boolean): void {
  if (isServer && !Deno.stderr.isTerminal()) {
    const fields = error instanceof AppError
      ? { code: error.code, error: error.message }
      : { error: getErrorTrace(error) };
    createProcessLog("error")("error", "The server ended because of an error", fields);
  } else {
    console.error(error instanceof AppError ? `parlor: ${error.message}` : error);
  }
}

/** Adds the default command if there is none, and treats `help COMMAND` as `COMMAND --help`. */
function toCommand(args: string[]): string[] {
  if (args[0] === "help") return args.length > 1 ? [args[1]!, "--help"] : ["serve", "--help"];
  return args[0]?.startsWith("-") ?? true ? ["serve", ...args] : args;
}

function createDataCommandContext(): DataCommandContext {
  return { environment: Deno.env.toObject(), version: VERSION, readConfig, print };
}

function print(text: string): number {
  console.log(text);
  return 0;
}

/** Opens the data folder for one import, as the server does. */
async function importPath(...[rest, request]: Parameters<ImportCommandContext["importPath"]>): Promise<ImportReport> {
  const log = createLog({ level: "error", asJson: false, write: writeLine, now: Date.now });
  const services = await openServices(readConfig(rest), { log, version: VERSION, titleIdleMs: Infinity });
  try {
    const imports = await services.imports();
    return await imports.importPath({ ...request, signal: new AbortController().signal });
  } finally {
    await services.stop();
    await services.close();
  }
}

/** Opens the data folder to restore one thing, as the server does. */
async function heal(...[rest, path, options]: Parameters<RestoreItemContext["heal"]>): Promise<Healing> {
  const log = createLog({ level: "error", asJson: false, write: writeLine, now: Date.now });
  const backupPassphrase = Deno.env.get(PASSPHRASE_VARIABLE) || undefined;
  const services = await openServices(readConfig(rest), {
    log,
    version: VERSION,
    titleIdleMs: Infinity,
    backupPassphrase,
  });
  try {
    return await (await services.healer()).heal(path, options);
  } finally {
    await services.stop();
    await services.close();
  }
}

/** Prints progress, on a terminal by overwriting the line. */
function writeOver(text: string): void {
  if (Deno.stderr.isTerminal()) Deno.stderr.writeSync(encoder.encode(`\r\x1b[K${text}`));
}

function readConfig(args: string[]): Config {
  return loadConfig({
    args,
    environment: Deno.env.toObject(),
    os: Deno.build.os,
    readTextFile(path) {
      try {
        return Deno.readTextFileSync(path);
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return undefined;
        const denial = explainDenial(path, error, dirname(path));
        if (denial !== undefined) throw new AppError("forbidden", `Can't read "${path}" ${denial}`);
        throw new AppError("invalid_request", `Can't read "${path}": ${getErrorMessage(error)}`);
      }
    },
  });
}

/** Serves until a signal or `parlor stop` ends it. */
async function serve(config: Config): Promise<void> {
  dropProxyEnvironment();
  const log = createProcessLog(config.logLevel as LogLevel);
  containDefects(log);
  const stopRequest = Promise.withResolvers<void>();
  const services = await openServices(config, {
    log,
    requestStop: stopRequest.resolve,
    // Not logged, because it's a secret.
    announce: (text) => writeLine(text, Deno.stdout),
    version: VERSION,
    backupPassphrase: Deno.env.get(PASSPHRASE_VARIABLE) || undefined,
  });
  try {
    using ui = await openUiFolder();
    const app = createApp(services, { uiFolder: ui.path });
    const handler = app.fetch;
    const { ownListeners } = services;
    const { host, port } = config;
    const listener = openListener({ host, port, tls: readTlsFiles(config), handler, log, ownListeners });
    services.start((tailnet) =>
      openTailnetListener({ handler, nodeUrl: () => tailnet.getStatus().url, log, ownListeners })
    );
    // Before the ready message, because whoever reads it may send a signal immediately.
    const stopped = Promise.race([waitForStopSignal(log), stopRequest.promise]);
    await announce(config, listener, log);
    log("info", "Started", {
      version: VERSION,
      runtime: `Deno ${Deno.version.deno}`,
      data_dir: config.dataDir,
      listen: `${/^[^[].*:/.test(config.host) ? `[${config.host}]` : config.host}:${listener.port}`,
      addresses: [listener.url, ...config.allowedHosts],
    });
    const preparing = setTimeout(() => {
      app.loadApi().catch((error) => log("error", "Can't load the API", { error: getErrorMessage(error) }));
    }, PREPARE_AFTER_MS);
    await stopped;
    clearTimeout(preparing);
    log("info", "Stopping");
    const limit = setTimeout(() => {
      log("error", "Can't stop in time; ending now", { seconds: STOP_WITHIN_MS / 1000 });
      Deno.exit(1);
    }, STOP_WITHIN_MS);
    // Replies end and are saved while the listener drains, so that their clients are still notified.
    await Promise.all([listener.close(), services.stop()]);
    clearTimeout(limit);
  } finally {
    await removeRunningServer(config.dataDir);
    await services.close();
  }
  log("info", "Stopped");
}

/** Says where the server is: in the data folder for `parlor doctor`, and on the terminal. */
async function announce(config: Config, { url, port }: { url: string; port: number }, log: Log): Promise<void> {
  const { backupDir, backupSchedule, sources } = config;
  const isFixed = (key: ConfigKeyName) => sources[key] === "flag" || sources[key] === "environment";
  const fixed = {
    ...(isFixed("backup_dir") && { backupDir }),
    ...(isFixed("backup_schedule") && { backupSchedule }),
  };
  await saveRunningServer(
    config,
    { port, fixed },
    (error) => log("warn", "Can't save where the server is, so parlor doctor may not find it", { error }),
  );
  const isDirect = config.tlsCert === null && config.trustedProxies.length === 0;
  const publicUrl = isDirect
    ? undefined
    : (await import("./services/diagnostics/local_server.ts")).findPublicUrl({ ...config, port });
  console.log(`Parlor ${VERSION} ${publicUrl === undefined ? "" : `is at ${publicUrl}, `}listening on ${url}`);
}

function readTlsFiles(config: Config): { cert: string; key: string } | undefined {
  if (config.tlsCert === null || config.tlsKey === null) return undefined;
  const read = (key: string, path: string) => {
    try {
      return Deno.readTextFileSync(path);
    } catch (error) {
      throw new AppError("invalid_request", `Bad value for ${key}: can't read "${path}": ${getErrorMessage(error)}`);
    }
  };
  return { cert: read("tls_cert", config.tlsCert), key: read("tls_key", config.tlsKey) };
}

function waitForStopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT", "SIGBREAK"] : ["SIGINT", "SIGTERM"];
    for (const signal of signals) Deno.addSignalListener(signal, resolve);
    if (Deno.build.os === "windows") return;
    // Closing the terminal also stops the server, unless it was started to outlive it.
    isHangupIgnored().then((isIgnored) => {
      if (!isIgnored) Deno.addSignalListener("SIGHUP", resolve);
      log("debug", isIgnored ? "SIGHUP is ignored" : "SIGHUP stops the server");
    });
  });
}
