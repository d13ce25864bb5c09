/** A real tailnet on this machine: a control server, Parlor's node and a second node, from tools/tailnet.sh. */
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../tools/tailnet.sh", import.meta.url));
/** Variable that is set in the isolated network. */
const ISOLATED = "PARLOR_TEST_ISOLATED";

/** Returns whether `runIsolated` started this process. */
export function isIsolated(): boolean {
  return Deno.env.get(ISOLATED) !== undefined;
}

/** Runs a test file again in an isolated network, because nodes probe gateways and look up public names. */
export async function runIsolated(testFile: string): Promise<boolean> {
  const vitest = [
    "run",
    "-A",
    "--cached-only",
    "npm:vitest@5.1.1",
    "run",
    "--config",
    "tests/vitest.config.ts",
    testFile,
  ];
  // Its tests are none of the run around them, so where reports are kept it writes its own; see tests/run.ts.
  const reports = Deno.env.get("TEST_REPORTS_FOLDER");
  if (reports !== undefined) {
    vitest.push("--reporter=default", "--reporter=json", `--outputFile.json=${reports}/${crypto.randomUUID()}.json`);
  }
  const canIsolate = (await run("bash", [SCRIPT, "isolate", "true"])).code === 0;
  if (!canIsolate) console.warn("NOT ISOLATED: network namespaces are not to be had here; the nodes see the network");
  const { success } = await new Deno.Command("bash", {
    args: [...canIsolate ? [SCRIPT, "isolate"] : ["-c", 'exec "$@"', "bash"], Deno.execPath(), ...vitest],
    env: { [ISOLATED]: "1" },
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).output();
  return success;
}

/** A response through the tailnet. */
export interface TailnetAnswer {
  /** 0 without a response. */
  status: number;
  body: string;
}

/** The tailnet. */
export class PrivateTailnet {
  readonly folder: string;
  /** Address of the control server. */
  readonly controlUrl: string;
  /** Program for `tailscaled_path`. It panics at any attempt to contact the public control server. */
  readonly program: string;
  readonly #proxy: string;

  private constructor(folder: string, controlUrl: string, proxy: string) {
    this.folder = folder;
    this.controlUrl = controlUrl;
    this.program = `${folder}/tailscaled`;
    this.#proxy = proxy;
  }

  /** Starts the control server and a machine called phone. @param installed Folder that `tailnet.sh install` made. */
  static async start(installed: string): Promise<PrivateTailnet> {
    const folder = await Deno.makeTempDir({ prefix: "tn-" });
    await Deno.symlink(`${installed}/bin`, `${folder}/bin`);
    const url = (await script("start", folder)).trim();
    const phone = await script("peer", folder, "phone");
    const tailnet = new PrivateTailnet(folder, url, /^proxy=(.*)$/m.exec(phone)![1]!);
    const command = `exec env TS_PANIC_IF_HIT_MAIN_CONTROL=1 "${folder}/bin/tailscaled" "$@" 2>>"${folder}/node.log"`;
    await Deno.writeTextFile(tailnet.program, `#!/bin/sh\n${command}\n`, { mode: 0o755 });
    return tailnet;
  }

  /** Environment variables with which Parlor's node trusts the control server. */
  get environment(): Record<string, string> {
    return { SSL_CERT_FILE: `${this.folder}/control/cert.pem` };
  }

  /** Signs a waiting node in, like a user in the browser. */
  async approve(authUrl: string): Promise<void> {
    await script("approve", this.folder, authUrl);
  }

  /** Expires the key of a node. */
  async expire(name: string): Promise<void> {
    await script("expire", this.folder, name);
  }

  /** Sends a request from the phone. @param headers One line each. */
  async ask(
    url: string,
    options: { headers?: string[]; body?: string; seconds?: number } = {},
  ): Promise<TailnetAnswer> {
    const { headers = [], body, seconds = 10 } = options;
    const { stdout } = await run("curl", [
      ...["-sS", "-x", `socks5h://${this.#proxy}`, "--max-time", String(seconds), "-w", "\n%{http_code}"],
      ...headers.flatMap((line) => ["-H", line]),
      ...body === undefined ? [] : ["-H", "Content-Type: application/json", "--data", body],
      url,
    ]);
    const end = stdout.lastIndexOf("\n");
    return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) };
  }

  /** The log of Parlor's node. */
  nodeLog(): Promise<string> {
    return Deno.readTextFile(`${this.folder}/node.log`);
  }

  async stop(): Promise<void> {
    await script("stop", this.folder);
    await Deno.remove(this.folder, { recursive: true });
  }
}

async function script(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run("bash", [SCRIPT, ...args]);
  if (code !== 0) throw new Error(`tailnet.sh ${args[0]} ended with ${code}: ${stderr}`);
  return stdout;
}

/** Standard output goes to a file: what the script leaves running would keep a pipe open. */
async function run(command: string, args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const [out, err] = await Promise.all([Deno.makeTempFile(), Deno.makeTempFile()]);
  try {
    const child = new Deno.Command("/bin/sh", {
      args: ["-c", 'out=$1 err=$2; shift 2; exec "$@" >"$out" 2>"$err"', "sh", out, err, command, ...args],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    });
    const { code } = await child.output();
    return { code, stdout: await Deno.readTextFile(out), stderr: await Deno.readTextFile(err) };
  } finally {
    await Promise.all([Deno.remove(out), Deno.remove(err)]);
  }
}
