/**
 * A listener in a process of its own, for tests that starve or stop it. Prints its port; each answer is "ok". With the
 * argument "without", the runtime lacks the function that serves a single connection.
 */
import { openListener } from "../../../routes/server/listener.ts";
import { createLog } from "../../../services/log.ts";

if (import.meta.main) {
  // As the server does. The runtime's first use of signals needs descriptors, and it panics when there are none.
  Deno.addSignalListener("SIGTERM", () => Deno.exit(0));
  if (Deno.args[0] === "without") {
    const internals: object = Reflect.get(Deno, Reflect.get(Deno, "internal"));
    if (!Reflect.deleteProperty(internals, "serveHttpOnConnection")) throw new Error("Can't take out the function");
  }
  const log = createLog({ level: "info", asJson: false, write: (line) => console.error(line), now: Date.now });
  const listener = openListener({ host: "127.0.0.1", port: 0, handler: () => new Response("ok"), log });
  console.log(listener.port);
}
