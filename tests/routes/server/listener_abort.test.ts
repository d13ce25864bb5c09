/** A connection that ends by itself just when the server ends it, which the runtime reports by throwing. */
import { expect, test } from "vitest";

interface EndSignal {
  addEventListener(type: "abort", listener: () => void): void;
}
type Serve = (connection: Deno.Conn, signal: EndSignal, ...rest: unknown[]) => unknown;

test("ending a connection that has just ended harms nothing", async () => {
  const internals = Reflect.get(Deno, Reflect.get(Deno, "internal")) as { serveHttpOnConnection: Serve };
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
  // The runtime's function is looked up once.
  const { openListener } = await import("../../../routes/server/listener.ts");
  const listener = openListener({
    host: "127.0.0.1",
    port: 0,
    handler: () => new Response("Hello"),
    log: () => {},
    limits: { firstRequestMs: 20 },
  });
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: listener.port });
  expect(await connection.read(new Uint8Array(1))).toBe(null);
  expect(count).toBe(1);
  await expect.poll(() => listener.connectionCount).toBe(0);
  expect(await (await fetch(listener.url)).text()).toBe("Hello");
  await listener.close();
});
