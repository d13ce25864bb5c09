/** A server with the fake tailscaled, and helpers that wait for states of its node. */
import { toStatusJson } from "../../../routes/schemas/tailnet.ts";
import type { Config } from "../../../services/config/config.ts";
import type { NodeTimes, TailnetState } from "../../../services/tailnet/node_state.ts";
import { FakeTailscaled } from "../fakes/tailscaled/fake_tailscaled.ts";
import type { Switches } from "../fakes/tailscaled/fake_tailscaled_types.ts";
import { openTestApp, type TestApp, type TestAppOptions } from "./test_app.ts";

/** The node in the API. */
export interface WireStatus {
  enabled: boolean;
  mode: string;
  state: TailnetState;
  hostname: string;
  fqdn: string | null;
  port: number | null;
  url: string | null;
  auth_url: string | null;
  error: string | null;
}

/** Limit of a wait, high enough for a busy machine. */
const QUICK: Partial<NodeTimes> = {
  socketMs: 60_000,
  pollMs: 25,
  watchMs: 200,
  responseTimeoutMs: 30_000,
  loginMs: 150,
  certificateMs: 60_000,
  certificateAgainMs: 300,
  restartMs: 10,
  logoutMs: 20_000,
  farewellMs: 1,
};

/** An open bench. */
export interface TailnetBench extends AsyncDisposable {
  readonly app: TestApp;
  readonly double: FakeTailscaled;
  status(): Promise<WireStatus>;
  enable(hostname?: string): Promise<WireStatus>;
  disable(): Promise<WireStatus>;
  /** Waits for a status that the function accepts, by the change events. */
  untilStatus(accepts: (status: WireStatus) => boolean): Promise<WireStatus>;
  until(state: TailnetState): Promise<WireStatus>;
  /** Turns the node on, signs it in and waits until it runs. */
  run(): Promise<WireStatus>;
}

/** Opens one. */
export async function openTailnetBench(
  switches: Switches = {},
  options: Omit<TestAppOptions, "config"> & { config?: Partial<Config> } = {},
): Promise<TailnetBench> {
  const folder = await Deno.makeTempDir({ prefix: "ts-" });
  const double = await FakeTailscaled.write(folder, switches);
  const app = await openTestApp({
    ...options,
    config: { tailscaledPath: double.program, tailnetControlUrl: "http://control.test", ...options.config },
    tailnetTimes: { ...QUICK, ...options.tailnetTimes },
  });
  const status = async () => await (await app.get("/api/tailnet/status")).json() as WireStatus;
  const tell = async (path: string, body: Record<string, unknown>) => {
    const answer = await app.post(path, body);
    if (!answer.ok) throw new Error(await answer.text());
    return await answer.json() as WireStatus;
  };
  const bench: TailnetBench = {
    app,
    double,
    status,
    enable: (hostname) => tell("/api/tailnet/enable", { hostname }),
    disable: () => tell("/api/tailnet/disable", {}),
    async untilStatus(accepts) {
      const tailnet = await app.services.tailnet();
      const found = Promise.withResolvers<WireStatus>();
      // Within the event: a state may be over by the time a request asks for it.
      const look = () => {
        const now = toStatusJson(tailnet.getStatus());
        if (accepts(now)) found.resolve(now);
      };
      const end = app.services.events.subscribe(({ kind }) => void (kind === "tailnet" && look()));
      look();
      return await found.promise.finally(end);
    },
    until: (state) => bench.untilStatus((now) => now.state === state),
    async run() {
      await bench.enable();
      await bench.until("needs_auth");
      await double.approve();
      return await bench.until("running");
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
  return bench;
}
