/** The runtime throws if a connection or server is ended that has just ended. As an uncaught error, that ends the process. */
import { expect, onTestFinished, test, vi } from "vitest";
import { standingClock } from "../../helpers/fakes/standing_clock.ts";

interface EndSignal {
  addEventListener(type: "abort", listener: () => void): void;
}
type ServeConnection = (connection: Deno.Conn, signal: EndSignal, ...rest: unknown[]) => unknown;

const OPTIONS = { host: "127.0.0.1", port: 0, log: () => {} };

test("the server survives ending a connection that has just ended", async () => {
  const internals = Reflect.get(Deno, Reflect.get(Deno, "internal")) as { serveHttpOnConnection: ServeConnection };
  const serve = internals.serveHttpOnConnection;
  let count = 0;
  internals.serveHttpOnConnection = (connection, signal, ...rest) =>
    serve(connection, {
      addEventListener: (type, listener) =>
        signal.addEventListener(type, () => {
          listener();
          count++;
          throw new Deno.errors.BadResource("Bad resource ID");
        }),
    }, ...rest);
  onTestFinished(() => void (internals.serveHttpOnConnection = serve));
  // The runtime's function is looked up once, by a module that an earlier file may have loaded.
  vi.resetModules();
  const { openListener } = await import("../../../routes/server/listener.ts");
  const limits = { firstRequestMs: 20 };
  // Stands still afterwards, so that the limit doesn't end the connection of the request below.
  using clock = standingClock();
  const listener = openListener({ ...OPTIONS, limits, handler: () => new Response("Hello") });
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: listener.port });
  expect(await clock.until(connection.read(new Uint8Array(1)), 10)).toBe(null);
  expect(count).toBe(1);
  await expect.poll(() => listener.connectionCount).toBe(0);
  expect(await (await fetch(listener.url)).text()).toBe("Hello");
  await listener.close();
});

test("Deno.serve, restarted after it ended, can be ended during a response", async () => {
  const { serve } = Deno;
  onTestFinished(() => void (Deno.serve = serve));
  const servers: Deno.HttpServer[] = [];
  Deno.serve = ((...args: Parameters<typeof serve>) => {
    const server = serve(...args);
    servers.push(server);
    return server;
  }) as typeof serve;
  const { openListener } = await import("../../../routes/server/listener.ts");
  const limits = { closeMs: 20 };
  const handler = () => new Promise<Response>(() => {});
  const listener = openListener({ ...OPTIONS, limits, handler, servesConnections: false });
  await servers[0]!.shutdown();
  await expect.poll(() => servers.length).toBe(2);
  const response = fetch(listener.url).catch(() => "ended");
  await expect.poll(() => listener.connectionCount).toBe(1);
  await listener.close();
  expect(await response).toBe("ended");
});
